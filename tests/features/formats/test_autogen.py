"""Messages of AutoGen become ours, with the names of those who speak."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from features.formats.hostile import damage
from features.formats.translation import NOWHERE, read_values
from vivavoce.conversations.format import Place, Record
from vivavoce.features.formats.autogen import FORMAT

CALL = {"id": "c", "arguments": '{"n": 1042}', "name": "find"}
RESULT = {"content": "sent", "name": "find", "call_id": "c", "is_error": False}
AT = "2026-11-23T00:32:34.061191Z"


def _item(kind: str, source: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "source": source,
        "models_usage": None,
        "metadata": {},
        "created_at": AT,
        "content": content,
        "type": kind,
        **more,
    }


THREAD: list[dict[str, Any]] = [
    _item("TextMessage", "user", "Where is 1042?"),
    _item("ThoughtEvent", "finder", "hm"),
    _item("MemoryQueryEvent", "finder", [{"content": "1042 is a parcel", "mime_type": "text/plain"}]),
    _item("ToolCallRequestEvent", "finder", [CALL], models_usage={"prompt_tokens": 1, "completion_tokens": 2}),
    _item("ToolCallExecutionEvent", "finder", [RESULT]),
    _item("ToolCallSummaryMessage", "finder", "sent", tool_calls=[CALL], results=[RESULT]),
    _item("HandoffMessage", "finder", "Over to you.", target="writer", context=[]),
    _item("MultiModalMessage", "writer", ["See:", {"data": "aGk="}]),
    _item("StructuredMessage[Answer]", "writer", {"state": "sent"}),
]
CONTEXT: list[dict[str, Any]] = [
    {"content": "Be kind.", "type": "SystemMessage"},
    {"content": "Where is 1042?", "source": "user", "type": "UserMessage"},
    {"content": [CALL], "thought": "hm", "source": "finder", "type": "AssistantMessage"},
    {"content": [RESULT], "type": "FunctionExecutionResultMessage"},
    {"content": "It was sent.", "source": "writer", "type": "UserMessage"},
    {"content": "Done.", "thought": None, "source": "finder", "type": "AssistantMessage"},
]


def test_a_thread_keeps_its_speakers() -> None:
    [row], loss = read_values(FORMAT, [{"messages": THREAD, "stop_reason": "done"}])
    assert [(message["role"], message.get("name"), message["content"]) for message in row["messages"]] == [
        ("user", None, "Where is 1042?"),
        ("assistant", "finder", None),
        ("tool", "find", "sent"),
        ("assistant", "finder", "sent"),
        ("assistant", "finder", "Over to you."),
        (
            *("assistant", "writer"),
            [
                {"type": "text", "text": "See:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ],
        ),
        ("assistant", "writer", '{"state": "sent"}'),
    ]
    called = row["messages"][1]
    assert called["tool_calls"][0]["function"] == {"name": "find", "arguments": '{"n": 1042}'}
    assert (called["retrieval_context"], called["timestamp"]) == (["1042 is a parcel"], AT)
    assert called["metadata"]["autogen"]["models_usage"] == {"prompt_tokens": 1, "completion_tokens": 2}
    assert row["metadata"] == {"stop_reason": "done"}
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("repeated", "calls and results in a call summary"),
        ("aside", "ThoughtEvent"),
    ]


def test_the_context_of_a_model_is_read() -> None:
    [row], _ = read_values(FORMAT, [{"type": "AssistantAgentState", "llm_context": {"messages": CONTEXT}}])
    assert [message["role"] for message in row["messages"]] == [
        *("system", "user", "assistant", "tool", "user", "assistant")
    ]
    assert [message.get("name") for message in row["messages"]] == [None, None, "finder", "find", "writer", "finder"]


def test_a_saved_team_is_what_its_manager_keeps() -> None:
    states = {
        "finder": {"agent_state": {"llm_context": {"messages": CONTEXT}}},
        "Manager": {"type": "RoundRobinManagerState", "message_thread": THREAD},
    }
    team = {"type": "TeamState", "version": "1.0.0", "agent_states": states}
    assert FORMAT.fits(Record(Place(NOWHERE, 1), team))
    [row], _ = read_values(FORMAT, [team])
    assert len(row["messages"]) == 7


def test_without_a_user_the_one_who_begins_is_it() -> None:
    [row], loss = read_values(FORMAT, [[_item("TextMessage", "ann", "Hi."), _item("TextMessage", "bot", "Hello.")]])
    assert [message["role"] for message in row["messages"]] == ["user", "assistant"]
    assert not loss.is_lossless


@given(damage(THREAD) | damage(CONTEXT))
def test_nothing_makes_the_reader_fail(record: Any) -> None:
    read_values(FORMAT, [record, THREAD])
