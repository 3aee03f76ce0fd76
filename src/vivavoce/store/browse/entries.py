"""Rows as list entries: short, and without messages."""

from __future__ import annotations

import json
import typing
from collections.abc import Sequence
from typing import Any

from vivavoce.records.run import failing_grader
from vivavoce.records.score import Usage, shorten, total
from vivavoce.store.browse.listing import (
    AlikeErrors,
    Headline,
    ListedScore,
    RunEntry,
    SampleEntry,
    ScoreEntry,
    TurnScore,
)
from vivavoce.store.browse.status import split_tags
from vivavoce.store.database.database import AnyRow, values_of
from vivavoce.store.runs.decode import failure_of_text, measured_in

TITLE = 120
"""Maximum characters of a title; a reason may have three times as many."""


def run_entry(run: AnyRow, grading: AnyRow | None, comments: int = 0) -> RunEntry:
    """Return a run with the figures of one of its gradings, and with how many `comments` it has."""
    options: dict[str, Any] = json.loads(run.options)
    known: dict[str, Any] = {**values_of(run), "tags": split_tags(run.tags), "comments": comments}
    known |= {name: options.get(name) for name in ("revision", "planned")}
    if grading is not None:
        summary: dict[str, Any] = json.loads(grading.summary) if grading.summary else {}
        known |= {"grading": grading.id, "verdict": grading.verdict, "attempts": summary.get("attempts")}
        known["error_attempts"] = summary.get("error_attempts") or summary.get("failed_attempts")
        known["summary"] = summary or None
        known["cost"] = _cost(summary.get("usage") or {})
        known["headline"] = _headline(summary, grading.gate)
    return RunEntry(**known)


def _cost(by_role: dict[str, dict[str, Any]]) -> float | None:
    """Return what all roles cost together, None where a price is unknown."""
    used = total(Usage.model_validate(one) for one in by_role.values())
    return None if used is None else used.cost


def _headline(summary: dict[str, Any], gate: str | None) -> Headline | None:
    graders: list[dict[str, Any]] = summary.get("graders") or []
    name, target = failing_grader(summary.get("reasons") or [])
    for key, of in ((name, target), (gate, None), ("reward", None)):
        if found := next((one for one in graders if one["name"] == key and of in (None, one["target"])), None):
            break
    else:
        found = next((one for one in graders if not one.get("measured")), graders[0] if graders else None)
    return None if found is None else Headline(**{**found, "n": found["scored"]})


def sample_entry(index: AnyRow, attempt: AnyRow, score_rows: Sequence[AnyRow], comments: int = 0) -> SampleEntry:
    """Return an attempt by its rows of `standings`, `attempts` and `scores`, with how many `comments` it has."""
    sample: dict[str, Any] = json.loads(attempt.sample)
    return SampleEntry(
        sample_id=attempt.sample_id,
        target=attempt.target,
        trial=attempt.trial,
        position=index.position,
        title=title_of(sample) or attempt.sample_id,
        tags=sample.get("tags") or [],
        started_at=attempt.started_at,
        seconds=index.seconds,
        turns=index.turns,
        tokens=index.tokens,
        cost=index.cost,
        status=index.state,
        failure=failure_of_text(attempt.failure),
        cause=index.cause,
        scores=_score_entries(score_rows),
        comments=comments,
    )


def alike_errors(group: AnyRow, attempt: AnyRow, score: AnyRow | None) -> AlikeErrors:
    """Return a group of errors by its first attempt, and the score that has the error where the attempt has none."""
    known: dict[str, Any] = {"failure": failure_of_text(attempt.failure)}
    if attempt.failure is None and score is not None:
        known = {"grader": score.name, "failure": failure_of_text(score.failure), "reason": score.reason}
    return AlikeErrors(
        cause=group.cause,
        target=group.target,
        number=group.number,
        sample_id=attempt.sample_id,
        trial=attempt.trial,
        **known,
    )


def _score_entries(score_rows: Sequence[AnyRow]) -> list[ScoreEntry]:
    apart: dict[str, list[TurnScore]] = {}
    for row in score_rows:
        if row.turn is not None:
            apart.setdefault(row.name, []).append(
                TurnScore(
                    turn=row.turn,
                    state=row.state,
                    value=row.value,
                    measured=measured_in(row.state, row.value, row.raw),
                    passed=row.passed,
                )
            )
    return [
        ScoreEntry(
            kind=row.kind,
            name=row.name,
            state=row.state,
            value=row.value,
            measured=measured_in(row.state, row.value, row.raw),
            passed=row.passed,
            reason=shorten(row.reason, 3 * TITLE),
            failure=failure_of_text(row.failure),
            turns=apart.get(row.name, []) if row.kind == "grade" else [],
        )
        for row in score_rows
        if row.turn is None
    ]


def listed_score(row: AnyRow) -> ListedScore:
    """Return a row of `scores` with the key of its attempt."""
    return ListedScore(
        sample_id=row.sample_id,
        target=row.target,
        trial=row.trial,
        kind=row.kind,
        name=row.name,
        turn=row.turn,
        state=row.state,
        value=row.value,
        measured=measured_in(row.state, row.value, row.raw),
        passed=None if row.passed is None else bool(row.passed),
        reason=shorten(row.reason, 3 * TITLE),
        failure=failure_of_text(row.failure),
    )


def title_of(sample: dict[str, Any]) -> str:
    """Return the goal of a sample, or the beginning of its input, empty if it has neither."""
    opening: Any = sample.get("goal") or sample.get("input")
    if isinstance(opening, list):
        opening = next(iter(typing.cast("list[Any]", opening)), None)
    if isinstance(opening, dict):
        opening = typing.cast("dict[str, Any]", opening).get("content")
    words = " ".join(opening.split()) if isinstance(opening, str) else ""
    return words if len(words) <= TITLE else words[: TITLE - 1] + "…"
