"""Requests in protocol buffers are read as the same request in JSON, and what is none is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from vivavoce.conversations.format import Loss, Place, Record
from vivavoce.features.formats.otel import members
from vivavoce.wire.otlp import MAX_DEPTH, BrokenProtobuf, decode

HERE = Place(Path("request"), 1)


def record_traces() -> bytes:
    """Return spans with every kind of value, as OpenTelemetry's SDK sends them."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    with provider.get_tracer("t").start_as_current_span("outer") as outer:
        outer.set_attributes({"text": "ü", "yes": True, "no": False, "whole": -7, "half": 0.5, "many": ["a", "b"]})
        with provider.get_tracer("t").start_as_current_span("inner") as inner:
            inner.add_event("said", {"gen_ai.event.content": "{}", "big": 2**62})
            inner.set_status(StatusCode.ERROR, "it failed")
    return encode_spans(memory.get_finished_spans()).SerializeToString()


def test_spans_are_the_same_as_in_json() -> None:
    data = record_traces()
    as_json = MessageToDict(ExportTraceServiceRequest.FromString(data))
    ours, theirs = (list(members([Record(HERE, value)], Loss())) for value in (decode(data, "traces"), as_json))
    assert len(ours) == 2
    assert ours == theirs


def test_logs_are_the_same_as_in_json() -> None:
    request = ExportLogsServiceRequest()
    log = request.resource_logs.add().scope_logs.add().log_records.add()
    log.time_unix_nano, log.event_name = 1_800_000_000 * 10**9, "gen_ai.user.message"
    log.trace_id, log.span_id = b"\x01" * 16, b"\x02" * 8
    content = log.body.kvlist_value.values.add()
    content.key, content.value.string_value = "content", "hello"
    data = request.SerializeToString()
    ours, theirs = (
        list(members([Record(HERE, value)], Loss())) for value in (decode(data, "logs"), MessageToDict(request))
    )
    assert ours == theirs
    assert ours[0].value["events"][0]["body"] == {"content": "hello"}


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for message in ("traces", "logs"):
        try:
            decode(data, message)
        except BrokenProtobuf:
            continue


@given(st.data())
def test_a_request_that_is_damaged_is_read_or_refused(data: st.DataObject) -> None:
    whole = bytearray(record_traces())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))
    try:
        list(members([Record(HERE, decode(bytes(whole[: data.draw(st.integers(0, len(whole)))]), "traces"))], Loss()))
    except BrokenProtobuf:
        return


def part(field: int, content: bytes) -> bytes:
    """Return a field of bytes, of up to 2 MB."""
    size = len(content)
    return bytes([field << 3 | 2, size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + content


def test_values_that_are_nested_too_deeply_are_refused() -> None:
    value = part(1, b"x")
    for _ in range(MAX_DEPTH):
        value = part(5, part(1, value))
    log = part(1, part(2, part(2, part(5, value))))
    with pytest.raises(BrokenProtobuf, match="nested more than 64 deep"):
        decode(log, "logs")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x0a", "a number is cut off"),
        (b"\x0a\x05ab", "a field of 5 bytes is cut off after 2"),
        (b"\xff" * 11, "more than 10 bytes"),
        (b"\x08\x01", "field 1 of a traces has wire type 0, expected 2"),
        (b"\x0b", "field 1 of a traces has wire type 3"),
        (b"\x13", "unknown wire type 3"),
    ],
)
def test_what_is_broken_is_said(data: bytes, words: str) -> None:
    with pytest.raises(BrokenProtobuf, match=words):
        decode(data, "traces")
