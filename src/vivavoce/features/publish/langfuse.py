"""Langfuse: the samples of a run as a dataset, its conversations as traces, its scores on these or on imported traces.

A conversation whose recording was imported from Langfuse is scored where it came from; any other becomes a trace, with
a span for each turn, in the environment `vivavoce`.
Source: the request models of Langfuse's Python package 5.0.4 (`api/dataset_items`, `api/datasets`) and its names of
attributes of spans.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

from vivavoce.errors import Fault, UsageError
from vivavoce.features.publish.conversation import Conversation, Span, conversations, spans, stable_id
from vivavoce.features.publish.langfuse_scores import (
    ENVIRONMENT,
    LABELS,
    SCORES,
    Configs,
    label_requests,
    score_requests,
)
from vivavoce.features.publish.sending import Address, Kind, Request
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import strict_json
from vivavoce.wire.http import checked_url

FORMATS = frozenset(("langfuse", "otel"))
"""Formats of rows whose traces are in Langfuse."""
_REAL_TIME = (("x-langfuse-ingestion-version", "4"),)
DATASETS = Kind("datasets.jsonl", "/api/public/v2/datasets", "dataset")
ITEMS = Kind("dataset-items.jsonl", "/api/public/dataset-items", "dataset item")
TRACES = Kind("traces.jsonl", "/api/public/otel/v1/traces", "trace", _REAL_TIME)


def kinds() -> tuple[Kind, ...]:
    """Return everything that is posted, in its order."""
    return (DATASETS, ITEMS, TRACES, SCORES, LABELS)


def requests(graded: GradedRun, left_out: Counter[str]) -> Iterator[Request]:
    """Yield what is posted, in this order; what Langfuse cannot keep is counted in `left_out`."""
    suite = graded.run.suite
    yield Request(DATASETS, {"name": suite, "description": f"samples of the suite {suite}"})
    seen: set[str] = set()
    for conversation in conversations(graded, FORMATS):
        sample = conversation.outcome.attempt.key.sample_id
        if sample not in seen:
            seen.add(sample)
            yield Request(ITEMS, _item(suite, sample, conversation))
    for conversation in conversations(graded, FORMATS):
        if conversation.is_new:
            yield Request(TRACES, _trace(suite, conversation))
    yield from score_requests(graded, FORMATS, left_out)
    yield from label_requests(graded, FORMATS)


def _item(suite: str, sample: str, conversation: Conversation) -> dict[str, Any]:
    row = {name: value for name, value in conversation.row.items() if name not in ("id", "ground_truth", "metadata")}
    if "input" not in row and "messages" not in row:
        row["messages"] = [message.to_dict() for message in conversation.outcome.attempt.trajectory.messages]
    item: dict[str, Any] = {
        "datasetName": suite,
        "id": f"vivavoce-{stable_id(suite, sample)}",
        "input": row,
        "expectedOutput": conversation.row.get("ground_truth"),
        "metadata": {**cast("Mapping[str, Any]", conversation.row.get("metadata") or {}), "sample": sample},
        "sourceTraceId": conversation.sources[0] if conversation.sources else None,
    }
    return {name: value for name, value in item.items() if value is not None}


def _trace(suite: str, conversation: Conversation) -> dict[str, Any]:
    """Return a new trace as a request of the OpenTelemetry protocol in JSON."""
    key = conversation.outcome.attempt.key
    shared = {
        "langfuse.trace.name": f"{suite}: {key.sample_id}",
        "langfuse.environment": ENVIRONMENT,
        "langfuse.trace.metadata.run": conversation.run,
        "langfuse.trace.metadata.sample": key.sample_id,
        "langfuse.trace.metadata.target": key.target,
    }
    scope = {"scope": {"name": "vivavoce"}, "spans": [_span(span, shared) for span in spans(conversation)]}
    return {
        "resourceSpans": [{"resource": {"attributes": _attributes({"service.name": suite})}, "scopeSpans": [scope]}]
    }


def _span(span: Span, shared: Mapping[str, str]) -> dict[str, Any]:
    known = {
        **shared,
        "langfuse.observation.type": "span" if span.usage is None else "generation",
        "langfuse.observation.input": strict_json(span.inputs),
        "langfuse.observation.output": strict_json(span.outputs),
    }
    if span.usage is not None:
        used = {"input": span.usage.input_tokens, "output": span.usage.output_tokens}
        known["langfuse.observation.usage_details"] = json.dumps(used)
        if span.usage.cost is not None:
            known["langfuse.observation.cost_details"] = json.dumps({"total": span.usage.cost})
    if span.failure is not None:
        known |= {"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": span.failure}
    return {
        "traceId": span.trace,
        "spanId": span.id,
        **({} if span.parent is None else {"parentSpanId": span.parent}),
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(int(span.start * 1e9)),
        "endTimeUnixNano": str(int(span.end * 1e9)),
        "attributes": _attributes(known),
        "status": {} if span.failure is None else {"code": 2, "message": span.failure},
    }


def _attributes(known: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in known.items()]


def address() -> Address:
    """Return where Langfuse is and who asks, as its own packages read it from the environment.

    Raises:
        UsageError: a key is missing, or the address is invalid.
    """
    public, secret = (os.environ.get(name) for name in ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"))
    if not public or not secret:
        raise UsageError("Langfuse needs keys: set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY")
    place = os.environ.get("LANGFUSE_BASE_URL") or os.environ.get("LANGFUSE_HOST") or "https://cloud.langfuse.com"
    user = b64encode(f"{public}:{secret}".encode()).decode()
    url = checked_url(place, "LANGFUSE_BASE_URL").rstrip("/")
    return Address(
        "Langfuse", url, {"Authorization": f"Basic {user}"}, (secret, user), has, list_refusals, Configs().ready
    )


def has(request: Request, fault: Fault) -> bool:
    """Return whether a refusal says that Langfuse has it already; it never does, for the same ids are updated."""
    del request, fault
    return False


def list_refusals(answer: Any) -> list[str]:
    """Return why items of a request were refused that was answered with a success."""
    if not isinstance(answer, dict):
        return []
    known = cast("dict[str, Any]", answer)
    partial = known.get("partialSuccess")
    if isinstance(partial, dict) and (lost := cast("dict[str, Any]", partial)).get("rejectedSpans"):
        return [str(lost.get("errorMessage") or "spans were rejected")]
    errors: Any = known.get("errors")
    items = cast("list[Any]", errors) if isinstance(errors, list) else []
    return [str(cast("dict[str, Any]", item).get("message")) if isinstance(item, dict) else str(item) for item in items]
