"""The causes of failures, and the lines that name them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from rich.console import RenderableType
from rich.text import Text

from vivavoce.records.agents import Agents
from vivavoce.records.run import Outcome
from vivavoce.records.score import Failure, Finding, Score, turn_label
from vivavoce.records.trajectory import Trajectory
from vivavoce.report.text import Labelled, one_line
from vivavoce.safe_text import safe
from vivavoce.store.browse.status import status_of

REWARD = "reward"
"""The name of the score that combines the others."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why a conversation has an error or did not pass.

    `grader` is the name of the score that says so, None where the conversation itself broke or its test failed. `turn`
    is an index from 0, None where it is about the whole conversation. `whose` says whose fault it was, empty where
    nobody decided that. `what` is the sentence of a finding, empty without one, and `why` the reason. `agent` is the
    one of several agents whose fault it was, or that acted last in the turn; empty where nobody knows.
    """

    state: Literal["error", "fail"]
    grader: str | None
    turn: int | None
    whose: str
    what: str
    why: str
    agent: str = ""

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return "whole conversation" if self.turn is None else turn_label(self.turn)

    @property
    def text(self) -> str:
        """What failed and why, in one sentence, or in two where the finding is one by itself."""
        said = [self.what] if self.what else []
        said += [self.why] if self.why and self.why != self.what else []
        return (" " if self.what.endswith((".", "!", "?")) else "; ").join(said)


def causes(outcome: Outcome) -> list[Cause]:
    """Return the causes of a verdict: errors first, then what failed about the whole, then by turn.

    An error that several scores share is one cause. The reward is one only where no other score says why it failed.
    """
    found = list(_found(outcome))
    if not found and outcome.reward is not None:
        found = list(_of_score(REWARD, outcome.reward, Agents(outcome.attempt.trajectory.messages), set()))
    return sorted(found, key=lambda one: (one.state != "error", one.turn is not None, one.turn or 0))


def _found(outcome: Outcome) -> Iterator[Cause]:
    seen: set[Failure] = set()
    agents = Agents(outcome.attempt.trajectory.messages)
    yield from _of_talk(outcome.attempt.trajectory, agents, seen)
    for name, score in outcome.scores.items():
        yield from _of_score(name, score, agents, seen)


def _of_talk(talk: Trajectory, agents: Agents, seen: set[Failure]) -> Iterator[Cause]:
    """Yield what broke in the conversation, and why its test failed."""
    for turn in talk.turns:
        for one in _broken(None, turn.index, turn.failure, seen):
            yield replace(one, agent=_last(agents, turn.index)) if one.whose == "target" else one
    yield from _broken(None, None, talk.failure, seen)
    if talk.test is not None and talk.test.target_passed is False:
        test = talk.test
        yield Cause("fail", None, None, test.blame or "", "", test.blame_reason or test.stop_reason or test.status)


def _broken(grader: str | None, turn: int | None, failure: Failure | None, seen: set[Failure]) -> Iterator[Cause]:
    if failure is not None and failure not in seen:
        seen.add(failure)
        yield Cause("error", grader, turn, failure.blame, "", failure.message)


def _last(agents: Agents, turn: int | None) -> str:
    """Return the one of several agents that acts last in a turn; empty without a turn, or where there is one agent."""
    return (agents.last_in(turn) or "") if agents.several and turn is not None else ""


def _of_score(name: str, score: Score, agents: Agents, seen: set[Failure]) -> Iterator[Cause]:
    state = status_of(score.state, score.passed)
    turns = [one for one in score.turns or () if status_of(one.state, one.passed) in ("fail", "error")]
    for turn in turns:
        yield from _of_score(name, turn, agents, seen)
    if state == "error":
        if score.failure is None and not turns:
            yield Cause("error", name, score.turn, "", "", score.reason or "it has no score")
        yield from _broken(name, score.turn, score.failure, seen)
    elif state == "fail" and not turns:
        bad = [finding for finding in score.findings if finding.state == "fail"]
        why = score.reason or _plain(score)
        rest = "" if bad and _restates(why, bad[0]) else why
        for place, one in enumerate(bad):
            agent = agents.of_finding(one, score.turn) if agents.several else None
            yield replace(_of_finding(name, score, one, rest if place == 0 else ""), agent=agent or "")
        if not bad:
            yield Cause("fail", name, score.turn, "", "", why, _last(agents, score.turn))


def _restates(reason: str, first: Finding) -> bool:
    """Say whether a reason only lists findings, as those of assertions and rules do: it begins with the first one."""
    place = "" if first.turn is None else f"{turn_label(first.turn)}: "
    return reason.removeprefix(place).startswith(first.fact)


def _of_finding(name: str, score: Score, one: Finding, why: str) -> Cause:
    turn = score.turn if one.turn is None else one.turn
    return Cause("fail", name, _cited(one) if turn is None else turn, one.blame or "", _fact(one), why)


def _fact(one: Finding) -> str:
    """Return what happened: a sentence that states it, else the verdict on what was asked, as `unmet: a refund`."""
    states_it = one.kind == "rule" or one.fact != one.what or one.verdict in ("", "missed")
    return one.fact if states_it else f"{one.verdict.replace('_', ' ')}: {one.what}"


def _cited(one: Finding) -> int | None:
    """Return the first turn that a finding cites."""
    return next(iter(_turns(one)), None)


def _turns(one: Finding) -> Iterable[int]:
    return (each.turn for each in one.evidence if each.verified and each.turn is not None)


def _plain(score: Score) -> str:
    shown = score.value if score.raw is None else score.raw
    return f"scored {shown:.3g}" if isinstance(shown, float) else f"scored {shown}"


LONG = 8
"""Turns from which a conversation has its causes listed above it; those of a shorter one are in sight anyway."""
MOST = 8
"""Causes that are listed."""
_WIDTH = 200


def cause_lines(outcome: Outcome) -> Iterator[RenderableType]:
    """Yield what failed in a long conversation, nothing if it passed."""
    found = causes(outcome) if len(outcome.attempt.trajectory.turns) >= LONG else []
    if not found:
        return
    yield Text("── what failed", style="dim")
    yield from map(_line, found[:MOST])
    if len(found) > MOST:
        yield Text(f"    … and {len(found) - MOST:,} more", style="dim")


def _line(one: Cause) -> Labelled:
    mark, style = ("!", "yellow") if one.state == "error" else (" ", "red")
    known = ", ".join(word for word in (one.whose, one_line(one.agent)) if word)
    whose = f" ({known})" if known else ""
    name = f"{safe(one.grader)}: " if one.grader else ""
    return Labelled(Text(f" {mark}  {one.place}{whose}  ", style=style), Text(one_line(f"{name}{one.text}", _WIDTH)))
