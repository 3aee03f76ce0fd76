"""Events and sessions of Google's Agent Development Kit are conversations."""

from __future__ import annotations

from typing import Any

import pytest

from features.formats.translation import read_values
from vivavoce.features.formats.google_adk import FORMAT


def event(author: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    role = "user" if author == "user" or "functionResponse" in parts[0] else "model"
    content = {"role": role, "parts": list(parts)}
    return {"author": author, "invocationId": "i1", "id": "e", "timestamp": 1795395597.5, "content": content, **more}


CALL = {"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Rome"}}}
RESULT = {"functionResponse": {"id": "c1", "name": "weather", "response": {"sky": "rain"}}}
QUESTION = event("user", {"text": "And in Rome?"})
ANSWER = event("forecaster", {"text": "It rains."}, usageMetadata={"totalTokenCount": 3})
SESSION = {
    "id": "s1",
    "appName": "app",
    "userId": "ann",
    "state": {"city": "Rome"},
    "lastUpdateTime": 1.0,
    "events": [QUESTION, event("router", CALL), event("router", RESULT), ANSWER],
}


def plain(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key not in ("metadata", "timestamp")}


def test_a_session_is_a_conversation_of_a_user_and_agents() -> None:
    [row], loss = read_values(FORMAT, [SESSION])
    function = {"name": "weather", "arguments": '{"city": "Rome"}'}
    assert [plain(message) for message in row["messages"]] == [
        {"role": "user", "content": "And in Rome?"},
        {
            "role": "assistant",
            "content": None,
            "name": "router",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "content": '{"sky": "rain"}', "name": "weather", "tool_call_id": "c1"},
        {"role": "assistant", "content": "It rains.", "name": "forecaster"},
    ]
    known = {"app_name": "app", "user_id": "ann", "session_state": {"city": "Rome"}, "last_update_time": 1.0}
    assert (row["id"], row["metadata"]) == ("s1", known)
    assert row["messages"][0]["timestamp"] == "2026-11-23T00:59:57.500000+00:00"
    assert row["messages"][3]["metadata"]["google-adk"]["usageMetadata"] == {"totalTokenCount": 3}
    assert loss.entries() == []


def test_pieces_states_and_what_was_taken_back_are_told() -> None:
    piece = event("forecaster", {"text": "It"}, partial=True)
    state = {"author": "forecaster", "invocationId": "i1", "actions": {"stateDelta": {"a": 1}}, "content": None}
    undone = [event(author, {"text": "No."}, invocationId="i2") for author in ("user", "forecaster")]
    rewound = {"author": "user", "invocation_id": "i3", "actions": {"rewind_before_invocation_id": "i2"}}
    [row], loss = read_values(FORMAT, [[QUESTION, piece, state, ANSWER, *undone, rewound]])
    assert [message["content"] for message in row["messages"]] == ["And in Rome?", "It rains."]
    before = row["messages"][1]["metadata"]["google-adk"]["before"]
    assert before == [{"invocationId": "i1", "actions": {"stateDelta": {"a": 1}}}]
    assert [(entry.kind, entry.what, entry.count) for entry in loss.entries()] == [
        ("dropped", "rolled-back events", 3),
        ("repeated", "chunks of complete answers", 1),
        ("aside", "events without content", 1),
    ]


def test_what_was_spoken_is_what_was_understood() -> None:
    def transcript(author: str, key: str, text: str, *, finished: bool) -> dict[str, Any]:
        return {"author": author, "invocationId": "i", key: {"text": text, "finished": finished}}

    events = [
        transcript("user", "inputTranscription", "And", finished=False),
        transcript("user", "inputTranscription", "And in Rome?", finished=True),
        transcript("forecaster", "output_transcription", "It rains.", finished=True),
    ]
    [row], _ = read_values(FORMAT, [events])
    assert [(message["role"], message["content"]) for message in row["messages"]] == [
        ("user", "And in Rome?"),
        ("assistant", "It rains."),
    ]


@pytest.mark.parametrize("time", [0, "yesterday", True, 10**400, 1e300, -5, None, []])
def test_a_time_that_is_none_is_left_out(time: Any) -> None:
    [row], _ = read_values(FORMAT, [[{**QUESTION, "timestamp": time}]])
    assert "timestamp" not in row["messages"][0]


def test_a_broken_session_is_told_and_the_next_is_read() -> None:
    broken: list[Any] = [
        {"events": [QUESTION, {"author": 5}]},
        {"events": [{**QUESTION, "content": {"parts": [5]}}]},
        {"events": 5},
        7,
    ]
    rows, loss = read_values(FORMAT, [*broken, SESSION])
    assert len(rows) == 1
    assert sum(entry.count for entry in loss.entries() if entry.kind == "broken") == len(broken)
