"""Readers of formats that know several agents say who acts, with which tools, and who hands over to whom."""

from __future__ import annotations

import json
from typing import Any

import pytest

from features.formats.translation import back_and_forth, read_values
from vivavoce.conversations.format import Loss, Row, format_named
from vivavoce.features.formats.conversion import texts
from vivavoce.messages import read_messages
from vivavoce.records.agents import Agents

AT = "2026-11-23T00:59:57.500000+00:00"
CALL = {"id": "h1", "type": "function", "function": {"name": "transfer_to_writer", "arguments": "{}"}}


def agents_of(row: Row) -> tuple[list[str], list[tuple[str | None, str, str]]]:
    """Return the agents of a conversation, and each handoff."""
    agents = Agents(read_messages(row["messages"]))
    return agents.names, [(handoff.sender, handoff.receiver, handoff.how) for handoff in agents.handoffs()]


def autogen(kind: str, source: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "source": source, "content": content, "created_at": AT, **more}


def test_a_handoff_of_autogen_that_is_called_and_told_is_one() -> None:
    called = {"id": "h1", "name": "transfer_to_writer", "arguments": "{}"}
    result = {"call_id": "h1", "name": "transfer_to_writer", "content": "ok", "is_error": False}
    thread = [
        autogen("TextMessage", "user", "Write it."),
        autogen("ToolCallRequestEvent", "finder", [called]),
        autogen("ToolCallExecutionEvent", "finder", [result]),
        autogen("HandoffMessage", "finder", "Over to you.", target="writer", context=[]),
        autogen("TextMessage", "writer", "Done."),
    ]
    [row], _ = read_values(format_named("autogen"), [{"messages": thread}])
    assert agents_of(row) == (["finder", "writer"], [("finder", "writer", "call")])
    assert row["messages"][3]["handoff_to"] == "writer"


def adk(author: str, part: Any, **actions: Any) -> dict[str, Any]:
    role = "user" if author == "user" or "functionResponse" in part else "model"
    return {
        "author": author,
        "invocationId": "i1",
        "timestamp": 1795395597.5,
        "content": {"role": role, "parts": [part]},
        "actions": actions,
    }


def test_a_transfer_of_adk_is_of_the_message_that_called_for_it() -> None:
    call = {"functionCall": {"id": "1", "name": "transfer_to_agent", "args": {"agent_name": "writer"}}}
    result = {"functionResponse": {"id": "1", "name": "transfer_to_agent", "response": {"result": None}}}
    events = [
        adk("user", {"text": "Write it."}),
        adk("finder", call),
        adk("finder", result, transferToAgent="writer"),
        adk("writer", {"text": "Done."}),
    ]
    [row], _ = read_values(format_named("google-adk"), [{"id": "s", "events": events}])
    assert agents_of(row) == (["finder", "writer"], [("finder", "writer", "call")])
    assert row["messages"][1]["handoff_to"] == "writer"


def test_a_handoff_of_livekit_is_of_the_agent_that_spoke() -> None:
    def message(role: str, text: str) -> dict[str, Any]:
        return {"id": text, "type": "message", "role": role, "content": [text], "interrupted": False}

    items = [
        {"id": "0", "type": "agent_handoff", "old_agent_id": None, "new_agent_id": "finder"},
        message("user", "Write it."),
        message("assistant", "Over to you."),
        {"id": "1", "type": "agent_handoff", "old_agent_id": "finder", "new_agent_id": "writer"},
        message("assistant", "Done."),
    ]
    [row], _ = read_values(format_named("livekit"), [{"items": items}])
    assert agents_of(row) == (["finder", "writer"], [("finder", "writer", "stated")])


def response(*items: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "Write it."}, *items]


def test_who_took_over_in_a_session_of_the_agents_sdk_is_named() -> None:
    call = {"type": "function_call", "call_id": "1", "name": "transfer_to_writer", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "1", "output": '{"assistant": "writer"}'}
    done = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    [row], _ = read_values(format_named("openai-responses"), [response(call, result, done)])
    assert [message.get("name") for message in row["messages"]] == [None, None, None, "writer"]
    assert agents_of(row) == (["writer"], [(None, "writer", "call")])


@pytest.mark.parametrize("output", ['{"assistant": 3, "x": 1}', '{"assistant": "a", "x": 1}', '{"assistant"', "ok"])
def test_another_result_of_such_a_call_names_nobody(output: str) -> None:
    call = {"type": "function_call", "call_id": "1", "name": "transfer_to_savings", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "1", "output": output}
    done = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    [row], _ = read_values(format_named("openai-responses"), [response(call, result, done)])
    assert not any("name" in message or "handoff_to" in message for message in row["messages"])


def spans(*each: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(each)}]}]}


def otlp(number: int, parent: str, known: dict[str, Any]) -> dict[str, Any]:
    values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in known.items()}
    return {
        "traceId": "0" * 31 + "1",
        "spanId": f"{number:016x}",
        "parentSpanId": parent,
        "startTimeUnixNano": str((1_795_394_226 + number) * 10**9),
        "endTimeUnixNano": str((1_795_394_227 + number) * 10**9),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in values.items()],
    }


QUESTION = {"role": "user", "parts": [{"type": "text", "content": "Write it."}]}
HANDED = {"role": "assistant", "parts": [{"type": "tool_call", "id": "h1", "name": "transfer_to_writer"}]}
RESULT = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "h1", "response": "ok"}]}
DONE = {"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}


def test_definitions_of_tools_in_a_span_are_those_of_its_agent() -> None:
    def agent(name: str, tools: list[Any]) -> dict[str, Any]:
        return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, "gen_ai.tool.definitions": tools}

    def chat(inputs: list[Any], outputs: Any) -> dict[str, Any]:
        messages = {"gen_ai.input.messages": inputs, "gen_ai.output.messages": [outputs]}
        return {"gen_ai.operation.name": "chat", **messages}

    find = {"type": "function", "name": "find"}
    write = {"type": "function", "function": {"name": "write"}}
    record = spans(
        otlp(1, "", agent("finder", [find, {"no": "name"}])),
        otlp(2, f"{1:016x}", chat([QUESTION], HANDED)),
        otlp(4, "", agent("writer", [write])),
        otlp(5, f"{4:016x}", chat([QUESTION, HANDED, RESULT], DONE)),
    )
    [row], _ = read_values(format_named("otel"), [record])
    assert agents_of(row) == (["finder", "writer"], [("finder", "writer", "call")])
    assert [message.get("agent_tools") for message in row["messages"]] == [None, ["find"], None, ["write"]]


def test_tools_of_openinference_are_schemas() -> None:
    def call(agent: str, inputs: list[tuple[str, str]], output: str, tool: Any) -> dict[str, Any]:
        known: dict[str, Any] = {"openinference.span.kind": "LLM", "agent.name": agent, "session.id": "s"}
        for number, (role, text) in enumerate(inputs):
            known[f"llm.input_messages.{number}.message.role"] = role
            known[f"llm.input_messages.{number}.message.content"] = text
        known["llm.output_messages.0.message.role"] = "assistant"
        known["llm.output_messages.0.message.content"] = output
        return {**known, "llm.tools.0.tool.json_schema": tool}

    schema = {"type": "function", "function": {"name": "find"}}
    record = spans(
        otlp(1, "", call("finder", [("user", "Write it.")], "Found.", schema)),
        otlp(3, "", call("writer", [("user", "Write it."), ("assistant", "Found.")], "Done.", "not JSON")),
    )
    [row], _ = read_values(format_named("openinference"), [record])
    assert agents_of(row) == (["finder", "writer"], [("finder", "writer", "unstated")])
    assert [message.get("agent_tools") for message in row["messages"]] == [None, ["find"], ["not JSON"]]


def test_a_node_of_a_graph_that_is_a_graph_is_an_agent() -> None:
    def run(number: int, inputs: list[Any], output: str, agent: str) -> dict[str, Any]:
        tool = {"type": "function", "function": {"name": f"{agent}_tool"}}
        extra = {
            "metadata": {"langgraph_checkpoint_ns": f"{agent}:1|model:2", "thread_id": "t"},
            "invocation_params": {"tools": [tool]},
        }
        return {
            "id": f"r{number}",
            "trace_id": "r1",
            "run_type": "llm",
            "start_time": f"2026-11-23T00:59:5{number}",
            "end_time": f"2026-11-23T00:59:5{number}.5",
            "inputs": {"messages": inputs},
            "outputs": {"messages": [{"role": "assistant", "content": output}]},
            "extra": extra,
        }

    question, answer = {"role": "user", "content": "Write it."}, {"role": "assistant", "content": "Found."}
    runs = [run(1, [question], "Found.", "finder"), run(3, [question, answer], "Done.", "writer")]
    [row], _ = read_values(format_named("langsmith"), runs)
    assert agents_of(row) == (["finder", "writer"], [("finder", "writer", "unstated")])
    assert [message.get("agent_tools") for message in row["messages"]] == [None, ["finder_tool"], ["writer_tool"]]


HANDING = {"role": "assistant", "content": None, "tool_calls": [CALL], "name": "finder", "agent_tools": ["find"]}
ROW: Row = {
    "id": "1",
    "messages": [
        {"role": "user", "content": "Write it."},
        {**HANDING, "handoff_to": "writer"},
        {"role": "tool", "content": "ok", "tool_call_id": "h1"},
        {"role": "assistant", "content": "Done.", "name": "writer", "agent_tools": []},
    ],
}


def test_trajectories_keep_what_we_know_of_agents() -> None:
    format_ = format_named("atif")
    loss = Loss()
    [text] = texts([ROW], format_, loss)
    assert loss.is_lossless
    [row], _ = read_values(format_, [json.loads(text)])
    keys = ("role", "name", "agent_tools", "handoff_to")
    assert [{key: message.get(key) for key in keys} for message in row["messages"]] == [
        {key: message.get(key) for key in keys} for message in ROW["messages"]
    ]
    assert back_and_forth(format_, [json.loads(text)])


@pytest.mark.parametrize("name", ["openai", "otel", "langchain", "anthropic", "ragas"])
def test_other_formats_say_that_they_leave_it_out(name: str) -> None:
    loss = Loss()
    text = "".join(texts([ROW], format_named(name), loss))
    assert "agent_tools" not in text
    assert "handoff_to" not in text
    dropped = {entry.what: entry.count for entry in loss.entries() if entry.kind == "dropped"}
    assert dropped["'agent_tools' of a message"] == 2
    assert dropped["'handoff_to' of a message"] == 1
