"""The status of a sample in a grading: a summary of its scores, in the narrow table that lists use.

Whether a score passes is decided when the score is made; here the worst of a sample's scores is found once, so that a
list, a filter and the page of a conversation always agree.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast, get_args

from vivavoce.records.score import Failure, State, Usage, error_text, total
from vivavoce.store.runs.rows import AttemptCells, ScoreCells

SampleStatus = Literal["error", "fail", "pass", "measured", "skip"]
"""The statuses of scores, worst first; a measurement counts only if nothing decides, a skipped score if nothing else.
"""

RANK: tuple[SampleStatus, ...] = get_args(SampleStatus)

BROKEN, UNGRADED = -2.0, -1.0
"""The sort values of a conversation with an error and of one with a grader error: before every score."""
LAST = 1e18
"""The sort value of a sample without a score: after all others."""
BETWEEN = "\x1f"
"""The separator before, between and after tags."""


def status_of(state: State, passed: bool | int | None) -> SampleStatus:
    """Return the status of a score; one that neither passes nor fails is a measurement."""
    if state == "error":
        return "error"
    if state == "skipped":
        return "skip"
    return "measured" if passed is None else "pass" if passed else "fail"


def worst_of(statuses: Iterable[SampleStatus]) -> SampleStatus:
    """Return the worst status, `skip` if there is none."""
    return min([*statuses, RANK[-1]], key=RANK.index)


class AttemptFacts(NamedTuple):
    """Facts of an attempt for lists, apart from its scores; `usage`, `test` and `failure` are JSON as it has them."""

    position: int
    turns: int
    seconds: float | None
    tags: str | None
    target: str
    trial: int
    usage: str | None
    test: str | None
    failure: str | None


def facts_of(attempt: AttemptCells, turns: int) -> AttemptFacts:
    """Return the facts of an attempt for lists, from its row without a number."""
    return AttemptFacts(
        position=attempt.position,
        turns=turns,
        seconds=attempt.seconds,
        tags=tags_of(attempt.sample),
        target=attempt.target,
        trial=attempt.trial,
        usage=attempt.usage,
        test=attempt.test,
        failure=attempt.failure,
    )


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
    target: str
    trial: int
    tokens: int | None
    cost: float | None
    cause: str | None


def status_rows(number: int, facts: AttemptFacts, scores: Iterable[ScoreCells]) -> list[StatusRow]:
    """Return the rows of `standings`, one for each grading, from the rows of scores."""
    by_grading: dict[str, list[ScoreCells]] = {}
    for row in scores:
        if row.turn is None:
            by_grading.setdefault(row.grading_id, []).append(row)
    return [_status_row(number, facts, grading_id, scores) for grading_id, scores in by_grading.items()]


def _status_row(number: int, facts: AttemptFacts, grading_id: str, scores: Sequence[ScoreCells]) -> StatusRow:
    broken = facts.failure is not None
    found = "error" if broken else worst_of([status_of(score.state, score.passed) for score in scores])
    lowest = min([score.value for score in scores if score.value is not None], default=None)
    used = _add_usage(facts, scores)
    return StatusRow(
        grading_id=grading_id,
        position=facts.position,
        attempt_id=number,
        state=found,
        rank=BROKEN if broken else UNGRADED if found == "error" else LAST if lowest is None else lowest,
        lowest=lowest,
        skips=sum(score.state == "skipped" for score in scores),
        turns=facts.turns,
        seconds=facts.seconds,
        tags=facts.tags,
        target=facts.target,
        trial=facts.trial,
        tokens=None if used is None else used.input_tokens + used.output_tokens,
        cost=None if used is None else used.cost,
        cause=None if found != "error" else cause_of(_error(facts, scores)),
    )


def cause_of(text: str) -> str:
    """Return the short hash of what an error says: errors with the same are one cause."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def _error(facts: AttemptFacts, scores: Sequence[ScoreCells]) -> str:
    """Return what the error of an attempt says: that of the conversation, else that of the first grader with one."""
    if facts.failure is not None:
        return error_text(None, Failure.model_validate_json(facts.failure), None)
    first = next(score for score in scores if score.state == "error")
    failure = None if first.failure is None else Failure.model_validate_json(first.failure)
    return error_text(first.name, failure, first.reason)


def _add_usage(facts: AttemptFacts, scores: Sequence[ScoreCells]) -> Usage | None:
    """Return what an attempt and a grading of it used, over all roles; None where nothing tells."""
    graded = [
        Usage.model_validate_json(score.usage) for score in scores if score.usage is not None and score.kind == "grade"
    ]
    if facts.usage is None and facts.test is None and not graded:
        return None
    target = Usage() if facts.usage is None else Usage.model_validate_json(facts.usage)
    test = None if facts.test is None else usage_of_test(json.loads(facts.test))
    asked = [target] if test is None else test.values()  # the usage of a test has that of the target
    return total(one for one in (*asked, total(graded)) if one is not None and any(vars(one).values()))


def usage_of_test(test: Mapping[str, Any]) -> dict[str, Usage]:
    """Return what a test used, by role, from its data."""
    used: dict[str, Any] = test.get("usage") or {}
    return {role: Usage.model_validate(one) for role, one in used.items()}


def tags_of(sample: str) -> str | None:
    """Return the tags of a sample (JSON) as one text that `tagged` can search; None if it has none."""
    if '"tags"' not in sample:
        return None
    parsed: Any = json.loads(sample)
    tags: Any = cast("dict[str, Any]", parsed).get("tags") if isinstance(parsed, dict) else None
    named = [one for one in cast("list[Any]", tags) if isinstance(one, str)] if isinstance(tags, list) else []
    return "".join(map(tagged, named)) or None


def split_tags(text: str | None) -> list[str]:
    """Return the tags in a text of tags."""
    return [] if text is None else [one for one in text.split(BETWEEN) if one]


def tagged(tag: str) -> str:
    """Return the pattern of a tag in the text of tags."""
    return BETWEEN + tag.replace(BETWEEN, "") + BETWEEN
