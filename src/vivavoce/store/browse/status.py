"""The status of a sample in a grading: what its scores amount to, in the narrow row that lists look at.

Whether a score passes was decided when it was made; here the worst of a sample's scores is found, once, so that a list,
a filter and the page of a conversation cannot disagree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, cast, get_args

from vivavoce.records.score import State
from vivavoce.store.runs.rows import AttemptCells, ScoreCells

SampleStatus = Literal["error", "fail", "pass", "skip"]
"""What a score amounts to, the worst first; one that was skipped counts only where there is nothing else."""

RANK: tuple[SampleStatus, ...] = get_args(SampleStatus)

BROKEN, UNGRADED = -2.0, -1.0
"""Where stand, worst first, a conversation that broke and one whose grader did: before every score."""
LAST = 1e18
"""Where stands what has no score: after everything that has one."""
BETWEEN = "\x1f"
"""What stands before, between and after tags."""


class Said(NamedTuple):
    """What one grader, or the reward, says of a whole conversation."""

    state: State
    value: float | None
    passed: int | None


def status_of(state: State, passed: bool | int | None) -> SampleStatus:
    """Return what a score amounts to; one without a value that nothing decides counts for nothing."""
    if state == "error":
        return "error"
    if state == "skipped" or passed is None:
        return "skip"
    return "pass" if passed else "fail"


def worst_of(statuses: Iterable[SampleStatus]) -> SampleStatus:
    """Return the worst status, `skip` where there is none."""
    return min([*statuses, RANK[-1]], key=RANK.index)


class AttemptFacts(NamedTuple):
    """What lists say of an attempt whatever its scores; `broken` says that it failed itself."""

    position: int
    turns: int
    seconds: float | None
    tags: str | None
    broken: bool


def facts_of(attempt: AttemptCells, turns: int) -> AttemptFacts:
    """Return what lists say of an attempt, from its row without a number."""
    tags, broken = tags_of(attempt.sample), attempt.failure is not None
    return AttemptFacts(attempt.position, turns, attempt.seconds, tags, broken)


class StatusRow(NamedTuple):
    """A row of `standings`."""

    grading_id: str
    position: int
    attempt_id: int
    state: SampleStatus
    rank: float
    lowest: float | None
    skips: int
    turns: int
    seconds: float | None
    tags: str | None


def status_rows(number: int, facts: AttemptFacts, scores: Iterable[ScoreCells]) -> list[StatusRow]:
    """Return the rows of `standings`, one for each grading, from the rows of scores."""
    by_grading: dict[str, list[Said]] = {}
    for row in scores:
        if row.turn is None:
            by_grading.setdefault(row.grading_id, []).append(Said(row.state, row.value, row.passed))
    return [_standing(number, facts, grading_id, said) for grading_id, said in by_grading.items()]


def _standing(number: int, facts: AttemptFacts, grading_id: str, said: Sequence[Said]) -> StatusRow:
    found = "error" if facts.broken else worst_of(status_of(one.state, one.passed) for one in said)
    lowest = min((one.value for one in said if one.value is not None), default=None)
    return StatusRow(
        grading_id=grading_id,
        position=facts.position,
        attempt_id=number,
        state=found,
        rank=BROKEN if facts.broken else UNGRADED if found == "error" else LAST if lowest is None else lowest,
        lowest=lowest,
        skips=sum(one.state == "skipped" for one in said),
        turns=facts.turns,
        seconds=facts.seconds,
        tags=facts.tags,
    )


def tags_of(sample: str) -> str | None:
    """Return the tags of a sample, given as JSON, in one text in which `tagged` finds each; None where it has none."""
    if '"tags"' not in sample:
        return None
    read: Any = json.loads(sample)
    tags: Any = cast("dict[str, Any]", read).get("tags") if isinstance(read, dict) else None
    named = [one for one in cast("list[Any]", tags) if isinstance(one, str)] if isinstance(tags, list) else []
    return "".join(map(tagged, named)) or None


def tagged(tag: str) -> str:
    """Return what stands in the text of tags where one has this tag."""
    return BETWEEN + tag.replace(BETWEEN, "") + BETWEEN
