"""OpenTelemetry's traces and logs as OTLP in JSON, as collectors and exporters write them into files.

A conversation is written as one span: the last call of the model, which was given everything before. It begins with the
first message that has a time and ends with the last. What the conventions have no name for is in an attribute of ours.
Source: the OTLP specification; semantic-conventions-genai.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, cast

from vivavoce.conversations.format import Format, Loss, Pieces, Row
from vivavoce.conversations.messages_of_formats import Message, taken_back
from vivavoce.conversations.shapes import fields_in, seconds
from vivavoce.features.formats.parts import NAME, write_message
from vivavoce.features.formats.spans import LISTS, OURS, is_otlp, members, read, read_members
from vivavoce.features.formats.steps import STEP
from vivavoce.wire.otlp import SCORE_EVENT, nanoseconds, otlp_attributes

_SCOPE = "vivavoce"
_HEX = frozenset("0123456789abcdef")
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
    made = 0 if not messages or messages[-1]["role"] != "assistant" else 1
    told = 1 if messages and messages[0]["role"] == "system" and isinstance(messages[0].get("content"), str) else 0
    step = taken_back(messages[-1], STEP) if made else {}
    times = [time for message in messages if (time := seconds(message.get("timestamp"))) is not None]
    told_times = (min(times, default=0), max(times, default=0))
    written = [_written(message, index, told_times, loss) for index, message in enumerate(messages)]
    attributes: Row = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": identity,
        "gen_ai.request.model": step.get("model"),
        "gen_ai.agent.name": step.get("agent"),
        **{f"gen_ai.usage.{name}": count for name, count in cast("Row", step.get("usage") or {}).items()},
        "gen_ai.system_instructions": _json([{"type": "text", "content": messages[0]["content"]}]) if told else None,
        "gen_ai.input.messages": _json(written[told : len(written) - made]),
        "gen_ai.output.messages": _json(written[len(written) - made :]) if made else None,
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


def _written(message: Message, index: int, told_times: tuple[float, float], loss: Loss) -> Row:
    """Return a message in parts; its time is that of the span that begins or ends with it."""
    if message.get("timestamp") is not None and seconds(message["timestamp"]) not in told_times:
        loss.dropped("'timestamp' of a message", index)
    if message.get("retrieval_context") is not None:
        loss.dropped("'retrieval_context' of a message", index)
    return write_message(message, index, loss)


def _others(row: Row) -> Row:
    metadata = fields_in(row.get("metadata"))
    kept = {key: value for key, value in metadata.items() if key not in _MADE_BY_READING and key != "scores"}
    others = {key: value for key, value in row.items() if key not in ("id", "messages", "labels", "metadata")}
    return {**others, **({"metadata": kept} if kept else {})}


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
    return isinstance(value, str) and len(value) == length and _HEX.issuperset(value)


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
