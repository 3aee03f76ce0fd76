"""Scores as Langfuse takes them.

Source: the request models of Langfuse's Python package 5.0.4 (`api/scores`); for servers that take no list of scores,
`api/ingestion` of 4.18.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from vivavoce.records.run import Grading
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.publish.conversation import conversations, stable_id
from vivavoce.report.publish.scores import Published, published
from vivavoce.report.publish.sending import Kind, Request
from vivavoce.report.strict_json import strict_json

ENVIRONMENT = "vivavoce"
"""Where Langfuse keeps traces of tests apart from those of users."""
SCORES = Kind("scores.jsonl", "/api/public/scores", "score")
OLDER_SCORES = Kind(SCORES.file, "/api/public/ingestion", "score")
_AT_ONCE = 100
_LARGEST = 900_000
"""Bytes of a list of scores; Langfuse takes 1 MiB."""


def score_requests(graded: GradedRun, formats: frozenset[str], left_out: Counter[str]) -> Iterator[Request]:
    """Yield the scores of a run, many in a list; rows of these formats were imported from Langfuse."""
    yield from _batches(_scores(graded, formats, left_out))


def _scores(graded: GradedRun, formats: frozenset[str], left_out: Counter[str]) -> Iterator[dict[str, Any]]:
    for one in conversations(graded, formats):
        for found in published(one, graded.grading, left_out):
            yield _score(found, graded.grading, one.is_new)


def _score(found: Published, grading: Grading, is_new: bool) -> dict[str, Any]:
    """Return a score as Langfuse takes it; the same id and time make it the same score when it is sent again."""
    kind, value = _value(found)
    score: dict[str, Any] = {
        "id": found.id,
        "traceId": found.place.trace,
        "observationId": found.place.span,
        "sessionId": found.place.session,
        "name": found.name,
        "value": value,
        "dataType": kind,
        "comment": found.score.reason,
        "metadata": found.about,
        "environment": ENVIRONMENT if is_new else None,
        "timestamp": iso(grading.created_at),
    }
    return {name: value for name, value in score.items() if value is not None}


def _value(found: Published) -> tuple[str, float | str]:
    raw, value = found.score.raw, found.score.value
    if isinstance(raw, bool):
        return "BOOLEAN", float(raw)
    if isinstance(raw, str):
        return "CATEGORICAL", raw
    return "NUMERIC", value if value is not None else cast("float", raw)


def _batches(scores: Iterator[dict[str, Any]]) -> Iterator[Request]:
    batch: list[dict[str, Any]] = []
    size = 0
    for score in scores:
        length = len(strict_json(score).encode())
        if batch and (len(batch) == _AT_ONCE or size + length > _LARGEST):
            yield _scores_request(batch)
            batch, size = [], 0
        batch.append(score)
        size += length + 1
    if batch:
        yield _scores_request(batch)


def _scores_request(batch: list[dict[str, Any]]) -> Request:
    return Request(SCORES, batch, len(batch), Request(OLDER_SCORES, as_events(batch), len(batch)))


def as_events(scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return scores as servers take them that take no list of scores."""
    events = [
        {"id": stable_id("event", one["id"]), "type": "score-create", "timestamp": one["timestamp"], "body": one}
        for one in scores
    ]
    return {"batch": events}


def iso(seconds: float) -> str:
    """Return a time as Langfuse writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
