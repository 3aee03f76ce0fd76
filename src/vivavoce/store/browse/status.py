"""The status of a sample in a grading: a summary of its scores, in the narrow table that lists use.

Whether a score passes is decided when the score is made; here the worst of a sample's scores is found once, so that a
list, a filter and the page of a conversation always agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, cast, get_args

from vivavoce.records.score import State
from vivavoce.store.runs.rows import AttemptCells, ScoreCells

SampleStatus = Literal["error", "fail", "pass", "skip"]
"""The statuses of scores, worst first; a skipped score counts only if there is nothing else."""

RANK: tuple[SampleStatus, ...] = get_args(SampleStatus)

BROKEN, UNGRADED = -2.0, -1.0
"""The sort values of a conversation with an error and of one with a grader error: before every score."""
LAST = 1e18
"""The sort value of a sample without a score: after all others."""
BETWEEN = "\x1f"
"""The separator before, between and after tags."""


class ScoreStatus(NamedTuple):
    """The state of one score, or of the reward, for a whole conversation."""

    state: State
    value: float | None
    passed: int | None


def status_of(state: State, passed: bool | int | None) -> SampleStatus:
    """Return the status of a score; a score without a decision counts as skipped."""
    if state == "error":
        return "error"
    if state == "skipped" or passed is None:
        return "skip"
    return "pass" if passed else "fail"


def worst_of(statuses: Iterable[SampleStatus]) -> SampleStatus:
    """Return the worst status, `skip` if there is none."""
    return min([*statuses, RANK[-1]], key=RANK.index)


class AttemptFacts(NamedTuple):
    """Facts of an attempt for lists, apart from its scores; `broken` means that the conversation has an error."""

    position: int
    turns: int
    seconds: float | None
    tags: str | None
    broken: bool


def facts_of(attempt: AttemptCells, turns: int) -> AttemptFacts:
    """Return the facts of an attempt for lists, from its row without a number."""
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
    by_grading: dict[str, list[ScoreStatus]] = {}
    for row in scores:
        if row.turn is None:
            by_grading.setdefault(row.grading_id, []).append(ScoreStatus(row.state, row.value, row.passed))
    return [_status_row(number, facts, grading_id, scores) for grading_id, scores in by_grading.items()]


def _status_row(number: int, facts: AttemptFacts, grading_id: str, scores: Sequence[ScoreStatus]) -> StatusRow:
    found = "error" if facts.broken else worst_of(status_of(one.state, one.passed) for one in scores)
    lowest = min((one.value for one in scores if one.value is not None), default=None)
    return StatusRow(
        grading_id=grading_id,
        position=facts.position,
        attempt_id=number,
        state=found,
        rank=BROKEN if facts.broken else UNGRADED if found == "error" else LAST if lowest is None else lowest,
        lowest=lowest,
        skips=sum(one.state == "skipped" for one in scores),
        turns=facts.turns,
        seconds=facts.seconds,
        tags=facts.tags,
    )


def tags_of(sample: str) -> str | None:
    """Return the tags of a sample (JSON) as one text that `tagged` can search; None if it has none."""
    if '"tags"' not in sample:
        return None
    parsed: Any = json.loads(sample)
    tags: Any = cast("dict[str, Any]", parsed).get("tags") if isinstance(parsed, dict) else None
    named = [one for one in cast("list[Any]", tags) if isinstance(one, str)] if isinstance(tags, list) else []
    return "".join(map(tagged, named)) or None


def tagged(tag: str) -> str:
    """Return the pattern of a tag in the text of tags."""
    return BETWEEN + tag.replace(BETWEEN, "") + BETWEEN
