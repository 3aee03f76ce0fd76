"""The answers of OTLP over HTTP, in JSON and in protocol buffers.

Source: the OTLP specification, OTLP/HTTP response; `google.rpc.Status`.
"""

from __future__ import annotations

import json

from vivavoce.production.intake import PROTOBUF, Refused, Signal, Taken, said

_INVALID, _UNAVAILABLE = 3, 14
_REJECTED = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}


def success(taken: Taken, signal: Signal, content_type: str) -> bytes:
    """Return the body that says what was taken: empty, or which part was not."""
    if not taken.rejected:
        return b"" if content_type == PROTOBUF else b"{}"
    message = said(taken.refused)
    if content_type == PROTOBUF:
        return _part(1, _whole(1, taken.rejected) + _part(2, message.encode()))
    rejected = {_REJECTED[signal]: str(taken.rejected), "errorMessage": message}
    return json.dumps({"partialSuccess": rejected}).encode()


def failure(refused: Refused, content_type: str) -> bytes:
    """Return the body that says why a request is refused."""
    code = _UNAVAILABLE if refused.status in (429, 503) else _INVALID
    if content_type == PROTOBUF:
        return _whole(1, code) + _part(2, refused.message.encode("utf-8", "replace"))
    return json.dumps({"code": code, "message": refused.message}).encode()


def _whole(field: int, number: int) -> bytes:
    return _number(field << 3) + _number(number)


def _part(field: int, content: bytes) -> bytes:
    return _number(field << 3 | 2) + _number(len(content)) + content


def _number(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
