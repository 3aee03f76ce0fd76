"""Langfuse: files of its pages (`trace-….json`, `session-….json`), rows of its interface, and exports of its tables.

A conversation is a session, or a trace without one. The names of fields are in both spellings, `traceId` as in its
interface and `trace_id` as in its exports. They are read only.
Source: Langfuse's API reference, the models of its Python package, and langfuse/langfuse#13033 for
the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from vivavoce.conversations.format import Format, Loss, Member, Place, Record, Row
from vivavoce.conversations.shapes import drop_empty, fields_in, objects_in, seconds, text_in, tool_call
from vivavoce.features.formats.dialects import as_text, parse_json, said_in
from vivavoce.features.formats.steps import Kind, Step, hand_down, passages_in
from vivavoce.features.formats.traced import conversations

NAME = "langfuse"
_KINDS: dict[str, Kind] = {
    "GENERATION": "model",
    **dict.fromkeys(("AGENT", "CHAIN", "SPAN"), "agent"),
    "TOOL": "tool",
    "RETRIEVER": "retrieval",
    **dict.fromkeys(("EVENT", "EMBEDDING", "EVALUATOR", "GUARDRAIL"), "other"),
}
_SCORES = frozenset(("NUMERIC", "CATEGORICAL", "BOOLEAN", "TEXT", "CORRECTION"))
_CAMEL = re.compile(r"_([a-z])")
_WHOLE = "trace"
_OBSERVATION = "observation "
"""Before the id of an observation, which may be that of a score or of the trace as well."""


def _fits(record: Record) -> bool:
    value = record.fields
    if value is None:
        return False
    row = _camel(value)
    if isinstance(row.get("trace"), dict):
        return isinstance(row.get("observations"), list)
    return _is_observation(row) or _is_trace(row) or _is_session(row) or _is_score(row)


def _is_observation(row: Row) -> bool:
    return "traceId" in row and "startTime" in row and text_in(row.get("type")) in _KINDS


def _is_trace(row: Row) -> bool:
    has_parts = isinstance(row.get("observations"), list) or "htmlPath" in row or "bookmarked" in row
    return "id" in row and "timestamp" in row and has_parts and "traceId" not in row


def _is_session(row: Row) -> bool:
    traces = objects_in(row.get("traces"))
    return "id" in row and bool(traces) and all(_is_trace(_camel(trace)) for trace in traces)


def _is_score(row: Row) -> bool:
    of = "traceId" in row or "sessionId" in row
    return of and "name" in row and text_in(row.get("dataType")) in _SCORES


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    return conversations(_members(records, loss), _steps, _beside, loss)


def _members(records: Iterable[Record], loss: Loss) -> Iterator[Member]:
    for record in records:
        if record.fields is None:
            loss.add_broken("a record is not an object of Langfuse")
        else:
            yield from _of_record(record.place, _camel(record.fields), loss)


def _of_record(place: Place, row: Row, loss: Loss) -> Iterator[Member]:
    if isinstance(row.get("trace"), dict):
        trace = {
            **row["trace"],
            **{key: row[key] for key in ("observations", "scores") if isinstance(row.get(key), list)},
        }
        yield from _of_trace(place, _camel(trace), None)
    elif _is_score(row):
        yield _score(place, row, None)
    elif isinstance(row.get("traceId"), str) and "type" in row:
        yield _observation(place, row, None)
    elif isinstance(row.get("traces"), list):
        session = text_in(row.get("id"))
        for trace in objects_in(row["traces"]):
            yield from _of_trace(place, _camel(trace), session)
        for score in objects_in(row.get("scores")):
            yield _score(place, {"sessionId": session, **_camel(score)}, session)
    elif isinstance(row.get("id"), str) and ("input" in row or "output" in row or "observations" in row):
        yield from _of_trace(place, row, None)
    else:
        loss.add_broken("a record is neither a trace nor an observation nor a score of Langfuse")


def _of_trace(place: Place, trace: Row, session: str | None) -> Iterator[Member]:
    identity = text_in(trace.get("id")) or ""
    session = text_in(trace.get("sessionId")) or session
    time = seconds(trace.get("timestamp"))
    own = {key: value for key, value in trace.items() if key not in ("observations", "scores")}
    yield Member(place, {"trace": own}, identity, session, _WHOLE, None, time)
    for observation in objects_in(trace.get("observations")):
        yield _observation(place, {"traceId": identity, **_camel(observation)}, session)
    for score in objects_in(trace.get("scores")):
        yield _score(place, {"traceId": identity, **_camel(score)}, session)


def _observation(place: Place, row: Row, session: str | None) -> Member:
    trace, identity = text_in(row.get("traceId")) or "", text_in(row.get("id"))
    session = text_in(row.get("sessionId")) or session
    parent = text_in(row.get("parentObservationId"))
    return Member(
        place,
        {"observation": row},
        trace,
        session,
        identity and _OBSERVATION + identity,
        parent and _OBSERVATION + parent,
        seconds(row.get("startTime")),
    )


def _score(place: Place, row: Row, session: str | None) -> Member:
    session = text_in(row.get("sessionId")) or session
    trace, identity = text_in(row.get("traceId")) or f"scores of {session}", text_in(row.get("id"))
    time = seconds(row.get("timestamp") or row.get("createdAt"))
    return Member(place, {"score": row}, trace, session, identity and f"score {identity}", None, time)


def _steps(of_group: list[Member], loss: Loss) -> list[Step]:
    steps: list[Step] = []
    for member in of_group:
        if "observation" in member.value:
            steps.append(_of_observation(member, loss))
        elif "trace" in member.value:
            trace = cast("Row", member.value["trace"])
            whole = Step(member.trace, _WHOLE, None, "agent", member.time)
            whole.inputs = said_in(trace.get("input"), "input", loss)
            whole.outputs = said_in(trace.get("output"), "output", loss)
            steps.append(whole)
    hand_down(steps)
    return steps


def _of_observation(member: Member, loss: Loss) -> Step:
    row = cast("Row", member.value["observation"])
    kind = _KINDS.get(str(row.get("type")).upper(), "other")
    identity = text_in(row.get("id")) or f"line {member.place.line}"
    step = Step(member.trace, identity, text_in(row.get("parentObservationId")) or _WHOLE, kind, member.time)
    step.end = seconds(row.get("endTime"))
    name, inputs, outputs = text_in(row.get("name")), row.get("input"), row.get("output")
    match kind:
        case "model" | "agent":
            step.inputs, step.outputs = said_in(inputs, "input", loss), said_in(outputs, "output", loss)
            step.agent = name if str(row.get("type")).upper() == "AGENT" else None
        case "tool":
            output = parse_json(outputs)
            fields = fields_in(output)
            called = text_in(fields.get("tool_call_id"))
            step.call = tool_call(called, name or "unknown", parse_json(inputs))
            step.result = (
                None if outputs is None else as_text(fields["content"] if called and "content" in fields else outputs)
            )
        case "retrieval":
            step.passages = passages_in(parse_json(outputs))
        case _:
            pass
    step.about = _about(row)
    return step


def _about(row: Row) -> Row:
    details = fields_in(parse_json(row.get("usageDetails"))) or fields_in(parse_json(row.get("usage")))
    counts = {
        "input_tokens": details.get("input", row.get("promptTokens")),
        "output_tokens": details.get("output", row.get("completionTokens")),
    }
    costs = fields_in(parse_json(row.get("costDetails")))
    cost = next(
        (amount for amount in (row.get("totalCost"), row.get("calculatedTotalCost"), costs.get("total")) if amount),
        None,
    )
    wrong = str(row.get("level")).upper() == "ERROR"
    return drop_empty(
        {
            "model": text_in(row.get("model") or row.get("providedModelName")),
            "usage": {name: count for name, count in counts.items() if type(count) is int},
            "cost": cost if isinstance(cost, int | float) else None,
            "error": (text_in(row.get("statusMessage")) or "error") if wrong else None,
        }
    )


def _beside(of_group: list[Member], loss: Loss) -> Row:
    labels: Row = {}
    notes: Row = {}
    tags: list[str] = []
    metadata: Row = {}
    for member in of_group:
        value = cast("Row", member.value)
        row = next(iter(value.values()))
        if "score" in value:
            name = text_in(row.get("name"))
            if name is None:
                loss.add_dropped("a score without a name")
                continue
            if name in labels:
                loss.add_dropped("an earlier score of the same name")
            labels[name] = _value_of(row)
            notes[name] = drop_empty({"reason": text_in(row.get("comment")), "by": text_in(row.get("source"))})
            continue
        listed_tags: Any = parse_json(row.get("tags"))
        tags += [str(tag) for tag in cast("list[Any]", listed_tags)] if isinstance(listed_tags, list) else []
        if (user := text_in(row.get("userId"))) is not None:
            metadata.setdefault("user", user)
        if "trace" in value:
            for key, known in fields_in(parse_json(row.get("metadata"))).items():
                metadata.setdefault(key, known)
    metadata |= drop_empty({"scores": drop_empty(notes)})
    return drop_empty({"labels": labels, "tags": list(dict.fromkeys(tags)), "metadata": metadata})


def _value_of(row: Row) -> Any:
    value, text = row.get("value"), row.get("stringValue")
    if row.get("dataType") == "BOOLEAN":
        return str(text).lower() == "true" if isinstance(text, str) else bool(value)
    return text if isinstance(text, str) and row.get("dataType") != "NUMERIC" else value


def _camel(row: Row) -> Row:
    """Return a row with its names in the spelling of Langfuse's interface."""
    return {_CAMEL.sub(lambda match: match[1].upper(), key): value for key, value in row.items()}


FORMAT = Format(NAME, "Langfuse", _fits, _read, lists=(("data",),))
