"""Outputs, logs and events of CrewAI become ours, with the names of the agents."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from features.formats.hostile import damage
from features.formats.translation import read_values
from vivavoce.features.formats.crewai import FORMAT

TASK: dict[str, Any] = {
    "description": "Where is 1042?",
    "name": None,
    "expected_output": "a place",
    "summary": "Where is 1042?...",
    "raw": "It was sent.",
    "pydantic": None,
    "json_dict": None,
    "agent": "finder",
    "output_format": "raw",
    "messages": [
        {"role": "system", "content": "You are finder."},
        {"role": "user", "content": "Current task: where is 1042?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}],
        },
        {"role": "tool", "content": "sent", "tool_call_id": "c", "name": "find"},
    ],
    "tool_failures": [],
}
CREW: dict[str, Any] = {
    "raw": "Dear Ann, it was sent.",
    "pydantic": None,
    "json_dict": None,
    "tasks_output": [
        TASK,
        {**TASK, "description": "Write to Ann.", "agent": "writer", "raw": "Dear Ann", "messages": []},
    ],
    "token_usage": {"total_tokens": 5},
}
LOG: list[dict[str, Any]] = [
    {"timestamp": "2026-11-23 00:00:01", "task_name": None, "task": "Where?", "agent": "finder", "status": "started"},
    {
        "timestamp": "2026-11-23 00:00:02",
        "task_name": None,
        "task": "Where?",
        "agent": "finder",
        "status": "completed",
        "output": "Sent.",
    },
]


def _event(kind: str, **more: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-23T00:00:01Z", "type": kind, "source_fingerprint": None, "event_id": kind, **more}


EVENTS: list[dict[str, Any]] = [
    _event("crew_kickoff_started", crew_name="shop", inputs={"n": 1042}),
    _event("task_started", task_name="Where is 1042?", task=None),
    _event("tool_usage_finished", tool_name="find", tool_args={"n": 1042}, output="sent", agent_role="finder"),
    _event("tool_usage_error", tool_name="ask", tool_args="{}", error="no answer", agent_role="finder"),
    _event("llm_call_completed"),
    _event("task_completed", output={**TASK, "messages": [{"role": "'system'"}]}),
    _event("crew_kickoff_completed"),
    _event("crew_kickoff_started", crew_name="shop"),
    _event("task_completed", output=TASK),
]


def _speech(row: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    return [(message["role"], message.get("name"), message["content"]) for message in row["messages"]]


def test_the_output_of_an_agent_on_its_own_has_its_name_and_what_it_used() -> None:
    output = {"raw": "It was sent.", "agent_role": "finder", "usage_metrics": {"total_tokens": 5}, "plan": "Look."}
    [row], loss = read_values(FORMAT, [{**output, "messages": TASK["messages"]}])
    assert row["messages"][-1]["name"] == row["messages"][2]["name"] == "finder"
    assert (row["messages"][-1]["content"], row["metadata"]) == ("It was sent.", {"usage": {"total_tokens": 5}})
    assert row["messages"][-1]["metadata"]["crewai"] == {"plan": "Look."}
    assert loss.entries() == []


def test_the_output_of_a_crew_is_the_conversation_of_its_agents() -> None:
    [row], loss = read_values(FORMAT, [CREW])
    assert _speech(row) == [
        ("system", None, "You are finder."),
        ("user", None, "Current task: where is 1042?"),
        ("assistant", "finder", None),
        ("tool", "find", "sent"),
        ("assistant", "finder", "It was sent."),
        ("user", None, "Write to Ann."),
        ("assistant", "writer", "Dear Ann"),
    ]
    assert row["messages"][-1]["metadata"]["crewai"] == {"expected_output": "a place"}
    assert row["metadata"] == {"usage": {"total_tokens": 5}}
    assert loss.entries() == []


def test_a_log_is_one_conversation() -> None:
    [row], loss = read_values(FORMAT, LOG)
    assert _speech(row) == [("user", None, "Where?"), ("assistant", "finder", "Sent.")]
    assert row["messages"][0]["timestamp"] == "2026-11-23T00:00:01"
    assert loss.entries() == []


def test_events_of_a_run_are_one_conversation() -> None:
    [first, second], loss = read_values(FORMAT, EVENTS)
    assert _speech(first) == [
        ("user", None, "Where is 1042?"),
        *(("assistant", "finder", None), ("tool", "find", "sent")),
        *(("assistant", "finder", None), ("tool", "ask", "no answer")),
        ("assistant", "finder", "It was sent."),
    ]
    assert first["metadata"] == {"crew": "shop", "inputs": {"n": 1042}}
    assert _speech(second) == [("user", None, "Where is 1042?"), ("assistant", "finder", "It was sent.")]
    assert [entry.what for entry in loss.entries()] == ["events of the type llm_call_completed"]


@given(damage(CREW) | damage(TASK))
def test_nothing_makes_the_reader_fail(record: Any) -> None:
    read_values(FORMAT, [record, CREW])


@given(damage(LOG) | damage(EVENTS))
def test_nothing_makes_the_reader_of_entries_fail(records: Any) -> None:
    read_values(FORMAT, [*records, CREW])
