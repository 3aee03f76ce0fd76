"""What a sender of telemetry sends, checked and read, and how it is answered.

Source: the OTLP specification, OTLP/HTTP response; `google.rpc.Status`.
"""

from __future__ import annotations

import json
import marshal
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.conversations.format import Loss, Member, Pieces, Place, Record, format_named
from vivavoce.wire.otlp import BrokenProtobuf, decode

Signal = Literal["traces", "logs"]
SIGNALS: tuple[Signal, ...] = ("traces", "logs")

JSON, PROTOBUF = "application/json", "application/x-protobuf"
MAX_BYTES = 64 * 2**20
"""Bytes of the largest request, after it is unpacked."""
MAX_KEPT_BYTES = 2 * MAX_BYTES
"""Bytes of all spans of a request, as they are kept."""
LARGEST_SPAN = 8 * 2**20
"""Bytes of the largest span."""
ENCODINGS = ("", "identity", "gzip", "deflate")
MAX_MEMBERS = 100
"""Members of a compressed body, one after the other."""
PIECE_BYTES = 64 * 2**10
"""Bytes that are unpacked at a time: at most these are copied where a member ends."""

_MEGABYTE = 2**20
_PLACE = Place(Path("traces"), 1)


class Refused(Exception):
    """A request that cannot be taken, with the status of HTTP that says so."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


class Position(NamedTuple):
    """How far a file is read: which file it is, and the bytes of it that are done."""

    file: str
    offset: int


class Arrival(NamedTuple):
    """A span or log record as it is kept: the value of `member` is packed into `value`, and None in `member`."""

    member: Member
    value: bytes
    is_own: bool


@dataclass(slots=True)
class Delivery:
    """What a request or a piece of a file holds; `refused` says in words what of it cannot be kept.

    `rejected` counts the spans that are left out. `position` is how far the file is read by it.
    """

    arrivals: list[Arrival] = field(default_factory=list[Arrival])
    refused: list[str] = field(default_factory=list[str])
    rejected: int = 0
    position: Position | None = None

    @property
    def size(self) -> int:
        """The bytes of the spans, unpacked."""
        return sum(len(arrival.value) for arrival in self.arrivals)


@dataclass(frozen=True, slots=True)
class Request:
    """The body of a request of OTLP over HTTP, as it was sent."""

    signal: Signal
    body: bytes
    content_type: str
    encoding: str = ""

    def read(self) -> Delivery:
        """Return the spans that the request holds.

        Raises:
            Refused: the request is not OTLP, or too large.
        """
        body = unpack(self.body, self.encoding)
        try:
            value: Any = decode(body, self.signal) if self.content_type == PROTOBUF else _parse(body)
            return read_document(value) if value else Delivery()
        except (BrokenProtobuf, BrokenJson, UnicodeDecodeError) as error:
            kind = "protocol buffers" if self.content_type == PROTOBUF else "JSON"
            raise Refused(400, f"the body is not {self.signal} of OTLP in {kind}: {error}") from error
        except RecursionError as error:
            raise Refused(400, "the body is nested too deeply") from error


def span_pieces() -> Pieces:
    """Return how spans of OpenTelemetry are read.

    Raises:
        UsageError: formats are switched off.
    """
    pieces = format_named("otel").pieces
    assert pieces is not None
    return pieces


def read_document(value: Any) -> Delivery:
    """Return what a document of OTLP holds.

    Raises:
        Refused: it is not such a document.
    """
    delivery, loss = Delivery(), Loss()
    total_size = 0
    loss.on_broken = delivery.refused.append
    for member in span_pieces().members([Record(_PLACE, value)], loss):
        if member.value.get("is_log") and member.value.get("is_own"):  # the scores that we published ourselves
            continue
        packed = marshal.dumps(member.value)
        if len(packed) > LARGEST_SPAN:
            size = f"{len(packed) / _MEGABYTE:.1f}"
            delivery.refused.append(f"a span of {size} MB is larger than {LARGEST_SPAN // _MEGABYTE} MB")
        elif (total_size := total_size + len(packed)) > MAX_KEPT_BYTES:
            delivery.refused.append(f"the spans of a request exceed {MAX_KEPT_BYTES // _MEGABYTE} MB as stored")
        else:
            delivery.arrivals.append(Arrival(member._replace(value=None), packed, bool(member.value.get("is_own"))))
    delivery.rejected = len(delivery.refused)
    if delivery.refused and not delivery.arrivals and not _is_export(value):
        raise Refused(400, "the body has no resourceSpans and no resourceLogs")
    return delivery


def unpack(body: bytes, encoding: str) -> bytes:
    """Return a body as it was before it was compressed.

    Raises:
        Refused: the encoding is unknown, the data is broken, or larger than a request may be.
    """
    if encoding not in ENCODINGS:
        raise Refused(415, f"the content encoding '{encoding[:40]}' is not known; send gzip or none")
    if encoding in ("", "identity"):
        return body
    try:
        return _unpacked_members(memoryview(body), encoding)
    except zlib.error as error:
        raise Refused(400, f"the body is not {encoding}: {error}") from error


def _unpacked_members(body: memoryview, encoding: str) -> bytes:
    """Return what all members hold: gzip may have several, one after the other."""
    data, at = BytesIO(), 0
    for _ in range(MAX_MEMBERS):
        unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS if encoding == "gzip" else zlib.MAX_WBITS)
        while not unpacker.eof:
            piece = body[at : at + PIECE_BYTES]
            if not piece:
                raise Refused(400, f"the body is not {encoding}: it is cut off")
            at += len(piece)
            data.write(unpacker.decompress(piece, MAX_BYTES + 1 - data.tell()))
            if data.tell() > MAX_BYTES:
                raise Refused(
                    413, f"unpacked, the body is larger than {MAX_BYTES // _MEGABYTE} MB; send smaller batches"
                )
        at -= len(unpacker.unused_data)
        if at == len(body):
            return data.getvalue()
    raise Refused(400, f"the body has more than {MAX_MEMBERS} members of {encoding}; compress it as one")


def _parse(body: bytes) -> Any:
    return parse(body.decode("utf-8-sig"))


def _is_export(value: Any) -> bool:
    """Return whether a document has the shape of an export, whatever its spans are."""
    return isinstance(value, dict) and any(key in value for key in ("resourceSpans", "resourceLogs"))


def join_reasons(refused: Sequence[str], most: int = 3) -> str:
    """Return reasons in one text: the first of them, and how many more there are."""
    different = list(dict.fromkeys(refused))
    more = f"; and {len(different) - most} more" if len(different) > most else ""
    return "; ".join(different[:most]) + more


_INVALID, _UNAVAILABLE = 3, 14
_REJECTED = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}


def success(delivery: Delivery, signal: Signal, content_type: str) -> bytes:
    """Return the body that says what was taken: empty, or which part was not."""
    if not delivery.rejected:
        return b"" if content_type == PROTOBUF else b"{}"
    message = join_reasons(delivery.refused)
    if content_type == PROTOBUF:
        return _part(1, _whole(1, delivery.rejected) + _part(2, message.encode()))
    rejected = {_REJECTED[signal]: str(delivery.rejected), "errorMessage": message}
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
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
