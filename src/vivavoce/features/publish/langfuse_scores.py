"""Scores and labels as Langfuse takes them."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, cast

from vivavoce.errors import Fault, UsageError
from vivavoce.features.publish.conversation import conversations, stable_id
from vivavoce.features.publish.scores import Published, PublishedLabel, published_labels, published_scores
from vivavoce.features.publish.sending import OLDER_SERVER, Ask, Kind, Request
from vivavoce.records.run import Grading
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import strict_json

ENVIRONMENT = "vivavoce"
"""Where Langfuse keeps traces of tests apart from those of users."""
SCORES = Kind("scores.jsonl", "/api/public/scores", "score")
OLDER_SCORES = Kind(SCORES.file, "/api/public/ingestion", "score")
_BATCH_SIZE = 100
_MAX_BYTES = 900_000
"""Bytes of a list of scores; Langfuse takes 1 MiB."""


def score_requests(graded: GradedRun, formats: frozenset[str], left_out: Counter[str]) -> Iterator[Request]:
    """Yield the scores of a run, many in a list; rows of these formats were imported from Langfuse."""
    yield from _batches(_scores(graded, formats, left_out))


def _scores(graded: GradedRun, formats: frozenset[str], left_out: Counter[str]) -> Iterator[dict[str, Any]]:
    for conversation in conversations(graded, formats):
        for score in published_scores(conversation, graded.grading, left_out):
            yield _score(score, graded.grading, conversation.is_new)


def _score(score_to_send: Published, grading: Grading, is_new: bool) -> dict[str, Any]:
    """Return a score as Langfuse takes it; the same id and time make it the same score when it is sent again."""
    kind, value = _value(score_to_send)
    score: dict[str, Any] = {
        "id": score_to_send.id,
        "traceId": score_to_send.place.trace,
        "observationId": score_to_send.place.span,
        "sessionId": score_to_send.place.session,
        "name": score_to_send.name,
        "value": value,
        "dataType": kind,
        "comment": score_to_send.score.reason,
        "metadata": score_to_send.about,
        "environment": ENVIRONMENT if is_new else None,
        "timestamp": iso(grading.created_at),
    }
    return {name: value for name, value in score.items() if value is not None}


def _value(score_to_send: Published) -> tuple[str, float | str]:
    raw, value = score_to_send.score.raw, score_to_send.score.value
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
        if batch and (len(batch) == _BATCH_SIZE or size + length > _MAX_BYTES):
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
        {"id": stable_id("event", score["id"]), "type": "score-create", "timestamp": score["timestamp"], "body": score}
        for score in scores
    ]
    return {"batch": events}


def iso(seconds: float) -> str:
    """Return a time as Langfuse writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


LABELS = Kind("labels.jsonl", SCORES.path, "label")
_OLDER_LABELS = Kind(LABELS.file, OLDER_SCORES.path, LABELS.item)
CONFIGS = "/api/public/score-configs"
CATEGORIES = [{"label": "pass", "value": 1}, {"label": "fail", "value": 0}, {"label": "unsure", "value": 2}]

_MAX_NAME_CHARS = 35
"""Characters of the name of a score config."""
_NOT_IN_A_NAME = re.compile(r"[^\w .()-]", re.ASCII)


def label_requests(graded: GradedRun, formats: frozenset[str]) -> Iterator[Request]:
    """Yield the labels of a run, many in a list; rows of these formats were imported from Langfuse."""
    scores = map(_label_score, published_labels(graded, formats))
    while batch := list(islice(scores, _BATCH_SIZE)):
        plain = [{name: value for name, value in score.items() if name != "source"} for score in batch]
        yield Request(LABELS, batch, len(batch), Request(_OLDER_LABELS, as_events(plain), len(batch)))


def _label_score(published_label: PublishedLabel) -> dict[str, Any]:
    """Return a label; its time is that of the conversation, for another time would make another score of it."""
    score: dict[str, Any] = {
        "id": published_label.id,
        "traceId": published_label.place.trace,
        "observationId": published_label.place.span,
        "sessionId": published_label.place.session,
        "name": _config_name(published_label.name),
        "value": published_label.label.verdict,
        "dataType": "CATEGORICAL",
        "source": "ANNOTATION",
        "comment": published_label.label.note,
        "metadata": published_label.about,
        "environment": ENVIRONMENT if published_label.is_new else None,
        "timestamp": iso(published_label.started_at),
    }
    return {name: value for name, value in score.items() if value is not None}


def _config_name(name: str) -> str:
    """Return a name that a score config may have; a changed one gets an end of its own."""
    allowed = _NOT_IN_A_NAME.sub("_", name)
    if allowed == name and len(name) <= _MAX_NAME_CHARS:
        return name
    return f"{allowed[: _MAX_NAME_CHARS - 7]}-{stable_id(name, length=6)}"


@dataclass(slots=True)
class Configs:
    """The score configs of a project, by name; those that are missing are made."""

    _ids: dict[str, str] | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ready(self, labels: Request, ask: Ask) -> Request:
        """Return labels with the ids of their score configs, or as an older server takes them that has none.

        Any other request is returned as it is.
        """
        if labels.kind != LABELS:
            return labels
        async with self._lock:
            try:
                ids = self._ids = await _load_config_ids(ask) if self._ids is None else self._ids
                for name in {label["name"] for label in labels.body} - set(ids):
                    ids[name] = await _create_config(ask, name)
            except Fault as fault:
                if fault.status not in OLDER_SERVER or labels.older is None:
                    raise
                return labels.older
        body = [{**label, "configId": ids[label["name"]]} for label in labels.body]
        return Request(labels.kind, body, labels.items, labels.older)


async def _load_config_ids(ask: Ask) -> dict[str, str]:
    """Return the ids of the score configs of labels that are there."""
    ids: dict[str, str] = {}
    page = pages = 1
    while page <= pages:
        answer = cast("Mapping[str, Any]", await ask(f"{CONFIGS}?page={page}&limit={_BATCH_SIZE}", None))
        for config in cast("Sequence[Mapping[str, Any]]", answer.get("data") or ()):
            if _is_of_labels(config):
                ids.setdefault(config["name"], config["id"])
        meta = cast("Mapping[str, Any]", answer.get("meta") or {})
        pages = int(meta.get("totalPages") or 0)
        page += 1
    return ids


def _is_of_labels(config: Mapping[str, Any]) -> bool:
    labels = {category.get("label") for category in config.get("categories") or ()}
    is_there = config.get("dataType") == "CATEGORICAL" and not config.get("isArchived")
    return is_there and labels >= {category["label"] for category in CATEGORIES}


async def _create_config(ask: Ask, name: str) -> str:
    """Make a score config and return its id.

    Raises:
        UsageError: the answer has none.
    """
    config = await ask(CONFIGS, {"name": name, "dataType": "CATEGORICAL", "categories": CATEGORIES})
    if not isinstance(config, dict) or not isinstance(cast("dict[str, Any]", config).get("id"), str):
        raise UsageError(f"Langfuse did not create the score config '{name}', which labels need; create it in Langfuse")
    return cast("dict[str, str]", config)["id"]
