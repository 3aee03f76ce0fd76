"""Transcripts of LiveKit and of Pipecat become ours, with times, speakers and interruptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given

from features.formats.hostile import damage
from features.formats.translation import read_values
from vivavoce.conversations.reading import detect
from vivavoce.features.formats import livekit, pipecat

HISTORY: dict[str, Any] = {
    "items": [
        {"id": "1", "type": "message", "role": "system", "content": ["Be kind."], "interrupted": False, "metrics": {}},
        {
            "id": "2",
            "type": "message",
            "role": "user",
            "content": ["Where is 1042?"],
            "interrupted": False,
            "transcript_confidence": 0.9,
            "metrics": {"started_speaking_at": 1795394224.0, "stopped_speaking_at": 1795394225.0},
            "created_at": 1795394225.3,
        },
        {
            "id": "3",
            "type": "function_call",
            "call_id": "c",
            "arguments": "{}",
            "name": "find",
            "created_at": 1795394225,
        },
        {
            "id": "4",
            "type": "function_call",
            "call_id": "d",
            "arguments": "{}",
            "name": "ask",
            "created_at": 1795394225,
        },
        {
            "id": "5",
            "type": "function_call_output",
            "name": "find",
            "call_id": "c",
            "output": "sent",
            "is_error": False,
        },
        {"id": "6", "type": "function_call_output", "name": "ask", "call_id": "d", "output": "no", "is_error": True},
        {"id": "7", "type": "agent_handoff", "new_agent_id": "writer"},
        {
            "id": "8",
            "type": "message",
            "role": "assistant",
            "content": ["It was"],
            "interrupted": True,
            "metrics": {"started_speaking_at": 1795394226.5, "e2e_latency": 1.5},
            "created_at": 1795394227.0,
        },
    ]
}
REPORT: dict[str, Any] = {
    "job_id": "j",
    "room_id": "r",
    "room": "shop",
    "events": [
        {"type": "agent_state_changed", "new_state": "speaking"},
        {"type": "conversation_item_added", "item": HISTORY["items"][-1], "created_at": 1795394227.5},
    ],
    "chat_history": HISTORY,
    "duration_ms": 3000,
}
TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is 1042?", "timestamp": "2026-11-23T00:00:01.000+00:00", "user_id": "ann"},
    {"role": "assistant", "content": "It was", "timestamp": "2026-11-23T00:00:02.500+00:00", "interrupted": True},
    {"role": "user", "content": "Hello?", "timestamp": "2026-11-23T00:00:03.000+00:00", "user_id": "ann"},
]
CLIENT: list[dict[str, Any]] = [
    {"label": "rtvi-ai", "type": "bot-ready", "id": "1", "data": {"version": "1"}},
    {"label": "rtvi-ai", "type": "user-transcription", "data": {"text": "Where", "final": False, "user_id": "ann"}},
    {
        "label": "rtvi-ai",
        "type": "user-transcription",
        "data": {"text": "Where is it?", "final": True, "user_id": "ann", "timestamp": "2026-11-23T00:00:01.000+00:00"},
    },
    {"label": "rtvi-ai", "type": "bot-transcription", "data": {"text": "It was sent."}},
]


def test_a_session_has_its_times_interruptions_and_agents() -> None:
    [row], loss = read_values(livekit.FORMAT, [REPORT])
    assert [(message["role"], message.get("name"), message["content"]) for message in row["messages"]] == [
        *(("system", None, "Be kind."), ("user", None, "Where is 1042?"), ("assistant", None, None)),
        *(("tool", "find", "sent"), ("tool", "ask", "no"), ("assistant", "writer", "It was")),
    ]
    assert [call["id"] for call in row["messages"][2]["tool_calls"]] == ["c", "d"]
    assert row["messages"][1]["timestamp"] == "2026-11-23T00:37:05Z"
    last = row["messages"][-1]
    assert last["timestamp"] == "2026-11-23T00:37:06.500000Z"
    assert (last["metadata"]["interrupted"], last["metadata"]["latency"]) == (True, 1.5)
    assert (row["id"], row["metadata"]["duration_ms"]) == ("r", 3000)
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("repeated", "messages, calls and scores that events repeat"),
        ("aside", "events"),
        ("aside", "agent_handoff"),
    ]
    assert row["metadata"]["events"] == [
        {"type": "agent_state_changed", "new_state": "speaking"},
        {"type": "conversation_item_added", "created_at": 1795394227.5},
    ]


def test_a_transcript_has_its_speakers_times_and_interruptions() -> None:
    [row], loss = read_values(pipecat.FORMAT, TURNS)
    assert [(message["role"], message.get("name"), message["content"]) for message in row["messages"]] == [
        *(("user", "ann", "Where is 1042?"), ("assistant", None, "It was"), ("user", "ann", "Hello?")),
    ]
    assert row["messages"][1]["metadata"] == {"interrupted": True}
    assert row["messages"][0]["timestamp"] == "2026-11-23T00:00:01+00:00"
    assert loss.entries() == []


def test_messages_to_clients_are_read() -> None:
    [row], loss = read_values(pipecat.FORMAT, CLIENT)
    assert [(message["role"], message["content"]) for message in row["messages"]] == [
        *(("user", "Where is it?"), ("assistant", "It was sent.")),
    ]
    assert [entry.what for entry in loss.entries()] == [
        "messages to clients: bot-ready",
        "transcripts that were not final",
    ]


def test_files_are_told_apart(tmp_path: Path) -> None:
    for name, content in (("livekit", REPORT), ("livekit", HISTORY), ("pipecat", TURNS), ("pipecat", CLIENT)):
        path = tmp_path / "file.json"
        path.write_text(json.dumps(content))
        assert detect(path).name == name


@given(damage(REPORT) | damage(HISTORY))
def test_nothing_makes_the_reader_of_sessions_fail(record: Any) -> None:
    read_values(livekit.FORMAT, [record, HISTORY])


@given(damage(TURNS) | damage(CLIENT))
def test_nothing_makes_the_reader_of_transcripts_fail(records: Any) -> None:
    read_values(pipecat.FORMAT, [*records, TURNS])
