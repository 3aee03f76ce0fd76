"""OTLP, the protocol of OpenTelemetry: attributes and times as its JSON has them, and requests in protocol buffers.

A request in protocol buffers is read as the same request in JSON would have been. Only what spans and log records are
read for is decoded; every other field is passed over.
Source: opentelemetry-proto 1.x (`trace.proto`, `logs.proto`, `common.proto`, `resource.proto`); the encoding of
protocol buffers.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

SCORE_EVENT = "gen_ai.evaluation.result"
"""The name of the event that holds a score, in the conventions for generative AI."""
MAX_DEPTH = 64
"""How deep messages may be nested; those of OTLP are nested six deep, except values within values."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10
"""Bytes of the longest number."""


def otlp_attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP has them; those without a value are left out."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case _:
            return {"stringValue": str(value)}


def nanoseconds(time: float) -> str:
    """Return seconds since 1970 as OTLP has them."""
    return str(round(time * 1e6) * 1000)


class BrokenProtobuf(ValueError):
    """The bytes are not the message that they should be."""


class _Field(NamedTuple):
    name: str
    wire: int
    value: Callable[[Any], Any] | None = None
    message: str | None = None
    repeated: bool = False


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _as_signed(number: int) -> str:
    return str(number - (1 << 64) if number >= 1 << 63 else number)


def _double(data: bytes) -> float:
    return struct.unpack("<d", data)[0]


def _time(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _of_text(name: str) -> _Field:
    return _Field(name, _BYTES, _text)


def _id(name: str) -> _Field:
    return _Field(name, _BYTES, bytes.hex)


def _at(name: str) -> _Field:
    return _Field(name, _FIXED64, _time)


def _single(name: str, message: str) -> _Field:
    return _Field(name, _BYTES, message=message)


def _many(name: str, message: str) -> _Field:
    return _Field(name, _BYTES, message=message, repeated=True)


_MESSAGES: Mapping[str, Mapping[int, _Field]] = {
    "traces": {1: _many("resourceSpans", "resource spans")},
    "logs": {1: _many("resourceLogs", "resource logs")},
    "resource spans": {1: _single("resource", "resource"), 2: _many("scopeSpans", "scope spans")},
    "resource logs": {1: _single("resource", "resource"), 2: _many("scopeLogs", "scope logs")},
    "resource": {1: _many("attributes", "pair")},
    "scope spans": {2: _many("spans", "span")},
    "scope logs": {2: _many("logRecords", "log")},
    "span": {
        1: _id("traceId"),
        2: _id("spanId"),
        4: _id("parentSpanId"),
        5: _of_text("name"),
        7: _at("startTimeUnixNano"),
        8: _at("endTimeUnixNano"),
        9: _many("attributes", "pair"),
        11: _many("events", "event"),
        15: _single("status", "status"),
    },
    "event": {1: _at("timeUnixNano"), 2: _of_text("name"), 3: _many("attributes", "pair")},
    "status": {2: _of_text("message"), 3: _Field("code", _VARINT, int)},
    "log": {
        1: _at("timeUnixNano"),
        5: _single("body", "value"),
        6: _many("attributes", "pair"),
        9: _id("traceId"),
        10: _id("spanId"),
        11: _at("observedTimeUnixNano"),
        12: _of_text("eventName"),
    },
    "pair": {1: _of_text("key"), 2: _single("value", "value")},
    "value": {
        1: _of_text("stringValue"),
        2: _Field("boolValue", _VARINT, bool),
        3: _Field("intValue", _VARINT, _as_signed),
        4: _Field("doubleValue", _FIXED64, _double),
        5: _single("arrayValue", "list"),
        6: _single("kvlistValue", "map"),
        7: _Field("bytesValue", _BYTES, _base64),
    },
    "list": {1: _many("values", "value")},
    "map": {1: _many("values", "pair")},
}
"""Which fields a message has, by their numbers."""


def decode(data: bytes, message: str) -> dict[str, Any]:
    """Return a request, `traces` or `logs`, as JSON has it.

    Raises:
        BrokenProtobuf: the bytes are not such a request, or nested too deeply.
    """
    return _decode(data, 0, len(data), message, 0)


def _decode(data: bytes, at: int, end: int, message: str, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise BrokenProtobuf(f"messages are nested more than {MAX_DEPTH} deep")
    fields, values = _MESSAGES[message], dict[str, Any]()
    while at < end:
        tag, at = _number(data, at, end)
        number, wire = tag >> 3, tag & 7
        field = fields.get(number)
        if field is not None and wire != field.wire:
            raise BrokenProtobuf(f"field {number} of a {message} has wire type {wire}, expected {field.wire}")
        raw: Any
        if wire == _VARINT:
            raw, at = _number(data, at, end)
        else:
            begin, at = _extent(data, at, end, wire)
            if field is None:
                continue
            inner = field.message
            raw = data[begin:at] if inner is None else _decode(data, begin, at, inner, depth + 1)
        if field is not None:
            _put(values, field, raw if field.value is None else field.value(raw))
    return values


def _put(values: dict[str, Any], field: _Field, value: Any) -> None:
    if field.repeated:
        values.setdefault(field.name, []).append(value)
    else:
        values[field.name] = value


def _extent(data: bytes, at: int, end: int, wire: int) -> tuple[int, int]:
    """Return where the content of a field begins and ends."""
    match wire:
        case 2:
            length, at = _number(data, at, end)
        case 1:
            length = 8
        case 5:
            length = 4
        case _:
            raise BrokenProtobuf(f"unknown wire type {wire}")
    if length > end - at:
        raise BrokenProtobuf(f"a field of {length:,} bytes is cut off after {end - at:,}")
    return at, at + length


def _number(data: bytes, at: int, end: int) -> tuple[int, int]:
    result = shift = 0
    for here in range(at, min(end, at + _MAX_VARINT_BYTES)):
        byte = data[here]
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, here + 1
        shift += 7
    raise BrokenProtobuf("a number is cut off" if end - at < _MAX_VARINT_BYTES else "a number has more than 10 bytes")
