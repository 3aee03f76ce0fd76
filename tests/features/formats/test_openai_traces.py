"""Traces that the exporter of the OpenAI Agents SDK sends are read; models on loopback answered."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_trace_processors,
    trace,
)
from agents.tracing.processors import BackendSpanExporter, BatchTraceProcessor
from agents.tracing.span_data import ResponseSpanData
from agents.tracing.spans import Span
from agents.tracing.traces import Trace
from openai import AsyncOpenAI

from vivavoce.conversations.format import Loss
from vivavoce.conversations.reading import detect, read
from vivavoce.features.formats.traced import NO_WORDS
from vivavoce.messages import FunctionCall, ToolCall
from vivavoce.testing.loopback import Answer, LoopbackServer

MESSAGE = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
USAGE = {
    "input_tokens": 7,
    "output_tokens": 2,
    "total_tokens": 9,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}
RESPONSE: dict[str, Any] = {
    "object": "response",
    "created_at": 0,
    "model": "m",
    "parallel_tool_calls": False,
    "tool_choice": "auto",
    "tools": [],
    "usage": USAGE,
}


@function_tool
def weather(city: str) -> str:
    """Say how the weather is."""
    return f"rain in {city}"


def answer(body: Mapping[str, Any]) -> Answer:
    """Be the models: one that hands over, and one that looks first and answers then."""
    if "input" in body:
        words: list[Any] = [{"type": "output_text", "text": "It rains.", "annotations": []}]
        return {**RESPONSE, "id": f"resp_{len(body['input'])}", "output": [{**MESSAGE, "content": words}]}
    if "data" in body:
        return {}
    messages: list[Any] = body["messages"]
    tool_names = {tool["function"]["name"] for tool in body["tools"]}
    if "weather" not in tool_names:
        return [ToolCall(id="h1", function=FunctionCall(name="transfer_to_forecaster", arguments="{}"))]
    if messages[-1]["role"] == "tool" and messages[-1]["content"].startswith("rain"):
        return f"It rains, and I am asked {sum(message['role'] == 'user' for message in messages)} times."
    return [ToolCall(id=f"c{len(messages)}", function=FunctionCall(name="weather", arguments='{"city": "Rome"}'))]


class WithMessages(BackendSpanExporter):
    """An exporter that adds what the spans of Responses hold in addition to what they export."""

    def export(self, items: list[Trace | Span[Any]]) -> None:
        result: list[dict[str, Any]] = []
        for item in items:
            exported: dict[str, Any] = item.export() or {}
            data = None if isinstance(item, Trace) else item.span_data
            if isinstance(data, ResponseSpanData) and data.response is not None:
                more = {"input": data.input, "response": data.response.model_dump(mode="json")}
                exported["span_data"] = {**exported["span_data"], **more}
            result.append(exported)
        self._client.post(self.endpoint, json={"data": result})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with LoopbackServer(answer) as running:
        yield running
    set_trace_processors([])


@asynccontextmanager
async def run_traced(
    server: LoopbackServer, kind: type[BackendSpanExporter] = BackendSpanExporter
) -> AsyncGenerator[AsyncOpenAI, None]:
    """Yield a client; what happens within is sent to the server when it is left."""
    exporter = kind(api_key="none", endpoint=f"{server.url}/traces")
    processor = BatchTraceProcessor(exporter)
    set_trace_processors([processor])
    async with AsyncOpenAI(base_url=server.base_url, api_key="none") as client:
        yield client
    processor.shutdown()
    exporter.close()


def write_traces(server: LoopbackServer, path: Path) -> Path:
    """Write what the exporter sent into a file: an export a line."""
    sent = [request.body for request in server.requests if request.path == "/traces"]
    path.write_text("".join(json.dumps(body) + "\n" for body in sent))
    return path


def rows_of(path: Path) -> tuple[list[dict[str, Any]], Loss]:
    loss = Loss()
    result = detect(path)
    assert result.name == "openai-agents-traces"
    return [row for _, row in read(path, result, loss)], loss


async def is_fine(*_: object) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


async def test_a_group_of_traces_is_a_conversation_of_the_agents_that_spoke(
    server: LoopbackServer, tmp_path: Path
) -> None:
    async with run_traced(server) as client:
        chat = OpenAIChatCompletionsModel("m", client)
        forecaster = Agent(name="forecaster", model=chat, tools=[weather])
        guardrails: list[Any] = [InputGuardrail(is_fine, name="kind")]
        router = Agent(
            name="router",
            model=OpenAIChatCompletionsModel("m", client),
            handoffs=[forecaster],
            input_guardrails=guardrails,
        )
        with trace("Support", group_id="talk", metadata={"user": "ann"}):
            first = await Runner.run(router, "And in Rome?")
        with trace("Support", group_id="talk"):
            await Runner.run(first.last_agent, [*first.to_input_list(), {"role": "user", "content": "And now?"}])
    [row], loss = rows_of(write_traces(server, tmp_path / "traces.jsonl"))
    assert row["id"] == "talk"
    messages = [(message["role"], message.get("name"), message["content"]) for message in row["messages"]]
    assert messages == [
        ("user", None, "And in Rome?"),
        ("assistant", "router", None),
        ("tool", None, '{"assistant": "forecaster"}'),
        ("assistant", "forecaster", None),
        ("tool", None, "rain in Rome"),
        ("assistant", "forecaster", "It rains, and I am asked 1 times."),
        ("user", None, "And now?"),
        ("assistant", "forecaster", None),
        ("tool", None, "rain in Rome"),
        ("assistant", "forecaster", "It rains, and I am asked 2 times."),
    ]
    replies = [message for message in row["messages"] if message["role"] == "assistant"]
    assert [reply["agent_tools"] for reply in replies] == [[], ["weather"], ["weather"], ["weather"], ["weather"]]
    assert [reply.get("handoff_to") for reply in replies] == ["forecaster", None, None, None, None]
    assert all("timestamp" in message for message in row["messages"] if message["role"] == "assistant")
    assert (row["metadata"]["user"], row["metadata"]["workflow_name"]) == ("ann", "Support")
    assert row["metadata"]["guardrails"] == [{"name": "kind", "triggered": False}]
    assert row["metadata"]["usage"].keys() == {"input_tokens", "output_tokens"}
    assert loss.is_lossless


async def test_what_only_the_id_of_a_response_tells_is_missed(server: LoopbackServer, tmp_path: Path) -> None:
    async with run_traced(server) as client:
        await Runner.run(Agent(name="bot", model=OpenAIResponsesModel("m", client)), "And in Rome?")
    rows, loss = rows_of(write_traces(server, tmp_path / "traces.jsonl"))
    assert rows == []
    assert {(entry.kind, entry.what) for entry in loss.entries()} == {
        ("broken", NO_WORDS),
        ("dropped", "model input and output: the trace has only the response id"),
    }


async def test_an_exporter_may_add_the_messages_of_responses(server: LoopbackServer, tmp_path: Path) -> None:
    async with run_traced(server, WithMessages) as client:
        await Runner.run(Agent(name="bot", model=OpenAIResponsesModel("m", client)), "And in Rome?")
    [row], loss = rows_of(write_traces(server, tmp_path / "traces.jsonl"))
    assert [message["content"] for message in row["messages"]] == ["And in Rome?", "It rains."]
    assert (row["metadata"]["models"], row["metadata"]["usage"]) == (["m"], {"input_tokens": 7, "output_tokens": 2})
    assert loss.is_lossless


def span(number: int, data: Any, **more: Any) -> dict[str, Any]:
    return {"object": "trace.span", "id": f"s{number}", "trace_id": "t", "span_data": data, **more}


def test_what_a_tool_returned_and_no_model_was_given_is_put_behind_its_call(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Rome"}'}}
    question, called = (
        {"role": "user", "content": "Rome?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    )
    items = [
        {"object": "trace", "id": "t", "workflow_name": "w", "group_id": None, "metadata": None},
        span(1, {"type": "generation", "input": [question], "output": [called]}, started_at="2026-11-22T10:00:00Z"),
        span(2, {"type": "function", "name": "weather", "input": '{"city": "Rome"}', "output": "rain"}),
        span(3, {"type": "mcp_tools", "server": "s", "result": []}),
        span(3, {"type": "mcp_tools", "server": "s", "result": []}),
    ]
    path = tmp_path / "traces.json"
    path.write_text(json.dumps({"data": items}))
    [row], loss = rows_of(path)
    assert row["id"] == "t"
    assert [(message["role"], message["content"]) for message in row["messages"]] == [
        ("user", "Rome?"),
        ("assistant", None),
        ("tool", "rain"),
    ]
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("dropped", "a span of the type mcp_tools"),
        ("repeated", "records with the same id"),
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"object": "trace.span", "id": "s", "span_data": {"type": "generation"}},
        {"object": "trace.span", "id": "s", "trace_id": "t", "span_data": None},
        {"object": "trace.span", "id": "s", "trace_id": ["t"], "span_data": {"type": ["generation"]}},
        {"object": "trace", "workflow_name": "w"},
        {"object": ["trace"], "workflow_name": "w"},
        {"data": [1]},
        [],
    ],
)
def test_a_broken_record_is_told_and_the_next_is_read(tmp_path: Path, broken: Any) -> None:
    path = tmp_path / "traces.jsonl"
    span_data = {"type": "generation", "input": [{"role": "user", "content": "Hi."}], "output": None}
    path.write_text(f"{json.dumps(broken)}\n{json.dumps(span(1, span_data))}\n")
    [row], loss = rows_of(path)
    assert [message["content"] for message in row["messages"]] == ["Hi."]
    assert [(entry.kind, entry.places) for entry in loss.entries()] == [("broken", ["line 1"])]
