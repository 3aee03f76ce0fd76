"""What a summary says besides the means: usage, waiting times, agents, and what went as recorded."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from vivavoce.records.agents import Agents, key_of
from vivavoce.records.details import (
    AS_RECORDED,
    MOST_EXAMPLES,
    AgentFailures,
    AgentSummary,
    AsRecorded,
    CallsCovered,
    DifferenceKind,
    DifferentConversations,
    Latency,
    PairedGrades,
    RecordingSummary,
    SkipSummary,
    Unit,
    VarianceSummary,
)
from vivavoce.records.run import AttemptKey, Grading, Outcome, ScoreRow
from vivavoce.records.score import Score, conversation_label, turn_label
from vivavoce.records.trajectory import call_records
from vivavoce.run.summary import Summary, TagSummary, grader_summary
from vivavoce.run.tallies import Tallies, Tally, tally
from vivavoce.stats.intervals import Estimate, mean_interval, percentile
from vivavoce.stats.paired import difference_of
from vivavoce.stats.planning import components

if TYPE_CHECKING:  # what reads a summary need not load all that a suite may name
    from vivavoce.grading.grader import Grader
    from vivavoce.store.store import Store


def recording_summaries(store: Store, grading: Grading) -> list[RecordingSummary]:
    """Return how far conversations went as recorded, for each target; nothing for a run without a recording."""
    graders = cast("dict[str, Any]", grading.spec.get("graders") or {})
    name = next((name for name, one in graders.items() if one.get("kind") == "recording"), None)
    if name is None:
        return []
    tallies: dict[str, _RecordedTally] = {}
    for outcome in store.outcomes(grading.id):
        if (score := outcome.scores.get(name)) is not None:
            tallies.setdefault(outcome.attempt.key.target, _RecordedTally()).add(outcome, name, score)
    return [one.summary(target) for target, one in tallies.items()]


@dataclass(slots=True)
class _Pairs:
    """The scores of a grader on both sides, the recorded one first."""

    values: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    left_out: int = 0

    def add(self, recorded: float | None, new: float | None) -> None:
        if recorded is None or new is None:
            self.left_out += 1
        else:
            self.values.append((recorded, new))

    def paired(self, grader: str, of: Unit) -> PairedGrades | None:
        """Return them in numbers, None where none are."""
        found = difference_of([new - recorded for recorded, new in self.values])
        if found is None:
            return None
        sides = [math.fsum(side) / found.n for side in zip(*self.values, strict=True)]
        return PairedGrades(
            grader=grader,
            of=of,
            n=found.n,
            better=found.wins,
            worse=found.losses,
            recorded=sides[0],
            new=sides[1],
            p_value=found.sign_p_value,
            left_out=self.left_out,
        )


@dataclass(slots=True)
class _RecordedTally:
    """The conversations of one target."""

    conversations: int = 0
    same: int = 0
    unrecorded: int = 0
    errors: int = 0
    turns: int = 0
    ended: list[str] = field(default_factory=list[str])
    calls: CallsCovered = field(default_factory=CallsCovered)
    different: dict[DifferenceKind, DifferentConversations] = field(
        default_factory=dict[DifferenceKind, DifferentConversations]
    )
    pairs: dict[tuple[str, Unit], _Pairs] = field(default_factory=dict[tuple[str, Unit], _Pairs])

    def add(self, outcome: Outcome, name: str, score: Score) -> None:
        """Count a conversation."""
        self.conversations += 1
        kept = score.extra.get(AS_RECORDED)
        if kept is None:
            self.unrecorded += score.state == "skipped"
            self.errors += score.state == "error"
            return
        found = AsRecorded.model_validate(kept)
        self.calls += found.calls
        if found.calls.missed and len(self.ended) < MOST_EXAMPLES:
            key, last = outcome.attempt.key, len(outcome.attempt.trajectory.turns) - 1
            self.ended.append(f"{conversation_label(key.sample_id, key.trial)}, {turn_label(last)}")
        self.turns += found.comparable
        if found.difference is not None:
            self._differs(outcome, found)
        elif score.state == "error":
            self.errors += 1
        else:
            self.same += 1
        for grader, one in outcome.scores.items():
            if grader != name:
                turnwise = one.turns is not None or len(outcome.attempt.trajectory.turns) == 1
                pairs = self.pairs.setdefault((grader, "turn" if turnwise else "conversation"), _Pairs())
                _pair(pairs, one, found, ended=score.state != "error")

    def _differs(self, outcome: Outcome, found: AsRecorded) -> None:
        first, key = found.difference, outcome.attempt.key
        assert first is not None
        known = self.different.get(first.kind)
        if known is not None and known.turn <= first.turn:
            self.different[first.kind] = known.model_copy(update={"conversations": known.conversations + 1})
            return
        number = 1 if known is None else known.conversations + 1
        self.different[first.kind] = DifferentConversations(
            kind=first.kind,
            conversations=number,
            sample=key.sample_id,
            trial=key.trial,
            turn=first.turn,
            what=first.what,
        )

    def summary(self, target: str) -> RecordingSummary:
        """Return what was counted."""
        return RecordingSummary(
            target=target,
            conversations=self.conversations,
            same=self.same,
            unrecorded=self.unrecorded,
            errors=self.errors,
            turns=self.turns,
            different=sorted(self.different.values(), key=lambda one: -one.conversations),
            calls=self.calls,
            ended=self.ended,
            pairs=list(_known(self.pairs)),
        )


def _pair(pairs: _Pairs, score: Score, found: AsRecorded, *, ended: bool) -> None:
    """Add the scores of a conversation by a grader: those of comparable turns, or of comparable conversations."""
    recorded = found.recorded.get(score.name)
    if score.turns is None:
        if found.difference is None and ended and score.state != "skipped":
            pairs.add(score.value, score.value)
        elif recorded is not None and score.state != "skipped":
            pairs.add(recorded.value, score.value)
        return
    for turn in score.turns:
        if turn.state == "skipped" or turn.turn is None:
            continue
        if turn.turn < found.same:
            pairs.add(turn.value, turn.value)
        elif recorded is not None and recorded.turn == turn.turn:
            pairs.add(recorded.value, turn.value)


def _known(pairs: dict[tuple[str, Unit], _Pairs]) -> Iterator[PairedGrades]:
    found = (one.paired(grader, of) for (grader, of), one in pairs.items())
    yield from (one for one in found if one is not None)


MOST = 50
"""Agents that are summed up: those with the most failed turns."""
BROKE = "error"
"""What a turn in which the target broke down counts as, next to the names of graders."""

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
    bad = [finding for finding in score.findings if finding.state == "fail"]
    for one in bad:
        turn = score.turn if score.turn is not None else one.turn
        agent = agents.of_finding(one, score.turn)
        yield turn if agent is None or turn is None or agent in agents.in_turn(turn) else None, agent
    if not bad:
        yield score.turn, None if score.turn is None else agents.last_in(score.turn)


SKIP_REASONS = 3
"""Reasons of skips that are named for each grader."""
MOST_TAGS = 50
"""Tags that are summed up: those with the most samples."""


def detailed(
    summary: Summary,
    tallies: Tallies,
    store: Store,
    grading: Grading,
    graders: Sequence[Grader] = (),
    *,
    running: bool = False,
) -> Summary:
    """Return a summary with the details of its run and its set of scores, read from the store.

    What agents did takes reading all conversations, which is not done while a run is `running`.
    """
    tags = store.details.tags(grading.run_id)
    like = next(iter(tallies.values()), Tally())
    seconds = store.details.seconds(grading.run_id)
    targets = dict.fromkeys([*(grader.target for grader in summary.graders), *seconds])  # in the order of the suite
    found = {
        "usage": store.details.usage(grading),
        "latency": [_latency(target, seconds[target]) for target in targets if target in seconds],
        "tags": _by_tag(tags, store, grading, graders, like),
        "more_tags": max(len({tag for each in tags.values() for tag in each}) - MOST_TAGS, 0),
        "variance": _variance(tallies, store, grading, graders),
        "skips": _skips(tallies, store, grading),
        "recording": recording_summaries(store, grading),
        **({} if running else by_agent(store, grading)),
    }
    return summary.model_copy(update=found)


def _skips(tallies: Tallies, store: Store, grading: Grading) -> list[SkipSummary]:
    """Return why graders did not apply to conversations, in the order of the graders."""
    if not any(tally.skipped for tally in tallies.values()):
        return []
    reasons: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for target, name, reason, number in store.details.skips(grading):
        reasons[target, name][reason] = number
    return [
        _skip(target, name, tally, reasons[target, name]) for (target, name), tally in tallies.items() if tally.skipped
    ]


def _skip(target: str, name: str, tally: Tally, reasons: Mapping[str, int]) -> SkipSummary:
    frequent = dict(sorted(reasons.items(), key=lambda item: -item[1])[:SKIP_REASONS])
    return SkipSummary(
        name=name,
        target=target,
        skipped=tally.skipped,
        conversations=tally.skipped + tally.errors + len(tally.values),
        reasons=frequent,
        other=tally.skipped - sum(frequent.values()),
    )


def _latency(target: str, seconds: Sequence[float]) -> Latency:
    p50, p95 = percentile(seconds, 50), percentile(seconds, 95)
    return Latency(target=target, replies=len(seconds), p50=p50 or 0.0, p95=p95 or 0.0)


def _by_tag(
    tags: Mapping[str, frozenset[str]],
    store: Store,
    grading: Grading,
    graders: Sequence[Grader],
    like: Tally,
) -> list[TagSummary]:
    """Return the results by tag, with intervals `like` those of the whole.

    Of a population of which only some were drawn, a tag is the part that has it: others are outside of it.
    """
    if not tags:
        return []
    counts = Counter(tag for each in tags.values() for tag in each)
    kept = sorted(sorted(counts, key=lambda tag: (-counts[tag], tag))[:MOST_TAGS])
    rows: dict[str, list[ScoreRow]] = {tag: [] for tag in kept}
    others: dict[str, list[ScoreRow]] = {tag: [] for tag in kept}
    for row in store.scores(grading.id):
        mine = tags.get(row.key.sample_id, ())
        for tag in kept if row.drawn is not None else mine:
            if tag in rows:
                (rows if tag in mine else others)[tag].append(row)
    known = {grader.name: grader for grader in graders}
    return [
        TagSummary(
            tag=tag,
            graders=[
                grader_summary(*key, one, known.get(key[1])) for key, one in _part(rows[tag], others[tag], like).items()
            ],
        )
        for tag in kept
    ]


def _part(rows: Sequence[ScoreRow], others: Sequence[ScoreRow], like: Tally) -> Tallies:
    """Return the tallies of some rows; `others` are those of the rest of what was drawn."""
    found = tally(rows, like.intervals, like.sampling)
    for row in others:
        part = found.get((row.key.target, row.name))
        if part is not None and row.drawn is not None and row.state != "error":
            part.outside.append(row.drawn)
    return found


def _variance(tallies: Tallies, store: Store, grading: Grading, graders: Sequence[Grader]) -> list[VarianceSummary]:
    """Return where the scores of each grader vary, where anything repeats."""
    votes: dict[tuple[AttemptKey, str], list[float]] = {}
    for key, name, values in store.details.votes(grading):
        votes[key, name] = values
    judged = {grader.name for grader in graders if grader.judged}
    found: list[VarianceSummary] = []
    for (target, name), one in tallies.items():
        judgements = _judgements(target, name, one, votes)
        if not any(len(trials) > 1 or len(trials[0]) > 1 for trials in judgements.values()):
            continue
        split = components(judgements)
        found.append(
            VarianceSummary(
                name=name,
                target=target,
                samples=split.samples,
                trials=split.trials,
                judgements=split.judgements,
                counted=len(judgements),
                judged=name in judged or split.judgements is not None,
            )
        )
    return found


def _judgements(
    target: str, name: str, one: Tally, votes: dict[tuple[AttemptKey, str], list[float]]
) -> dict[str, list[list[float]]]:
    """Return the judgements of each trial of each sample: the votes, or the score where it was judged once."""
    found: defaultdict[str, list[list[float]]] = defaultdict(list)
    for (sample, trial), value in zip(one.keys, one.values, strict=True):
        found[sample].append(votes.get((AttemptKey(sample, target, trial), name), [value]))
    return found
