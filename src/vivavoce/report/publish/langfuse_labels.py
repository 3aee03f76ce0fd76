"""Labels as Langfuse takes them: scores of the source `ANNOTATION`, each with a score config of pass, fail and unsure.

Source: `api/scores` and `api/score_configs` of Langfuse's Python package 5.0.4. Servers that know no such scores get
them without the source.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

from vivavoce.errors import Fault, UsageError
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.publish.conversation import stable_id
from vivavoce.report.publish.labels import PublishedLabel, published_labels
from vivavoce.report.publish.langfuse_scores import ENVIRONMENT, OLDER_SCORES, SCORES, as_events, iso
from vivavoce.report.publish.sending import OLDER_SERVER, Ask, Kind, Request

LABELS = Kind("labels.jsonl", SCORES.path, "label")
_OLDER_LABELS = Kind(LABELS.file, OLDER_SCORES.path, LABELS.item)
CONFIGS = "/api/public/score-configs"
CATEGORIES = [{"label": "pass", "value": 1}, {"label": "fail", "value": 0}, {"label": "unsure", "value": 2}]
_AT_ONCE = 100
_LONGEST = 35
"""Characters of the name of a score config."""
_NOT_IN_A_NAME = re.compile(r"[^\w .()-]", re.ASCII)


def label_requests(graded: GradedRun, formats: frozenset[str]) -> Iterator[Request]:
    """Yield the labels of a run, many in a list; rows of these formats were imported from Langfuse."""
    found = map(_score, published_labels(graded, formats))
    while batch := list(islice(found, _AT_ONCE)):
        plain = [{name: value for name, value in one.items() if name != "source"} for one in batch]
        yield Request(LABELS, batch, len(batch), Request(_OLDER_LABELS, as_events(plain), len(batch)))


def _score(found: PublishedLabel) -> dict[str, Any]:
    """Return a label; its time is that of the conversation, for another time would make another score of it."""
    score: dict[str, Any] = {
        "id": found.id,
        "traceId": found.place.trace,
        "observationId": found.place.span,
        "sessionId": found.place.session,
        "name": _config_name(found.name),
        "value": found.label.verdict,
        "dataType": "CATEGORICAL",
        "source": "ANNOTATION",
        "comment": found.label.note,
        "metadata": found.about,
        "environment": ENVIRONMENT if found.is_new else None,
        "timestamp": iso(found.started_at),
    }
    return {name: value for name, value in score.items() if value is not None}


def _config_name(name: str) -> str:
    """Return a name that a score config may have; a changed one gets an end of its own."""
    allowed = _NOT_IN_A_NAME.sub("_", name)
    if allowed == name and len(name) <= _LONGEST:
        return name
    return f"{allowed[: _LONGEST - 7]}-{stable_id(name, length=6)}"


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
                ids = self._ids = await _known(ask) if self._ids is None else self._ids
                for name in {one["name"] for one in labels.body} - set(ids):
                    ids[name] = await _made(ask, name)
            except Fault as fault:
                if fault.status not in OLDER_SERVER or labels.older is None:
                    raise
                return labels.older
        body = [{**one, "configId": ids[one["name"]]} for one in labels.body]
        return Request(labels.kind, body, labels.items, labels.older)


async def _known(ask: Ask) -> dict[str, str]:
    """Return the ids of the score configs of labels that are there."""
    found: dict[str, str] = {}
    page = pages = 1
    while page <= pages:
        answer = cast("Mapping[str, Any]", await ask(f"{CONFIGS}?page={page}&limit={_AT_ONCE}", None))
        for one in cast("Sequence[Mapping[str, Any]]", answer.get("data") or ()):
            if _is_of_labels(one):
                found.setdefault(one["name"], one["id"])
        meta = cast("Mapping[str, Any]", answer.get("meta") or {})
        pages = int(meta.get("totalPages") or 0)
        page += 1
    return found


def _is_of_labels(config: Mapping[str, Any]) -> bool:
    labels = {one.get("label") for one in config.get("categories") or ()}
    is_there = config.get("dataType") == "CATEGORICAL" and not config.get("isArchived")
    return is_there and labels >= {one["label"] for one in CATEGORIES}


async def _made(ask: Ask, name: str) -> str:
    """Make a score config and return its id.

    Raises:
        UsageError: the answer has none.
    """
    made = await ask(CONFIGS, {"name": name, "dataType": "CATEGORICAL", "categories": CATEGORIES})
    if not isinstance(made, dict) or not isinstance(cast("dict[str, Any]", made).get("id"), str):
        raise UsageError(f"Langfuse made no score config '{name}', which labels need; make it there by hand")
    return cast("dict[str, str]", made)["id"]
