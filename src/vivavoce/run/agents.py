"""What each of several agents did in a run, and what failed of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vivavoce.records.agents import Agents, key_of
from vivavoce.records.call_states import call_records
from vivavoce.records.details import AgentFailures, AgentSummary
from vivavoce.records.run import Grading, Outcome
from vivavoce.records.score import Score
from vivavoce.stats.intervals import Estimate, mean_interval
from vivavoce.store.store import Store

MOST = 50
"""Agents that are summed up: those with the most failed turns."""
BROKE = "error"
"""What a turn in which the target broke down counts as, beside the names of graders."""

_Place = tuple[str, int, int | None]
"""A sample, a trial, and a turn."""


@dataclass(slots=True)
class _AgentTally:
    """What was counted of one agent of a target; `failed` are by grader the turns in which it found a fault."""

    agent: str
    target: str
    conversations: int = 0
    turns: list[_Place] = field(default_factory=list[_Place])
    calls: int = 0
    tool_errors: int = 0
    handoffs: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])
    failed: dict[str, set[_Place]] = field(default_factory=lambda: defaultdict(set))

    @property
    def failed_turns(self) -> set[_Place]:
        """The turns in which anything failed."""
        return set[_Place]().union(*self.failed.values())

    def summary(self) -> AgentSummary:
        """Return it in figures."""
        share = self._share(self.failed_turns)
        return AgentSummary(
            agent=self.agent,
            target=self.target,
            conversations=self.conversations,
            turns=len(self.turns),
            calls=self.calls,
            tool_errors=self.tool_errors,
            handoffs=self.handoffs,
            failed_turns=len(self.failed_turns),
            share=share.mean,
            low=share.low,
            high=share.high,
            graders=[self._grader(name, number) for name, number in self.failures.most_common()],
        )

    def _grader(self, name: str, number: int) -> AgentFailures:
        share = self._share(self.failed[name])
        turns = len(self.failed[name])
        return AgentFailures(
            grader=name, failures=number, turns=turns, share=share.mean, low=share.low, high=share.high
        )

    def _share(self, failed: set[_Place]) -> Estimate:
        values = [float(place in failed) for place in self.turns]
        found = mean_interval(values, [sample for sample, _, _ in self.turns])
        return Estimate(0.0, None, None, 0, 0) if found is None else found


def by_agent(store: Store, grading: Grading) -> dict[str, Any]:
    """Return the fields of a summary that tell of agents; nothing where no conversation has several."""
    if not store.details.has_agents(grading.run_id):
        return {}
    tallies: dict[tuple[str, str], _AgentTally] = {}
    unnamed = 0
    for outcome in store.outcomes(grading.id):
        unnamed += _count(outcome, tallies)
    ordered = sorted(tallies.values(), key=lambda one: (-len(one.failed_turns), -len(one.turns), one.agent))
    kept = {id(one) for one in ordered[:MOST]}
    agents = [one.summary() for one in tallies.values() if id(one) in kept]
    return {"agents": agents, "more_agents": len(ordered) - len(kept), "unnamed_failures": unnamed}


def _count(outcome: Outcome, tallies: dict[tuple[str, str], _AgentTally]) -> int:
    """Count what the agents of one conversation did; return how many failures are of none of them."""
    talk, key = outcome.attempt.trajectory, outcome.attempt.key
    agents = Agents(talk.messages)
    if not agents.names:
        return 0

    def of(agent: str) -> _AgentTally:
        return tallies.setdefault((key.target, key_of(agent)), _AgentTally(agent, key.target))

    for name in agents.names:
        of(name).conversations += 1
    for turn in (None, *range(len(talk.turns))):
        for name in agents.in_turn(turn):
            of(name).turns.append((key.sample_id, key.trial, turn))
    owners = iter(agents.by_call.values())
    for record, agent in zip(call_records(agents.messages), owners, strict=True):
        if agent is not None:
            of(agent).calls += record.was_made
            of(agent).tool_errors += record.state == "failed"
    for handoff in agents.handoffs():
        if handoff.sender is not None and handoff.how != "unstated":
            of(handoff.sender).handoffs += 1
    unnamed = 0
    for grader, turn, agent in _failures(outcome, agents):
        if agent is None:
            unnamed += 1
            continue
        tally = of(agent)
        tally.failures[grader] += 1
        in_turns = [at for at in range(len(talk.turns)) if agent in agents.in_turn(at)] if turn is None else [turn]
        tally.failed[grader].update((key.sample_id, key.trial, at) for at in in_turns[-1:])
    return unnamed


def _failures(outcome: Outcome, agents: Agents) -> Iterator[tuple[str, int | None, str | None]]:
    """Yield the grader, the turn and the agent of everything that failed."""
    for turn in outcome.attempt.trajectory.turns:
        if turn.failure is not None and turn.failure.blame == "target":
            yield BROKE, turn.index, agents.last_in(turn.index)
    for name, score in outcome.scores.items():
        yield from ((name, *one) for one in _of_score(score, agents))


def _of_score(score: Score, agents: Agents) -> Iterator[tuple[int | None, str | None]]:
    if score.state != "scored" or score.passed is not False:
        return
    turns = [one for one in score.turns or () if one.state == "scored" and one.passed is False]
    for one in turns:
        yield from _of_score(one, agents)
    if turns:
        return
    bad = [one for one in score.findings if one.state == "fail"]
    for one in bad:
        turn = score.turn if score.turn is not None else one.turn
        agent = agents.of_finding(one, score.turn)
        yield turn if agent is None or turn is None or agent in agents.in_turn(turn) else None, agent
    if not bad:
        yield score.turn, None if score.turn is None else agents.last_in(score.turn)
