"""Messages of Letta, from its API and from exported agents, become ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given
from letta_client.types.agents import (
    ApprovalRequestMessage,
    ApprovalResponseMessage,
    ApprovalReturn,
    AssistantMessage,
    LettaResponse,
    ReasoningMessage,
    ToolCall,
    ToolCallMessage,
    UserMessage,
)
from letta_client.types.tool_return_message import ToolReturnMessage
from pydantic import BaseModel

from features.formats.hostile import damage
from features.formats.translation import read_values
from vivavoce.conversations.format import Loss
from vivavoce.conversations.reading import detect, read
from vivavoce.features.formats.letta import FORMAT
from vivavoce.targets.letta_messages import LettaTurn

CALL = {"name": "find", "arguments": '{"n": 1042}', "tool_call_id": "c"}
MESSAGES: list[dict[str, Any]] = [
    {"id": "m1", "date": "2025-10-16T14:30:00Z", "message_type": "user_message", "content": "Where is 1042?"},
    {"id": "m2", "date": "2025-10-16T14:30:01Z", "message_type": "reasoning_message", "reasoning": "Find it."},
    {"id": "m2", "date": "2025-10-16T14:30:01Z", "message_type": "assistant_message", "content": "I look."},
    {"id": "m2", "date": "2025-10-16T14:30:01Z", "message_type": "tool_call_message", "tool_call": CALL},
    {
        "id": "m3",
        "date": "2025-10-16T14:30:02Z",
        "message_type": "tool_return_message",
        "tool_return": "sent",
        "status": "success",
        "tool_call_id": "c",
        "stdout": ["found"],
    },
    {
        "id": "m4",
        "date": "2025-10-16T14:30:03Z",
        "message_type": "assistant_message",
        "content": [{"type": "text", "text": "It was sent."}],
    },
]
AGENT: dict[str, Any] = {
    "id": "agent-0",
    "name": "shop",
    "agent_type": "letta_v1_agent",
    "in_context_message_ids": ["message-0"],
    "llm_config": {"model": "gpt-5"},
    "messages": [
        {"id": "message-0", "agent_id": "agent-0", "role": "system", "content": [{"type": "text", "text": "Be kind."}]},
        {"id": "message-1", "agent_id": "agent-0", "role": "user", "content": [{"type": "text", "text": "Where?"}]},
        {
            "id": "message-2",
            "agent_id": "agent-0",
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "Find it."}],
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}],
        },
        {
            "id": "message-3",
            "agent_id": "agent-0",
            "role": "tool",
            "content": [{"type": "text", "text": "sent"}],
            "tool_call_id": "c",
            "created_at": "2025-10-16T14:30:02Z",
        },
        {"id": "message-4", "agent_id": "agent-0", "role": "assistant", "content": [{"type": "text", "text": "Sent."}]},
    ],
}
EXPECTED = [
    *(("user", "Where is 1042?", None), ("assistant", "I look.", ["find"]), ("tool", "sent", None)),
    ("assistant", "It was sent.", None),
]


def _speech(row: dict[str, Any]) -> list[tuple[str, Any, list[str] | None]]:
    return [
        (
            message["role"],
            message["content"],
            [call["function"]["name"] for call in message["tool_calls"]] if "tool_calls" in message else None,
        )
        for message in row["messages"]
    ]


def test_messages_of_one_step_are_one_message() -> None:
    [row], loss = read_values(FORMAT, MESSAGES)
    assert _speech(row) == EXPECTED
    step = row["messages"][1]
    assert (step["metadata"]["letta"]["id"], step["reasoning_content"]) == ("m2", "Find it.")
    assert row["messages"][2]["tool_call_id"] == "c"
    assert row["messages"][2]["metadata"]["letta"]["stdout"] == ["found"]
    assert loss.entries() == []


def test_a_list_that_begins_with_the_latest_is_turned_around() -> None:
    [row], _ = read_values(FORMAT, [{"messages": MESSAGES[::-1]}])
    assert [(role, calls) for role, _, calls in _speech(row)] == [(role, calls) for role, _, calls in EXPECTED]


def test_an_exported_agent_is_a_conversation(tmp_path: Path) -> None:
    path = tmp_path / "agent.json"
    path.write_text(json.dumps({"agents": [AGENT], "groups": [], "blocks": [], "tools": []}))
    assert detect(path).name == "letta"
    loss = Loss()
    [(_, row)] = read(path, detect(path), loss)
    assert _speech(row) == [
        *(("system", "Be kind.", None), ("user", "Where?", None), ("assistant", None, ["find"])),
        *(("tool", "sent", None), ("assistant", "Sent.", None)),
    ]
    assert (row["id"], row["metadata"]["name"]) == ("agent-0", "shop")
    assert row["messages"][2]["reasoning_content"] == "Find it."
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [("dropped", "settings and memory of an agent")]


def test_a_call_that_is_a_part_of_an_exported_message_keeps_its_arguments() -> None:
    call = {"type": "tool_call", "id": "c", "name": "find", "input": {"n": 1042}}
    result = {"type": "tool_return", "tool_call_id": "c", "content": "none", "is_error": True}
    for role in ("assistant", "approval"):
        message = {"role": role, "content": [call], **({"tool_calls": [CALL]} if role == "approval" else {})}
        stored = [message, {"role": "tool", "content": [result]}]
        [row], _ = read_values(FORMAT, [{**AGENT, "messages": stored}])
        functions = [call["function"] for call in row["messages"][0]["tool_calls"]]
        assert {"name": "find", "arguments": '{"n": 1042}'} in functions
        assert _speech(row)[1] == ("tool", "none", None)


def test_what_is_no_message_is_an_error_and_what_is_beside_them_is_kept() -> None:
    for wrong, reason in (
        ("hello", "message 1: expected an object with message_type"),
        ({"message_type": "dance_message"}, "message 1: unknown Letta message type 'dance_message'; take it out"),
        ({"message_type": "user_message", "content": 5}, "message 1: the content is a text or a list of parts"),
    ):
        rows, loss = read_values(FORMAT, [{"messages": [MESSAGES[0], wrong]}])
        assert rows == []
        assert [entry.kind for entry in loss.entries()] == ["broken"]
        assert reason in loss.entries()[0].what
    hidden = {"message_type": "hidden_reasoning_message", "state": "redacted"}
    nameless = {"message_type": "tool_call_message", "tool_call": {"arguments": "{}"}}
    [row], loss = read_values(FORMAT, [[hidden, *MESSAGES, nameless]])
    assert _speech(row) == EXPECTED
    assert row["messages"][0]["metadata"]["letta"]["before"] == [hidden]
    assert row["messages"][-1]["metadata"]["letta"]["after"] == [nameless]
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        *(("dropped", "a call without a name"), ("aside", "hidden_reasoning_message")),
        ("aside", "tool_call_message"),
    ]


def test_who_speaks_and_what_is_shown_is_kept() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    message = {"message_type": "user_message", "name": "ann", "content": [{"type": "image", "source": source}]}
    [row], loss = read_values(FORMAT, [[message, {"message_type": "tool_return_message", "tool_return": {"n": 1}}]])
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert row["messages"] == [
        {"role": "user", "content": [image], "name": "ann"},
        {"role": "tool", "content": '{"n": 1}'},
    ]
    assert [entry.kind for entry in loss.entries()] == ["orphan_result"]


def test_a_target_that_is_an_agent_gives_the_same_messages() -> None:
    turn = LettaTurn()
    for event in [*MESSAGES[1:], {"message_type": "stop_reason", "stop_reason": "end_turn"}]:
        turn.read(event)
    [row], _ = read_values(FORMAT, [MESSAGES])
    read = [{key: value for key, value in message.items() if key != "metadata"} for message in row["messages"][1:]]
    messages = [{**message.to_dict()} for message in turn.reply().messages]
    assert messages[1].pop("name") == "find"  # as the call says; the row does not
    assert messages == read


def _write(*messages: BaseModel) -> list[Any]:
    return [message.model_dump(mode="json") for message in messages]


def test_messages_of_the_client_are_read() -> None:
    at = datetime(2025, 10, 16, 14, 30, tzinfo=UTC)
    call = ToolCall(name="find", arguments='{"n": 1042}', tool_call_id="c")
    entries = _write(
        UserMessage(id="1", date=at, content="Where is 1042?", message_type="user_message"),
        ReasoningMessage(id="2", date=at, reasoning="Find it.", message_type="reasoning_message"),
        AssistantMessage(id="2", date=at, content="I look.", message_type="assistant_message"),
        ToolCallMessage(id="2", date=at, tool_call=call, tool_calls=[call], message_type="tool_call_message"),
        ToolReturnMessage(
            id="3", date=at, status="success", tool_call_id="c", tool_return="sent", message_type="tool_return_message"
        ),
        AssistantMessage(id="4", date=at, content="It was sent.", message_type="assistant_message"),
    )
    [row], loss = read_values(FORMAT, [entries])
    assert _speech(row) == EXPECTED
    assert loss.is_lossless


def test_a_response_of_the_client_with_a_request_for_approval_is_read() -> None:
    at = datetime(2025, 10, 16, 14, 30, tzinfo=UTC)
    call = ToolCall(name="find", arguments="{}", tool_call_id="c")
    request = ApprovalRequestMessage(id="1", date=at, tool_call=call, message_type="approval_request_message")
    answer = ApprovalResponseMessage(
        id="2",
        date=at,
        approvals=[ApprovalReturn(approve=True, tool_call_id="c", type="approval")],
        message_type="approval_response_message",
    )
    result = ToolReturnMessage(
        id="3", date=at, status="error", tool_call_id="c", tool_return="none", message_type="tool_return_message"
    )
    stop: Any = {"stop_reason": "end_turn", "message_type": "stop_reason"}
    response = LettaResponse.model_construct(messages=[request, answer, result], stop_reason=stop, usage={})
    [row], loss = read_values(FORMAT, [response.model_dump(mode="json")])
    assert _speech(row) == [("assistant", None, ["find"]), ("tool", "none", None)]
    assert row["messages"][1]["outcome"] == "failed"
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [("aside", "approval_response_message")]


@given(damage(MESSAGES) | damage(AGENT))
def test_nothing_makes_the_reader_fail(record: Any) -> None:
    read_values(FORMAT, [record, {"messages": MESSAGES}])
