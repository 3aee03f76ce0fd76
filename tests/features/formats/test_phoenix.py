"""Spans in OpenInference's words, as its own package sets them and as Phoenix exports them, become conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import pytest
from openinference import instrumentation
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from features.formats.translation import read_values
from vivavoce.conversations.format import Loss
from vivavoce.conversations.reading import detect, read
from vivavoce.features.formats import otel

Json = dict[str, Any]
PASSAGE = "Parcels are sent within a day."


def attributes_of_a_call(inputs: list[Any], outputs: Any) -> Json:
    return instrumentation.get_llm_attributes(
        model_name="gpt",
        input_messages=inputs,
        output_messages=[outputs],
        token_count=instrumentation.TokenCount(prompt=3, completion=4),
    )


@pytest.fixture
def spans(tmp_path: Path) -> list[ReadableSpan]:
    """A conversation traced by OpenInference's own package; `otlp.jsonl` has it as OTLP."""
    exporter, provider = InMemorySpanExporter(), instrumentation.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(tmp_path / "otlp.jsonl")))
    tracer = provider.get_tracer("shop")
    function = instrumentation.ToolCallFunction(name="find", arguments='{"n": 1042}')
    call = instrumentation.Message(role="assistant", tool_calls=[instrumentation.ToolCall(id="c1", function=function)])
    question = instrumentation.Message(role="user", content="Where is 1042?")
    got = instrumentation.Message(role="tool", content="sent", tool_call_id="c1")
    answer = instrumentation.Message(role="assistant", content="It was sent.")
    with (
        instrumentation.using_session("talk"),
        instrumentation.using_user("ada"),
        instrumentation.using_tags(["parcels"]),
        instrumentation.using_metadata({"shop": "rome"}),
        tracer.start_as_current_span("desk", openinference_span_kind="agent") as agent,
    ):
        agent.set_input("Where is 1042?")
        with tracer.start_as_current_span("llm", openinference_span_kind="llm") as span:
            span.set_attributes(attributes_of_a_call([question], call))
        with tracer.start_as_current_span("find", openinference_span_kind="tool") as span:
            span.set_tool(name="find", parameters={"n": 1042})
            span.set_output("sent")
        with tracer.start_as_current_span("look up", openinference_span_kind="retriever") as span:
            documents = [instrumentation.Document(content=PASSAGE, id=1)]
            span.set_attributes(instrumentation.get_retriever_attributes(documents=documents))
        with tracer.start_as_current_span("llm", openinference_span_kind="llm") as span:
            span.set_attributes(attributes_of_a_call([question, call, got], answer))
        agent.set_output("It was sent.")
    return list(exporter.get_finished_spans())


def as_object(span: ReadableSpan) -> Json:
    """Return a span as Phoenix's REST interface does."""
    data = json.loads(span.to_json())
    context = {key: value.removeprefix("0x") for key, value in data["context"].items() if key != "trace_state"}
    known = data["attributes"]
    known |= {f"metadata.{key}": value for key, value in json.loads(known.pop("metadata", "{}")).items()}
    return {
        "name": data["name"],
        "context": context,
        "span_kind": known.pop("openinference.span.kind", "UNKNOWN"),
        "parent_id": (data["parent_id"] or "").removeprefix("0x") or None,
        "start_time": data["start_time"].replace("Z", "+00:00"),
        "end_time": data["end_time"].replace("Z", "+00:00"),
        "status_code": "OK",
        "status_message": "",
        "attributes": known,
        "events": [],
    }


def as_cells(span: Json) -> Json:
    """Return a span as a row of the data frame of Phoenix's client: its messages are lists in one cell."""
    cells: Json = {key: value for key, value in span.items() if key not in ("context", "attributes")}
    cells |= {f"context.{key}": value for key, value in span["context"].items()}
    for key, value in span["attributes"].items():
        for lists in ("llm.input_messages", "llm.output_messages", "retrieval.documents"):
            if key.startswith(f"{lists}."):
                number, _, rest = key.removeprefix(f"{lists}.").partition(".")
                items: list[Json] = cells.setdefault(f"attributes.{lists}", [])
                items += [{} for _ in range(int(number) + 1 - len(items))]
                calls, _, field = rest.partition("tool_calls.0.")
                if field:
                    items[int(number)].setdefault(f"{calls}tool_calls", [{}])[0][field] = value
                else:
                    items[int(number)][rest] = value
                break
        else:
            cells[f"attributes.{key}"] = value
    return cells


def check(row: Json, loss: Loss) -> None:
    messages = [(message["role"], message["content"]) for message in row["messages"]]
    assert messages == [
        ("user", "Where is 1042?"),
        ("assistant", None),
        ("tool", "sent"),
        ("assistant", "It was sent."),
    ]
    [call] = row["messages"][1]["tool_calls"]
    assert call == {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n": 1042}'}}
    assert row["messages"][3]["retrieval_context"] == [PASSAGE]
    assert (row["id"], row["tags"], row["metadata"]["user"]) == ("talk", ["parcels"], "ada")
    assert row["metadata"]["shop"] == "rome"
    assert loss.is_lossless, list(loss.lines())


def test_otlp_of_openinference_is_read(spans: list[ReadableSpan], tmp_path: Path) -> None:
    file = tmp_path / "otlp.jsonl"
    assert detect(file) is otel.FORMAT
    for format_ in (otel.FORMAT, otel.PHOENIX):
        loss = Loss()
        [(_, row)] = read(file, format_, loss)
        check(row, loss)
        assert row["metadata"]["usage"] == {"input_tokens": 6, "output_tokens": 8}


def test_exports_of_phoenix_are_read(spans: list[ReadableSpan], tmp_path: Path) -> None:
    objects = [as_object(span) for span in spans]
    cells: Any = pandas.DataFrame([as_cells(span) for span in objects])
    page, lines, table, texts = (tmp_path / name for name in ("page.json", "s.jsonl", "s.parquet", "s.csv"))
    page.write_text(json.dumps({"data": objects, "next_cursor": None}))
    lines.write_text("\n".join(map(json.dumps, objects)))
    indexed = cells.set_index("context.span_id")
    indexed.to_parquet(table)
    indexed.to_csv(texts)
    for file in (page, lines, table, texts):
        assert detect(file) is otel.PHOENIX, file
        loss = Loss()
        [(_, row)] = read(file, otel.PHOENIX, loss)
        check(row, loss)


def test_messages_that_are_no_list_are_told() -> None:
    cells = {"context.trace_id": "t", "context.span_id": "a", "span_kind": "LLM", "attributes.output.value": "Hi."}
    _, loss = read_values(otel.PHOENIX, [{**cells, "attributes.llm.input_messages": "array([...])"}])
    assert [entry.what for entry in loss.entries()] == ["messages of an unknown shape"]


def test_without_model_calls_the_input_and_the_output_of_the_whole_are_what_was_said() -> None:
    span = {
        "name": "chain",
        "context": {"trace_id": "t", "span_id": "a"},
        "span_kind": "CHAIN",
        "attributes": {"input.value": '{"question": "Hi?"}', "output.value": '{"answer": "Yes."}'},
    }
    inner = {**span, "context": {"trace_id": "t", "span_id": "b"}, "parent_id": "a"}
    [row], loss = read_values(otel.PHOENIX, [span, inner])
    assert [(message["role"], message["content"]) for message in row["messages"]] == [
        ("user", "Hi?"),
        ("assistant", "Yes."),
    ]
    assert loss.is_lossless


def test_evaluations_become_labels() -> None:
    polite = instrumentation.Annotation(name="polite", score=0.5, label="so-so", explanation="It yawned.")
    known = instrumentation.get_evaluation_attributes(evaluations=[polite])
    known["llm.input_messages"] = [{"message.role": "user", "message.content": "Hi"}]  # as Phoenix nests them
    span = {"context": {"trace_id": "t", "span_id": "a"}, "span_kind": "LLM", "attributes": known}
    [row], _ = read_values(otel.PHOENIX, [span])
    assert row["labels"] == {"polite": 0.5}
    assert row["metadata"]["scores"] == {"polite": {"reason": "It yawned.", "label": "so-so"}}
