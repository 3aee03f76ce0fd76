"""Phoenix: the samples of a run as a dataset, its conversations as traces, its scores as annotations.

A conversation whose recording was imported from Phoenix is annotated where it came from; any other becomes a trace of
the project `PHOENIX_PROJECT_NAME` (default: `vivavoce`), with a span for each turn.
Source: the generated types of arize-phoenix-client 3.5.0 (`__generated__/v1`), and for the upload of datasets, which
has none, what its `datasets.create_dataset` posts.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import Any, cast
from urllib.parse import quote

from vivavoce.errors import Fault
from vivavoce.features.publish.conversation import Conversation, Place, Span, conversations, spans
from vivavoce.features.publish.scores import (
    VALUES,
    Published,
    PublishedLabel,
    is_judged,
    published_labels,
    published_scores,
)
from vivavoce.features.publish.sending import OLDER_SERVER, Address, Ask, Kind, Request
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import strict_json
from vivavoce.wire.http import checked_url

FORMATS = frozenset(("openinference", "otel"))
"""Formats of rows whose traces are in Phoenix."""
_LISTS = ("span", "trace", "session")
DATASETS = Kind("datasets.jsonl", "/v1/datasets/upload?sync=true", "example")
PROJECTS = Kind("projects.jsonl", "/v1/projects", "project")
ANNOTATIONS = {of: Kind(f"{of}_annotations.jsonl", f"/v1/{of}_annotations", f"{of} annotation") for of in _LISTS}
_BATCH_SIZE = 100
_SUBSET_OPTIONS = ("max_samples", "tags", "samples")
_DUPLICATES, _RECEIVED = (re.compile(rf"total_{what}\W+(\d+)") for what in ("duplicates", "received"))


def project() -> str:
    """Return the project of new traces."""
    return os.environ.get("PHOENIX_PROJECT") or os.environ.get("PHOENIX_PROJECT_NAME") or "vivavoce"


def spans_kind() -> Kind:
    """Return where new traces are posted."""
    return Kind("spans.jsonl", f"/v1/projects/{quote(project(), safe='')}/spans", "trace")


def kinds() -> tuple[Kind, ...]:
    """Return everything that is posted, in its order."""
    return (DATASETS, PROJECTS, spans_kind(), *ANNOTATIONS.values())


def requests(graded: GradedRun, left_out: Counter[str]) -> Iterator[Request]:
    """Yield what is posted, in this order; what Phoenix cannot keep is counted in `left_out`."""
    yield from _dataset(graded, left_out)
    if any(each.is_new for each in conversations(graded, FORMATS)):
        yield Request(PROJECTS, {"name": project()})
    kind = spans_kind()
    for conversation in conversations(graded, FORMATS):
        if conversation.is_new:
            yield Request(kind, {"data": [_span(span, conversation) for span in spans(conversation)]})
    for at, of in enumerate(_LISTS):
        annotations = chain(_annotations(graded, of, Counter() if at else left_out), _labels(graded, of))
        while batch := [annotation for annotation, _ in zip(annotations, range(_BATCH_SIZE), strict=False)]:
            yield Request(ANNOTATIONS[of], {"data": batch}, len(batch))


def _dataset(graded: GradedRun, left_out: Counter[str]) -> Iterator[Request]:
    """Yield the dataset, which Phoenix makes equal to what is uploaded: part of one would remove the rest of it."""
    rows: dict[str, Conversation] = {}
    for conversation in conversations(graded, FORMATS):
        rows.setdefault(conversation.outcome.attempt.key.sample_id, conversation)
    if not rows:
        return
    if not graded.ended or graded.run.partial_of or any(graded.run.options.get(name) for name in _SUBSET_OPTIONS):
        left_out["example of a dataset that the run has only in part"] += len(rows)
        return
    body = {
        "action": "update",
        "name": graded.run.suite,
        "description": f"samples of the suite {graded.run.suite}",
        "inputs": [_input(conversation) for conversation in rows.values()],
        "outputs": [_output(conversation) for conversation in rows.values()],
        "metadata": [
            dict(cast("Mapping[str, Any]", conversation.row.get("metadata") or {})) for conversation in rows.values()
        ],
        "example_ids": list(rows),
    }
    yield Request(DATASETS, body, len(rows), Request(DATASETS, {**body, "action": "create"}, len(rows)))


def _input(conversation: Conversation) -> dict[str, Any]:
    row = {name: value for name, value in conversation.row.items() if name not in ("id", "ground_truth", "metadata")}
    if "input" not in row and "messages" not in row:
        row["messages"] = [message.to_dict() for message in conversation.outcome.attempt.trajectory.messages]
    return row


def _output(conversation: Conversation) -> dict[str, Any]:
    truth = conversation.row.get("ground_truth")
    return {} if truth is None else {"ground_truth": truth}


def _annotations(graded: GradedRun, of: str, left_out: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield the annotations of spans, of traces or of sessions."""
    for conversation in conversations(graded, FORMATS):
        for score in published_scores(conversation, graded.grading, left_out):
            if _about(score.place) == of:
                yield _annotation(score, of, graded.grading.id)


def _labels(graded: GradedRun, of: str) -> Iterator[dict[str, Any]]:
    """Yield the labels of spans, of traces or of sessions as annotations by people."""
    for label in published_labels(graded, FORMATS):
        if _about(label.place) == of:
            yield _label(label, of)


def _about(place: Place) -> str:
    return "session" if place.session is not None else "trace" if place.span is None else "span"


def _annotation(score_to_send: Published, of: str, grading: str) -> dict[str, Any]:
    score = score_to_send.score
    value = score.raw if score.value is None else score.value
    result = {
        "label": score.raw if isinstance(score.raw, str) else {True: "pass", False: "fail", None: None}[score.passed],
        "score": value if isinstance(value, float) else None,
        "explanation": score.reason,
    }
    kind = "LLM" if is_judged(score) else "CODE"
    return _build_annotation(score_to_send, of, kind, result, grading)


def _label(published_label: PublishedLabel, of: str) -> dict[str, Any]:
    label = published_label.label
    result = {"label": label.verdict, "score": VALUES[label.verdict], "explanation": label.note}
    return _build_annotation(published_label, of, "HUMAN", result, f"{published_label.about['run']} {label.author}")


def _build_annotation(
    score_or_label: Published | PublishedLabel, of: str, kind: str, result: Mapping[str, Any], identifier: str
) -> dict[str, Any]:
    """Return an annotation; one with the same name and identifier about the same is replaced."""
    place = score_or_label.place
    ids = {"span": place.span, "trace": place.trace, "session": place.session}
    turn = "" if "turn" not in score_or_label.about or of == "span" else f" turn {score_or_label.about['turn']}"
    return {
        "name": score_or_label.name,
        "annotator_kind": kind,
        f"{of}_id": ids[of],
        "result": {name: item for name, item in result.items() if item is not None},
        "metadata": score_or_label.about,
        "identifier": f"{identifier}{turn}",
    }


def _span(span: Span, conversation: Conversation) -> dict[str, Any]:
    key = conversation.outcome.attempt.key
    known: dict[str, Any] = {
        "openinference.span.kind": "CHAIN" if span.parent is None else "AGENT",
        "input.value": strict_json(span.inputs),
        "input.mime_type": "application/json",
        "output.value": strict_json(span.outputs),
        "output.mime_type": "application/json",
        "metadata": strict_json({"run": conversation.run, "sample": key.sample_id, "target": key.target}),
    }
    if span.usage is not None:
        known["llm.token_count.prompt"] = span.usage.input_tokens
        known["llm.token_count.completion"] = span.usage.output_tokens
    return {
        "name": span.name,
        "context": {"trace_id": span.trace, "span_id": span.id},
        **({} if span.parent is None else {"parent_id": span.parent}),
        "span_kind": known["openinference.span.kind"],
        "start_time": _iso(span.start),
        "end_time": _iso(span.end),
        "status_code": "OK" if span.failure is None else "ERROR",
        "status_message": span.failure or "",
        "attributes": known,
    }


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def address() -> Address:
    """Return where Phoenix is and who asks, as its own packages read it from the environment.

    Raises:
        UsageError: the address is invalid.
    """
    names = ("PHOENIX_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_BASE_URL")
    name = next((each for each in names if os.environ.get(each)), names[1])
    place = checked_url(os.environ.get(name) or "http://localhost:6006", name).rstrip("/").removesuffix("/v1/traces")
    key = os.environ.get("PHOENIX_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return Address("Phoenix", place.rstrip("/"), headers, (key,) if key else (), has, list_refusals, ready)


async def ready(request: Request, ask: Ask) -> Request | None:
    """Return what to post of a request, None for a project that is there: another of its name breaks the server."""
    if request.kind != PROJECTS:
        return request
    try:
        project_data = await ask(f"{PROJECTS.path}/{quote(request.body['name'], safe='')}", None)
    except Fault as fault:
        if fault.status not in OLDER_SERVER:
            raise
        return request
    known = cast("dict[str, Any]", project_data) if isinstance(project_data, dict) else {}
    return (
        None if isinstance(known.get("data"), dict) and known["data"].get("name") == request.body["name"] else request
    )


def has(request: Request, fault: Fault) -> bool:
    """Return whether a refusal says that Phoenix has it already: the project, the dataset, or each span of a trace."""
    if request.kind in (PROJECTS, DATASETS):
        return fault.status == 409
    duplicates, received = (search.search(fault.evidence or "") for search in (_DUPLICATES, _RECEIVED))
    return bool(fault.status == 400 and duplicates and received and duplicates[1] == received[1])


def list_refusals(answer: Any) -> list[str]:
    """Return why items of a request were refused that was answered with a success; Phoenix refuses all or nothing."""
    del answer
    return []
