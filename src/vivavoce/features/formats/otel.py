"""Spans and log records of OpenTelemetry, and the conversations that they make.

Read are: OTLP as JSON (objects with `resourceSpans` or `resourceLogs`, or the members of such lists), the spans that
OpenTelemetry's own SDK prints, and those that Phoenix exports in OpenInference's words, as JSON or as the columns of a
table. A conversation is written as one span: the last call of the model, which was given everything before. It begins
with the first message that has a time and ends with the last. What the conventions have no name for is in an attribute
of ours.
Source: the OTLP specification and its protocol buffers; semantic-conventions-genai; `ReadableSpan.to_json` of the SDK;
Phoenix's REST reference and the columns of `get_spans_dataframe` of its Python client.
"""

from __future__ import annotations

import ast
import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, cast

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.conversations.format import ROW_FIELDS, Format, Loss, Member, Pieces, Place, Record, Row
from vivavoce.conversations.shapes import Message, fields_in, first_in, objects_in, seconds, taken_back, words_in
from vivavoce.features.formats import gen_ai, openinference
from vivavoce.features.formats.dialects import NAME, parse_json, write_message
from vivavoce.features.formats.steps import STEP, Step, hand_down
from vivavoce.features.formats.traced import conversations
from vivavoce.wire.otlp import SCORE_EVENT, nanoseconds, otlp_attributes
from vivavoce.wire.own_traffic import is_own

LISTS = (
    ("resourceSpans",),
    ("trace", "resourceSpans"),
    ("resourceLogs",),
    ("resource_spans",),
    ("batches",),
    ("data",),
    ("spans",),
)
"""Where in a document spans may be."""

_SESSIONS = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "langsmith.trace.session_id",
    *(f"traceloop.association.properties.{key}" for key in ("session_id", "conversation_id", "thread_id", "chat_id")),
)
_INTEGER = re.compile(r"-?\d{1,20}")
_HEX = frozenset("0123456789abcdefABCDEF")
_TABLE = "attributes."
_WHOLE = frozenset(
    (
        *("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions"),
        *("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "metadata"),
    )
)
"""Attributes whose values are objects; in others' names, what is nested is a part of the name."""
MAX_NAME_CHARS = 1_000
"""Characters of the whole name of an attribute that is nested."""
_TEXTS = (".value", ".content", ".arguments", "_parameters")
"""How the names of attributes end that hold JSON as a text."""


def is_otlp(value: Any) -> bool:
    """Return whether a record is OTLP, or a span that OpenTelemetry's SDK printed."""
    if not isinstance(value, dict):
        return False
    fields = cast("Row", value)
    resources = _first(fields, "resourceSpans", "resourceLogs", "resource_spans", "resource_logs", "batches")
    if isinstance(resources, list):
        return all(isinstance(resource, dict) for resource in cast("list[Any]", resources))
    if isinstance(_first(fields, "scopeSpans", "scopeLogs", "scope_spans", "instrumentationLibrarySpans"), list):
        return True
    context: object = fields.get("context")
    return isinstance(context, dict) and str(cast("Row", context).get("trace_id")).startswith("0x")


def is_phoenix(value: Any) -> bool:
    """Return whether a record is a span as Phoenix exports it."""
    if not isinstance(value, dict):
        return False
    fields = cast("Row", value)
    context: object = fields.get("context")
    if isinstance(context, dict):
        return "trace_id" in context and "span_kind" in fields
    return "context.trace_id" in fields and ("span_kind" in fields or any(key.startswith(_TABLE) for key in fields))


def members(records: Iterable[Record], loss: Loss) -> Iterator[Member]:
    """Yield the spans and log records of a file, each with the trace and the conversation that it belongs to."""
    for record in records:
        fields = record.fields
        spans = None if fields is None else _spans(fields)
        if spans is None:
            loss.add_broken("a record is neither a span nor an export of spans")
            continue
        for span in spans:
            if not span["trace"]:
                loss.add_broken("a span without the id of its trace")
                continue
            yield _member(record.place, span)


def _member(place: Place, span: Row) -> Member:
    attributes = span["attributes"]
    conversation = first_in(attributes, _SESSIONS)
    identity = None if span.get("is_log") else span["id"] or None
    return Member(
        place,
        span,
        span["trace"],
        None if conversation is None else str(conversation),
        identity,
        span["id"] if span.get("is_log") else span["parent"],
        span["start"],
    )


def _spans(fields: Row) -> Iterable[Row] | None:
    """Return the spans of a record in our shape, None if it is not a record of spans."""
    if isinstance(
        resources := _first(fields, "resourceSpans", "resourceLogs", "resource_spans", "resource_logs", "batches"), list
    ):
        return (span for resource in objects_in(resources) for span in _of_resource(resource))
    if any(key in fields for key in _SCOPES):
        return _of_resource(fields)
    if ("traceId" in fields or "trace_id" in fields) and isinstance(fields.get("attributes"), list | dict):
        return (_otlp_span(fields),)
    if isinstance(context := fields.get("context"), dict):
        return (_plain_span(fields, cast("Row", context)),)
    if "context.trace_id" in fields:
        return (_row_of_a_table(fields),)
    return None


_SCOPES = ("scopeSpans", "scopeLogs", "scope_spans", "scope_logs", "instrumentationLibrarySpans")


def _of_resource(resource: Row) -> Iterator[Row]:
    about = _attributes(fields_in(resource.get("resource")).get("attributes"))
    for scope in objects_in(_first(resource, *_SCOPES)):
        for span in map(_otlp_span, objects_in(scope.get("spans"))):
            yield _with_mark(span, about)
        for log in map(_otlp_log, objects_in(_first(scope, "logRecords", "log_records"))):
            yield _with_mark(log, about)


def _with_mark(span: Row, resource: Row) -> Row:
    """Return a span that says whether it is of a test and not of a user."""
    if is_own(span["trace"], span["attributes"], resource):
        span["is_own"] = True
    return span


def _otlp_span(span: Row) -> Row:
    wrong = fields_in(span.get("status"))
    return {
        "trace": _id(_first(span, "traceId", "trace_id")),
        "id": _id(_first(span, "spanId", "span_id")),
        "parent": _id(_first(span, "parentSpanId", "parent_span_id", "parent_id")) or None,
        "name": words_in(span.get("name")),
        "start": seconds(_first(span, "startTimeUnixNano", "start_time_unix_nano", "start_time")),
        "end": seconds(_first(span, "endTimeUnixNano", "end_time_unix_nano", "end_time")),
        "attributes": _attributes(span.get("attributes")),
        "events": [_otlp_event(event) for event in objects_in(span.get("events"))],
        "error": words_in(wrong.get("message")) or "error" if wrong.get("code") in (2, "STATUS_CODE_ERROR") else None,
    }


def _otlp_event(event: Row) -> Row:
    time = _first(event, "timeUnixNano", "time_unix_nano", "timestamp")
    return {
        "name": words_in(event.get("name")),
        "time": seconds(time),
        "attributes": _attributes(event.get("attributes")),
    }


def _otlp_log(log: Row) -> Row:
    """Return a log record as a span that is one event; its id is that of the span it belongs to."""
    attributes = _attributes(log.get("attributes"))
    name = words_in(_first(log, "eventName", "event_name")) or words_in(attributes.get("event.name"))
    time = seconds(_first(log, "timeUnixNano", "time_unix_nano")) or seconds(
        _first(log, "observedTimeUnixNano", "observed_time_unix_nano")
    )
    event = {"name": name, "time": time, "attributes": attributes, "body": _value(log.get("body"))}
    return {
        "trace": _id(_first(log, "traceId", "trace_id")) or words_in(attributes.get("gen_ai.conversation.id")),
        "id": _id(_first(log, "spanId", "span_id")),
        "parent": None,
        "name": name,
        "start": time,
        "end": None,
        "attributes": attributes,
        "events": [event],
        "error": None,
        "is_log": True,
    }


def _plain_span(span: Row, context: Row) -> Row:
    status = fields_in(span.get("status")) or {
        "status_code": span.get("status_code"),
        "description": span.get("status_message"),
    }
    attributes = flat(span.get("attributes"))
    if span.get("span_kind") is not None:
        attributes.setdefault("openinference.span.kind", span["span_kind"])
    return {
        "trace": _id(context.get("trace_id")),
        "id": _id(context.get("span_id")),
        "parent": _id(span.get("parent_id")) or None,
        "name": words_in(span.get("name")),
        "start": seconds(span.get("start_time")),
        "end": seconds(span.get("end_time")),
        "attributes": attributes,
        "events": [
            {
                "name": words_in(event.get("name")),
                "time": seconds(event.get("timestamp")),
                "attributes": flat(event.get("attributes")),
            }
            for event in objects_in(_parse_text(span.get("events")))
        ],
        "error": words_in(status.get("description")) or "error" if status.get("status_code") == "ERROR" else None,
    }


def _row_of_a_table(row: Row) -> Row:
    attributes = {
        key[len(_TABLE) :]: value if key.endswith(_TEXTS) else _parse_text(value)
        for key, value in row.items()
        if key.startswith(_TABLE)
    }
    context = {"trace_id": row.get("context.trace_id"), "span_id": row.get("context.span_id")}
    if context["span_id"] is None:
        context["span_id"] = _first(row, "span_id", "__index_level_0__")
    return _plain_span({**row, "attributes": {k: v for k, v in attributes.items() if v is not None}}, context)


def flat(value: Any) -> Row:
    """Return attributes by their whole names; parts of them may be nested objects or lists of such.

    Those with a longer name than MAX_NAME_CHARS are left out: each value below a long name repeats it.
    """
    flattened: Row = {}
    value = _parse_text(value)
    waiting: list[tuple[str, Any]] = list(_members("", value))
    while waiting:
        name, inner = waiting.pop()
        if len(name) > MAX_NAME_CHARS:
            continue
        below = list(_members(f"{name}.", inner)) if _is_nested(name, inner) else []
        if below:
            waiting += below
        elif inner is not None:
            flattened[name] = inner
    return flattened


def _is_nested(name: str, value: Any) -> bool:
    """Return whether a value is a part of the name of attributes, and no value that an attribute has."""
    if isinstance(value, dict):
        return name not in _WHOLE
    items = cast("list[Any]", value) if isinstance(value, list) and name not in _WHOLE else []
    return bool(items) and all(isinstance(item, dict) for item in items)


def _members(before: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in cast("Row", value).items():
            yield f"{before}{key}", inner
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield f"{before}{number}", inner


def _attributes(value: Any) -> Row:
    return flat(value) if isinstance(value, dict) else _of_pairs(value)


def _of_pairs(value: Any) -> Row:
    return {str(key): _value(pair.get("value")) for pair in objects_in(value) if (key := pair.get("key")) is not None}


def _value(value: Any) -> Any:
    """Return the plain value of one in OTLP's shape, which says its type."""
    if not isinstance(value, dict):
        return value
    for kind, inner in cast("Row", value).items():
        if kind in _PLAIN:
            return inner
        if kind in _READERS:
            return _READERS[kind](inner)
    return None


def _integer(value: Any) -> Any:
    return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else value


def _double(value: Any) -> Any:
    return value if isinstance(value, int | float) else None


def _array(value: Any) -> list[Any]:
    return [_value(item) for item in objects_in(fields_in(value).get("values"))]


def _object(value: Any) -> Row:
    return _of_pairs(fields_in(value).get("values"))


_PLAIN = frozenset(("stringValue", "string_value", "boolValue", "bool_value", "bytesValue", "bytes_value"))
_READERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("intValue", "int_value"), _integer),
    **dict.fromkeys(("doubleValue", "double_value"), _double),
    **dict.fromkeys(("arrayValue", "array_value"), _array),
    **dict.fromkeys(("kvlistValue", "kvlist_value"), _object),
}
"""By the name of a type in OTLP, in both its spellings: those that need no reading, and how the others are read."""


def _parse_text(value: Any) -> Any:
    """Return what a text of JSON holds, or of Python as pandas writes it into CSV; another value as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return parse(value)
    except BrokenJson:
        pass
    try:
        return parse(json.dumps(ast.literal_eval(value)))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return value


def _id(value: Any) -> str:
    """Return an id as hexadecimal digits; JSON of protocol buffers has the same bytes in base64."""
    text = words_in(value).removeprefix("0x")
    if text.endswith("=") and not _HEX.issuperset(text):
        try:
            return base64.b64decode(text, validate=True).hex()
        except (binascii.Error, ValueError):
            return text
    return text


def _first(fields: Mapping[str, Any], *keys: str) -> Any:
    for key in keys:
        if (value := fields.get(key)) is not None:
            return value
    return None


OURS = "vivavoce.row"
"""The attribute in which our writer keeps the fields of a row that the conventions have no name for."""

_FIELDS = ROW_FIELDS - {"id", "messages", "labels"}
_METADATA = "metadata."
_SHAPES = {"tags": list, "metadata": dict}
_USERS = ("user.id", "enduser.id", "langfuse.user.id", "traceloop.association.properties.user_id")


def read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    """Yield a row for each conversation that spans and log records tell of."""
    return read_members(members(records, loss), loss)


def read_members(spans: Iterable[Member], loss: Loss) -> Iterator[tuple[Place, Row]]:
    """Yield a row for each conversation that spans and log records in our shape tell of."""
    return conversations(spans, _steps, _beside, loss)


def _steps(of_group: list[Member], loss: Loss) -> list[Step]:
    spans = _with_logs([cast("Row", member.value) for member in of_group])
    steps: list[Step] = []
    for span in spans:
        known = span["attributes"]
        is_open = "gen_ai.input.messages" not in known and openinference.is_open_inference(known)
        steps.append((openinference if is_open else gen_ai).step_of(span, loss))
    hand_down(steps)
    return steps


def _with_logs(rows: list[Row]) -> list[Row]:
    """Return spans with the log records that belong to them; those without their span are one themselves."""
    spans: dict[tuple[str, str], Row] = {}
    for span in rows:
        if not span.get("is_log"):
            spans[span["trace"], span["id"]] = span
    alone: set[int] = set()
    for log in rows:
        if log.get("is_log"):
            key = (log["trace"], log["id"])
            if log["id"] and key in spans:
                spans[key]["events"] += log["events"]
            else:
                alone.add(id(log))
                spans[key] = log
    return [span for span in rows if not span.get("is_log") or id(span) in alone]


def _beside(of_group: list[Member], loss: Loss) -> Row:
    row: Row = {}
    labels: Row = {}
    notes: Row = {}
    metadata: Row = {}
    tagged: set[str] | None = None
    for member in of_group:
        known = cast("Row", member.value["attributes"])
        fields = fields_in(parse_json(known.get(OURS)))
        ours: Row = {
            key: value
            for key, value in fields.items()
            if key in _FIELDS and isinstance(value, _SHAPES.get(key, object))
        }
        row |= ours
        if "tags" in ours:
            tagged = None
        for name, score, others in (*gen_ai.scores_of(member.value), *openinference.scores_of(known)):
            labels[name] = score
            if others:
                notes[name] = others
        user = first_in(known, _USERS)
        if user is not None:
            metadata.setdefault("user", str(user))
        metadata |= fields_in(parse_json(known.get("metadata")))
        for key, value in known.items():
            if key.startswith(_METADATA):
                metadata[key[len(_METADATA) :]] = value
        tags = parse_json(known.get("tag.tags"))
        if isinstance(tags, list):
            tagged = tagged or set()
            tagged.update(map(str, cast("list[Any]", tags)))
    if tagged is not None:
        row["tags"] = sorted(tagged.union(map(str, cast("list[Any]", row.get("tags") or ()))))
    if labels:
        row["labels"] = {**labels, **fields_in(row.get("labels"))}
    if notes:
        metadata["scores"] = notes
    return {**row, "metadata": {**metadata, **fields_in(row.get("metadata"))}}


_SCOPE = "vivavoce"
_LOWER_HEX = frozenset("0123456789abcdef")
_MADE_BY_READING = frozenset(("started", "ended", "models", "usage", "cost", "traces", "source"))


def _write(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for number, row in enumerate(rows):
        identity = str(row["id"]) if row.get("id") is not None else f"conversation-{number + 1}"
        loss.conversation = identity
        span = _span(identity, row, loss)
        scopes = [{"scope": {"name": _SCOPE}, "spans": [span]}]
        yield {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": scopes}]}


def _span(identity: str, row: Row, loss: Loss) -> Row:
    messages = cast("list[Message]", row.get("messages") or [])
    answers = 0 if not messages or messages[-1]["role"] != "assistant" else 1
    instructions = (
        1 if messages and messages[0]["role"] == "system" and isinstance(messages[0].get("content"), str) else 0
    )
    step = taken_back(messages[-1], STEP) if answers else {}
    times = [time for message in messages if (time := seconds(message.get("timestamp"))) is not None]
    told_times = (min(times, default=0), max(times, default=0))
    messages_in_parts = [_write_in_parts(message, index, told_times, loss) for index, message in enumerate(messages)]
    attributes: Row = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": identity,
        "gen_ai.request.model": step.get("model"),
        "gen_ai.agent.name": step.get("agent"),
        **{f"gen_ai.usage.{name}": count for name, count in cast("Row", step.get("usage") or {}).items()},
        "gen_ai.system_instructions": _json([{"type": "text", "content": messages[0]["content"]}])
        if instructions
        else None,
        "gen_ai.input.messages": _json(messages_in_parts[instructions : len(messages_in_parts) - answers]),
        "gen_ai.output.messages": _json(messages_in_parts[len(messages_in_parts) - answers :]) if answers else None,
    }
    if others := _others(row):
        attributes[OURS] = _json(others)
    trace, span = blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest(), ""
    if _is_hex(step.get("trace"), 32) and _is_hex(step.get("id"), 16):
        trace, span = str(step["trace"]), str(step["id"])
    start, end = map(nanoseconds, told_times)
    return {
        "traceId": trace,
        "spanId": span or trace[:16],
        "name": f"chat {step['model']}" if step.get("model") else "chat",
        "kind": 3,
        "startTimeUnixNano": start,
        "endTimeUnixNano": end,
        "attributes": otlp_attributes(attributes),
        "events": [_score(name, label, row, end) for name, label in cast("Row", row.get("labels") or {}).items()],
        "status": {},
    }


def _write_in_parts(message: Message, index: int, told_times: tuple[float, float], loss: Loss) -> Row:
    """Return a message in parts; its time is that of the span that begins or ends with it."""
    if message.get("timestamp") is not None and seconds(message["timestamp"]) not in told_times:
        loss.add_dropped("'timestamp' of a message", index)
    if message.get("retrieval_context") is not None:
        loss.add_dropped("'retrieval_context' of a message", index)
    return write_message(message, index, loss)


def _others(row: Row) -> Row:
    metadata = fields_in(row.get("metadata"))
    own_metadata = {key: value for key, value in metadata.items() if key not in _MADE_BY_READING and key != "scores"}
    others = {key: value for key, value in row.items() if key not in ("id", "messages", "labels", "metadata")}
    return {**others, **({"metadata": own_metadata} if own_metadata else {})}


def _score(name: str, label: Any, row: Row, time: str) -> Row:
    notes = fields_in(fields_in(fields_in(row.get("metadata")).get("scores")).get(name))
    known: Row = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.explanation": notes.get("reason")}
    if isinstance(label, bool):
        known |= {"gen_ai.evaluation.score.value": float(label), "gen_ai.evaluation.score.label": str(label).lower()}
    elif isinstance(label, int | float):
        known |= {"gen_ai.evaluation.score.value": label, "gen_ai.evaluation.score.label": notes.get("label")}
    else:
        known["gen_ai.evaluation.score.label"] = label if isinstance(label, str) else _json(label)
    return {"name": SCORE_EVENT, "timeUnixNano": time, "attributes": otlp_attributes(known)}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_hex(value: Any, length: int) -> bool:
    return isinstance(value, str) and len(value) == length and _LOWER_HEX.issuperset(value)


FORMAT = Format(
    NAME,
    "OpenTelemetry GenAI",
    lambda record: is_otlp(record.value),
    read,
    _write,
    LISTS,
    pieces=Pieces(members, read_members),
    write_message=write_message,
)


PHOENIX = Format(
    openinference.NAME,
    "OpenInference, as Phoenix exports it",
    lambda record: is_phoenix(record.value),
    read,
    lists=LISTS,
)
