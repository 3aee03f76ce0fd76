"""What OpenTelemetry's own instrumentation and encoders send becomes a conversation that is judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.genai.handler import TelemetryHandler
from opentelemetry.util.genai.types import InputMessage, OutputMessage, TextPart

from vivavoce.features.watch.intake import PROTOBUF
from vivavoce.features.watch.receiver import Receiver
from vivavoce.features.watch.settling import Rules
from vivavoce.features.watch.spool import Spool
from vivavoce.features.watch.suite import watching_metrics
from vivavoce.features.watch.watch import Watch, Watching
from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.wire.own_traffic import add_marks, of_run

from .traffic import post


@pytest.fixture(autouse=True)
def _with_words(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")


def post_request(conversation: str, headers: dict[str, str]) -> bytes:
    """Return what an instrumented server sends of a request with these headers, as its exporter encodes it."""
    memory, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(memory))
    handler = TelemetryHandler(tracer_provider=tracers)
    came_from = TraceContextTextMapPropagator().extract(headers)
    with (
        tracers.get_tracer("server").start_as_current_span("POST /chat", context=came_from),
        handler.invoke_local_agent(agent_name="desk", conversation_id=conversation),
        handler.inference("openai", request_model="gpt") as call,
    ):
        call.input_messages = [InputMessage("user", [TextPart("When do you open?")])]
        call.output_messages = [OutputMessage("assistant", [TextPart("At nine.")], "stop")]
    sent = encode_spans(memory.get_finished_spans()).SerializeToString()
    tracers.shutdown()
    return sent


async def test_users_are_judged_and_requests_of_a_run_are_told_from_theirs(
    receiver: Receiver, spool: Spool, store: Store, tmp_path: Path
) -> None:
    with of_run("nightly-1"):
        ours = add_marks()
    for conversation, headers in (("a user", {}), ("a test", ours)):
        assert (await post(receiver, post_request(conversation, headers), content_type=PROTOBUF)).status == 200
    suite = watching_metrics("production", ["refusal"], None, None, 4)
    await Watch(suite, store, spool, Watching(Rules(), RunOptions(), once=True), list[str]().append).run()
    (run,) = store.runs()
    (attempt,) = store.attempts(run.id)
    assert attempt.key.sample_id == "a user"
    assert [message.text for message in attempt.trajectory.messages] == ["When do you open?", "At nine."]
    assert spool.counts["of tests"] == 1
