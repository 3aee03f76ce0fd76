"""Spans and logs of OpenTelemetry become conversations, with each message once, and conversations become spans."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.exporter.otlp.json.file._log_exporter import FileLogExporter
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.util.genai.handler import TelemetryHandler
from opentelemetry.util.genai.types import (
    InputMessage,
    OutputMessage,
    TextPart,
    ToolCallRequestPart,
    ToolCallResponsePart,
)

from features.formats.translation import read_values
from vivavoce.conversations.format import Loss
from vivavoce.conversations.reading import detect, read
from vivavoce.features.formats.otel import FORMAT

Json = dict[str, Any]


def attribute(key: str, value: Any) -> Json:
    return {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def span(identity: str, at: int, known: Json, parent: str = "", trace: str = "t1", **more: Any) -> Json:
    return {
        "traceId": trace,
        "spanId": identity,
        "parentSpanId": parent,
        "name": "chat",
        "startTimeUnixNano": str((1_800_000_000 + at) * 10**9),
        "endTimeUnixNano": str((1_800_000_000 + at + 1) * 10**9),
        "attributes": [attribute(key, value) for key, value in known.items()],
        **more,
    }


def export(*spans: Json) -> Json:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}]}


def message(role: str, *texts: str) -> Json:
    return {"role": role, "parts": [{"type": "text", "content": text} for text in texts]}


def call_part(name: str, arguments: Any, identity: str | None = "c1") -> Json:
    return {"role": "assistant", "parts": [{"type": "tool_call", "id": identity, "name": name, "arguments": arguments}]}


def result_part(value: Any, identity: str | None = "c1") -> Json:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": identity, "response": value}]}


def chat(inputs: list[Json], outputs: list[Json], **more: Any) -> Json:
    return {"gen_ai.operation.name": "chat", "gen_ai.input.messages": inputs, "gen_ai.output.messages": outputs, **more}


def plain(row: Json) -> list[tuple[str, Any]]:
    """Return who said what, or called and got what, of a row."""
    result: list[tuple[str, Any]] = []
    for message in row["messages"]:
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
        result.append((message["role"], calls or message["content"]))
    return result


QUESTION = message("user", "Where is 1042?")
CALLED = call_part("find", {"n": 1042})
GOT = result_part({"state": "sent"})
ANSWER = message("assistant", "It was sent.")
WHOLE = [
    ("user", "Where is 1042?"),
    ("assistant", [("find", '{"n": 1042}')]),
    ("tool", '{"state": "sent"}'),
    ("assistant", "It was sent."),
]


def test_the_history_that_every_span_repeats_is_kept_once() -> None:
    talk = {"gen_ai.conversation.id": "talk"}
    thanks, bye = message("user", "Thanks."), message("assistant", "Bye.")
    first = span("a", 0, chat([QUESTION], [CALLED], **talk))
    second = span("b", 2, chat([QUESTION, CALLED, GOT], [ANSWER], **talk))
    third = span("c", 9, chat([QUESTION, CALLED, GOT, ANSWER, thanks], [bye], **talk), trace="t2")
    [row], loss = read_values(FORMAT, [export(third), export(second), export(first, second)])
    assert row["id"] == "talk"
    assert plain(row) == [*WHOLE, ("user", "Thanks."), ("assistant", "Bye.")]
    assert row["metadata"]["traces"] == ["t1", "t2"]
    assert {entry.kind for entry in loss.entries()} == {"repeated"}
    assert row["messages"][0]["timestamp"] == "2027-01-15T08:00:00Z"


def test_a_trace_that_was_not_given_what_was_said_before_goes_on_with_it() -> None:
    talk = {"gen_ai.conversation.id": "talk"}
    words = [message("user" if number % 2 == 0 else "assistant", str(number)) for number in range(8)]
    before = span("a", 0, chat(words[:1], words[1:2], **talk))
    later = (span(f"b{at}", at, chat(words[2:at], words[at : at + 1], **talk), trace="t2") for at in (3, 5, 7))
    [row], _ = read_values(FORMAT, [export(before, *later)])
    assert [content for _, content in plain(row)] == [str(number) for number in range(8)]


def test_a_history_without_calls_and_results_goes_on_as_well() -> None:
    talk = {"gen_ai.conversation.id": "talk"}
    first = span("a", 0, chat([QUESTION], [CALLED], **talk))
    second = span("b", 2, chat([QUESTION, CALLED, GOT], [ANSWER], **talk))
    third = span("c", 9, chat([QUESTION, ANSWER, message("user", "Ok.")], [ANSWER], **talk), trace="t2")
    [row], _ = read_values(FORMAT, [export(first, second, third)])
    assert plain(row) == [*WHOLE, ("user", "Ok."), ("assistant", "It was sent.")]


def test_spans_that_hold_only_what_is_new_are_joined() -> None:
    talk = {"gen_ai.conversation.id": "talk"}
    first = span("a", 0, chat([QUESTION], [CALLED], **talk))
    second = span("b", 2, chat([GOT], [ANSWER], **talk))
    again = span("c", 9, chat([QUESTION], [ANSWER], **talk), trace="t2")
    [row], _ = read_values(FORMAT, [export(first, second, again)])
    assert plain(row) == [*WHOLE, ("user", "Where is 1042?"), ("assistant", "It was sent.")]


def test_what_only_the_span_of_a_tool_tells_is_put_in() -> None:
    tool = span(
        "b",
        2,
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "find",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": {"n": 1042},
            "gen_ai.tool.call.result": {"state": "sent"},
        },
        parent="root",
    )
    root = span("root", 0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"})
    model = span("a", 1, chat([QUESTION], [CALLED]), parent="root")
    [row], loss = read_values(FORMAT, [export(root, model, tool)])
    assert plain(row) == WHOLE[:3]
    assert loss.is_lossless
    whole = {**chat([QUESTION], [ANSWER]), "gen_ai.operation.name": "invoke_agent"}
    [row], loss = read_values(FORMAT, [export(span("root", 0, whole), tool)])
    assert plain(row) == WHOLE
    assert [entry.kind for entry in loss.entries()] == ["guessed"]


def test_calls_beside_the_conversation_are_kept_apart() -> None:
    root = {**chat([QUESTION], [ANSWER]), "gen_ai.operation.name": "invoke_agent"}
    title = chat([message("user", "Name this talk"), message("user", "Now.")], [message("assistant", "Parcel 1042")])
    spans = [
        span("root", 0, root),
        span("title", 1, title, parent="root"),
        span("a", 1, chat([QUESTION], [CALLED]), parent="root"),
        span("b", 3, chat([QUESTION, CALLED, GOT], [ANSWER]), parent="root"),
    ]
    [row], loss = read_values(FORMAT, [export(*spans)])
    assert plain(row) == WHOLE
    assert [message["content"] for message in row["metadata"]["beside"][0]] == ["Name this talk", "Now.", "Parcel 1042"]
    assert "aside" in {entry.kind for entry in loss.entries()}


def test_agents_that_take_over_are_named() -> None:
    agent_fields = {"gen_ai.agent.name": "desk", "gen_ai.system_instructions": [{"type": "text", "content": "Greet."}]}
    two = {"gen_ai.agent.name": "parcels", "gen_ai.system_instructions": [{"type": "text", "content": "Find."}]}
    first = span("a", 0, chat([QUESTION], [CALLED], **agent_fields))
    second = span("b", 2, chat([QUESTION, CALLED, GOT], [ANSWER], **two))
    [row], loss = read_values(FORMAT, [export(first, second)])
    assert [message.get("name") for message in row["messages"]] == [None, None, "desk", None, "parcels"]
    assert row["messages"][0] == {"role": "system", "content": "Greet."}
    assert "another system prompt, later on" in [entry.what for entry in loss.entries()]


def numbered_attributes() -> Json:
    known: Json = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Where is 1042?",
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.id": "c1",
        "gen_ai.prompt.1.tool_calls.0.name": "find",
        "gen_ai.prompt.1.tool_calls.0.arguments": '{"n": 1042}',
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.content": '{"state": "sent"}',
        "gen_ai.prompt.2.tool_call_id": "c1",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "It was sent.",
        "gen_ai.completion.0.finish_reason": "stop",
        **dict.fromkeys(("gen_ai.prompt.7", "gen_ai.prompt.7.", "gen_ai.prompt.x.role"), "no message"),
        "traceloop.association.properties.session_id": "s",
    }
    return export(span("a", 0, known))


def by_events() -> Json:
    call = [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n": 1042}'}}]
    events = [
        ("gen_ai.user.message", {"content": "Where is 1042?"}),
        ("gen_ai.assistant.message", {"tool_calls": call}),
        ("gen_ai.tool.message", {"id": "c1", "content": '{"state": "sent"}'}),
        ("gen_ai.choice", {"index": "0", "message": {"role": "assistant", "content": "It was sent."}}),
    ]
    spans_to_read = [
        {"name": name, "timeUnixNano": "1", "attributes": [attribute(key, value) for key, value in known.items()]}
        for name, known in events
    ]
    return export(span("a", 0, {"gen_ai.operation.name": "chat", "session.id": "s"}, events=spans_to_read))


def by_openai() -> Json:
    messages = [
        {"role": "user", "content": "Where is 1042?"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "find", "arguments": '{"n": 1042}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"state": "sent"}'},
    ]
    return export(
        span(
            "a", 0, {"gen_ai.prompt": messages, "gen_ai.completion": [{"role": "assistant", "content": "It was sent."}]}
        )
    )


@pytest.mark.parametrize("record", [numbered_attributes(), by_events(), by_openai()])
def test_older_ways_to_write_messages_are_read(record: Json) -> None:
    [row], loss = read_values(FORMAT, [record])
    assert plain(row) == WHOLE
    assert loss.entries() == []


def test_scores_become_labels() -> None:
    known = {
        "gen_ai.evaluation.name": "polite",
        "gen_ai.evaluation.score.label": "pass",
        "gen_ai.evaluation.explanation": "It thanked.",
    }
    scored = {"name": "gen_ai.evaluation.result", "attributes": [attribute(key, value) for key, value in known.items()]}
    [row], _ = read_values(FORMAT, [export(span("a", 0, chat([QUESTION], [ANSWER]), events=[scored]))])
    assert row["labels"] == {"polite": "pass"}
    assert row["metadata"]["scores"] == {"polite": {"reason": "It thanked."}}


def test_what_was_not_recorded_is_told() -> None:
    bare = span("a", 0, {"gen_ai.operation.name": "chat"})
    cut = span("a", 0, {"gen_ai.operation.name": "chat", "gen_ai.input.messages": '[{"role": "us'}, trace="t2")
    web = span("a", 0, {"http.method": "GET"}, trace="t3")
    nameless = span("a", 0, chat([QUESTION], [ANSWER]), trace="")
    rows, loss = read_values(FORMAT, [export(bare, cut, web, nameless), 7, {"resourceSpans": [3, {}]}, {"spans": 1}])
    assert rows == []
    assert {(entry.kind, entry.what, entry.count) for entry in loss.entries()} == {
        ("broken", "a trace has no messages: their text was not recorded", 2),
        ("broken", "a span without the id of its trace", 1),
        ("broken", "a record is neither a span nor an export of spans", 2),
        ("dropped", "messages that are not JSON; an attribute length limit cuts them off", 1),
        ("dropped", "a trace without a model call", 1),
    }


hostile: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["[", "{}", "[[]]", "1970", "NaN"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["role", "parts", "type", "id"]), inner)
    ),
    max_leaves=6,
)
spans_of_any_kind = st.fixed_dictionaries(
    {"traceId": st.sampled_from(["t", "", "AAA="]), "spanId": st.sampled_from(["a", "b"])},
    optional={
        "parentSpanId": st.sampled_from(["a", "b", "c"]),
        "startTimeUnixNano": hostile,
        "status": hostile,
        "events": hostile,
        "attributes": st.dictionaries(
            st.sampled_from(
                [
                    *("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.prompt"),
                    *("gen_ai.prompt.0.content", "gen_ai.prompt.0.tool_calls.0.name", "gen_ai.operation.name"),
                    *("openinference.span.kind", "llm.input_messages.0.message.role", "llm.input_messages"),
                    *("llm.output_messages.0.message.tool_calls.0.tool_call", "input.value", "session.id"),
                    *("gen_ai.tool.name", "gen_ai.tool.call.result", "vivavoce.row", "gen_ai.usage.input_tokens"),
                ]
            ),
            hostile,
        ),
    },
)


@given(st.lists(spans_of_any_kind | hostile, max_size=4))
def test_no_span_breaks_the_reader(spans: list[Any]) -> None:
    read_values(FORMAT, [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, *spans])


words = st.text()


def _text(text: str) -> Json:
    return {"type": "text", "content": text}


def _lists(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(item, max_size=2)


texts = st.builds(_text, words)
images: st.SearchStrategy[Json] = st.sampled_from(
    [
        {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGk="},
        {"type": "file", "modality": "document", "file_id": "f"},
        {"type": "video", "content": "?"},
    ]
)
thoughts: st.SearchStrategy[Json] = st.sampled_from(
    [{"type": "reasoning", "content": "hm"}, {"type": "compaction", "id": None}]
)
json_values: st.SearchStrategy[Any] = st.recursive(st.none() | st.booleans() | st.integers() | words, _lists)


@st.composite
def talks(draw: st.DrawFn) -> list[Json]:
    """Messages of a talk, in which every call has its result."""
    messages: list[Json] = []
    for number in range(draw(st.integers(1, 4))):
        parts = draw(st.lists(texts | images, max_size=3))
        messages.append({"role": "user", "parts": parts, **draw(st.sampled_from([{}, {"name": "Ada"}]))})
        for call in range(draw(st.integers(0, 2))):
            identity = f"{number}.{call}"
            contents = draw(st.lists(texts | thoughts, max_size=2))
            messages.append(
                {"role": "assistant", "parts": [*contents, *call_part("f", draw(json_values), identity)["parts"]]}
            )
            messages.append(result_part(draw(json_values), identity))
        messages.append({"role": "assistant", "parts": draw(st.lists(texts | thoughts, max_size=2))})
    return messages


@given(talks())
def test_what_is_read_is_written_as_it_was(messages: list[Json]) -> None:
    known = chat(messages[:-1], messages[-1:])
    rows, loss = read_values(FORMAT, [export(span("a", 0, {**known, "gen_ai.conversation.id": "talk"}))])
    assert FORMAT.write is not None
    [document] = FORMAT.write(json.loads(json.dumps(rows)), loss)
    again = {attribute["key"]: attribute["value"]["stringValue"] for attribute in spans_in(document)[0]["attributes"]}
    assert json.loads(again["gen_ai.input.messages"]) == messages[:-1]
    assert json.loads(again["gen_ai.output.messages"]) == messages[-1:]
    assert loss.is_lossless, list(loss.lines())


def spans_in(document: Json) -> list[Json]:
    return document["resourceSpans"][0]["scopeSpans"][0]["spans"]


def test_a_row_comes_back_whole() -> None:
    row = {
        "id": "7",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello"},
        ],
        "goal": "greet",
        "labels": {"polite": True, "warmth": 0.5, "tone": "warm"},
        "tags": ["a"],
        "metadata": {"shop": 5},
    }
    assert FORMAT.write is not None
    loss = Loss()
    documents = list(FORMAT.write([row], loss))
    [back], _ = read_values(FORMAT, documents)
    assert back["metadata"].pop("traces")
    for message in back["messages"]:
        message.pop("metadata", None)
    assert back == row
    assert loss.is_lossless


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[TelemetryHandler, Path, Path, Any]]:
    """OpenTelemetry's own instrumentation of models, its files of spans and of logs, and its spans in memory."""
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_AND_EVENT")
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
    spans, logs, memory_exporter = tmp_path / "spans.jsonl", tmp_path / "logs.jsonl", InMemorySpanExporter()
    tracers, loggers = TracerProvider(), LoggerProvider()
    for exporter in (FileSpanExporter(spans), memory_exporter):
        tracers.add_span_processor(SimpleSpanProcessor(exporter))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(FileLogExporter(logs)))
    yield TelemetryHandler(tracer_provider=tracers, logger_provider=loggers), spans, logs, memory_exporter
    tracers.shutdown()
    loggers.shutdown()


def converse(handler: TelemetryHandler) -> None:
    question = InputMessage("user", [TextPart("Where is 1042?")])
    call = ToolCallRequestPart(arguments={"n": 1042}, name="find", id="c1")
    got = InputMessage("tool", [ToolCallResponsePart(response={"state": "sent"}, id="c1")])
    with handler.invoke_local_agent(agent_name="desk", conversation_id="talk"):
        with handler.inference("openai", request_model="gpt") as first:
            first.input_messages = [question]
            first.output_messages = [OutputMessage("assistant", [call], "tool_call")]
            first.input_tokens, first.output_tokens = 10, 4
        with handler.tool("find") as tool:
            tool.tool_call_id = "c1"
        with handler.inference("openai", request_model="gpt") as second:
            second.input_messages = [question, InputMessage("assistant", [call]), got]
            second.output_messages = [OutputMessage("assistant", [TextPart("It was sent.")], "stop")]


def test_files_of_opentelemetry_are_read(telemetry: tuple[TelemetryHandler, Path, Path, Any], tmp_path: Path) -> None:
    handler, spans, logs, exporter = telemetry
    converse(handler)
    whole, printed = tmp_path / "whole.json", tmp_path / "printed.jsonl"
    whole.write_text(json.dumps(MessageToDict(encode_spans(exporter.get_finished_spans()))))
    printed.write_text("\n".join(span.to_json(indent=None) for span in exporter.get_finished_spans()))
    for file in (spans, logs, whole, printed):
        assert detect(file) is FORMAT
        loss = Loss()
        [(_, row)] = read(file, FORMAT, loss)
        assert row["id"] == "talk", file
        assert plain(row) == WHOLE, file
        assert row["metadata"]["usage"] == {"input_tokens": 10, "output_tokens": 4}
        assert row["metadata"]["models"] == ["gpt"]
        assert loss.is_lossless, list(loss.lines())
        assert row["metadata"]["traces"] == [f"{exporter.get_finished_spans()[0].context.trace_id:032x}"]


def test_what_we_write_is_otlp() -> None:
    assert FORMAT.write is not None
    messages = [
        {"role": "user", "content": "Hi", "timestamp": "2026-11-22T10:00:00Z"},
        {"role": "assistant", "content": "Hello"},
    ]
    row = {"id": "1", "messages": messages, "labels": {"polite": True}}
    [document] = FORMAT.write([row], Loss())
    parsed = ParseDict(document, TracesData()).resource_spans[0].scope_spans[0].spans[0]
    assert parsed.start_time_unix_nano == 1795341600 * 10**9
    assert {attribute.key: attribute.value.string_value for attribute in parsed.attributes}[
        "gen_ai.conversation.id"
    ] == "1"
    assert parsed.events[0].name == "gen_ai.evaluation.result"


def test_a_history_in_other_words_goes_on_where_the_user_did() -> None:
    talk = {"gen_ai.conversation.id": "talk"}
    thought = message("assistant", "<think>Sent?</think>It was sent.")
    first = span("a", 0, chat([QUESTION], [thought], **talk))
    second = span(
        "b", 9, chat([QUESTION, ANSWER, message("user", "Ok.")], [message("assistant", "Bye.")], **talk), trace="t2"
    )
    [row], _ = read_values(FORMAT, [export(first, second)])
    assert [text for _, text in plain(row)] == ["Where is 1042?", thought["parts"][0]["content"], "Ok.", "Bye."]


def test_a_guard_that_is_asked_the_same_does_not_answer() -> None:
    guard = {"gen_ai.system_instructions": [{"type": "text", "content": "Is this safe?"}]}
    spans = [
        span("a", 0, chat([QUESTION], [ANSWER])),
        span("b", 0, chat([QUESTION], [message("assistant", "safe")], **guard)),
        span("c", 4, chat([QUESTION, ANSWER, message("user", "Ok.")], [message("assistant", "Bye.")])),
    ]
    [row], _ = read_values(FORMAT, [export(*spans)])
    assert [text for _, text in plain(row)] == ["Where is 1042?", "It was sent.", "Ok.", "Bye."]
    assert len(row["metadata"]["beside"]) == 1


def test_the_first_of_several_answers_is_taken() -> None:
    answers = [{**message("assistant", text), "finish_reason": "stop"} for text in ("One.", "Two.")]
    [row], loss = read_values(FORMAT, [export(span("a", 0, chat([QUESTION], answers)))])
    assert [text for _, text in plain(row)] == ["Where is 1042?", "One."]
    assert [entry.what for entry in loss.entries()] == ["answers that a model made in addition to the first"]


def test_an_attribute_cannot_replace_the_messages() -> None:
    ours = {"messages": 5, "id": 7, "tags": 3, "metadata": "x", "goal": "sent"}
    [row], _ = read_values(FORMAT, [export(span("a", 0, chat([QUESTION], [ANSWER], **{"vivavoce.row": ours})))])
    assert (row["id"], row["goal"], len(row["messages"])) == ("t1", "sent", 2)
