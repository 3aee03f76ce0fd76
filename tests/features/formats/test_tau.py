"""Results of tau-bench and tau²-bench become recorded conversations with their rewards."""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from features.formats.hostile import damage
from features.formats.translation import read_values
from recordings import RECORDINGS, needs_recordings
from vivavoce.conversations.format import NATIVE, Loss, format_named
from vivavoce.conversations.reading import detect
from vivavoce.features.formats.conversion import convert
from vivavoce.features.formats.tau import FORMAT
from vivavoce.files.rows import read_rows

OLD: dict[str, Any] = {
    "task_id": 3,
    "reward": 1.0,
    "info": {
        "task": {
            "user_id": "ann",
            "instruction": "You want to cancel order 1042.",
            "actions": [{"name": "cancel", "kwargs": {"order": "1042"}}],
            "outputs": ["42"],
        },
        "source": "user",
        "user_cost": 0.01,
        "reward_info": {"reward": 1.0, "info": {"r_actions": True, "gt_data_hash": "ab"}, "actions": []},
    },
    "traj": [
        {"role": "system", "content": "# Policy"},
        {"role": "user", "content": "Cancel order 1042."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "cancel", "arguments": "{}"}}],
            "function_call": None,
        },
        {"role": "tool", "tool_call_id": "c", "name": "cancel", "content": "done"},
        {"role": "assistant", "content": "It is cancelled."},
    ],
    "trial": 2,
}
TASK: dict[str, Any] = {
    "id": "net",
    "user_scenario": {
        "persona": "an impatient person",
        "instructions": {
            "domain": "telecom",
            "reason_for_call": "The phone has no network.",
            "known_info": "You are John.",
            "task_instructions": "Hang up when it works.",
        },
    },
    "evaluation_criteria": {
        "actions": [
            {"action_id": "1", "name": "enable_roaming", "arguments": {"line": 1}, "requestor": "assistant"},
            {"action_id": "2", "name": "toggle_data", "arguments": {}, "requestor": "user"},
        ],
        "communicate_info": ["5 GB"],
        "nl_assertions": ["The agent asks before it acts."],
    },
}
SIMULATION: dict[str, Any] = {
    "id": "s1",
    "task_id": "net",
    "start_time": "2025-06-01T12:00:00",
    "duration": 2.5,
    "termination_reason": "user_stop",
    "agent_cost": 0.25,
    "reward_info": {"reward": 0.0, "reward_breakdown": {"DB": 1.0, "COMMUNICATE": 0.0}, "nl_assertions": None},
    "trial": 1,
    "messages": [
        {"role": "assistant", "content": "Hi!", "turn_idx": 0, "timestamp": "2025-06-01T12:00:00", "tool_calls": None},
        {"role": "user", "content": "No network.", "cost": 0.1, "raw_data": {"model": "m"}},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "name": "enable_roaming", "arguments": {"line": 1}, "requestor": "assistant"},
                {"id": "b", "name": "get_line", "arguments": {}, "requestor": "assistant"},
            ],
        },
        {
            "role": "tool",
            "tool_messages": [
                {"id": "a", "role": "tool", "content": "on", "requestor": "assistant", "error": False},
                {"id": "b", "role": "tool", "content": "no such line", "requestor": "assistant", "error": True},
            ],
        },
        {"role": "assistant", "content": "Switch your data on."},
        {
            "role": "user",
            "content": None,
            "tool_calls": [{"id": "u", "name": "toggle_data", "arguments": {}, "requestor": "user"}],
        },
        {"id": "u", "role": "tool", "content": "data is on", "requestor": "user", "error": False},
        {"role": "user", "content": "It works. ###STOP###"},
    ],
}
RESULTS: dict[str, Any] = {
    "timestamp": "2025-06-01T12:00:00",
    "info": {
        "num_trials": 2,
        "agent_info": {"implementation": "llm_agent", "llm": "gpt-4.1"},
        "environment_info": {"domain_name": "telecom", "policy": "Be kind."},
    },
    "tasks": [TASK],
    "simulations": [SIMULATION],
}


def _convert(path: Path) -> tuple[list[dict[str, Any]], Loss]:
    loss, out = Loss(), path.with_suffix(".out.jsonl")
    convert(path, out, format_named(NATIVE), loss=loss)
    return [row for _, row in read_rows(out)], loss


def test_a_result_of_tau_bench_has_its_reward_goal_and_calls() -> None:
    [row], loss = read_values(FORMAT, [OLD])
    assert (row["id"], row["trial"], row["goal"]) == ("3", 2, "You want to cancel order 1042.")
    assert row["labels"] == {"reward": 1.0, "success": True, "r_actions": True}
    assert [call["function"]["name"] for call in row["reference_tool_calls"]] == ["cancel"]
    assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert (row["metadata"]["user"], row["metadata"]["outputs"]) == ("ann", ["42"])
    assert loss.entries() == []


def test_a_simulation_has_what_stands_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RESULTS))
    assert detect(path).name == "tau"
    [row], loss = _convert(path)
    assert (row["id"], row["trial"], row["policy"]) == ("telecom/net", 1, "Be kind.")
    assert (row["goal"], row["instructions"]) == ("The phone has no network.", "Hang up when it works.")
    assert (row["must"], row["facts"]) == (["The agent asks before it acts."], {"known": "You are John."})
    assert row["labels"] == {"reward": 0.0, "success": False, "db": 1.0, "communicate": 0.0}
    assert [call["function"]["name"] for call in row["reference_tool_calls"]] == ["enable_roaming"]
    assert row["metadata"]["model"] == "gpt-4.1"
    assert loss.is_lossless


def test_what_the_user_did_with_tools_is_no_step_of_the_agent() -> None:
    [row], loss = read_values(FORMAT, [SIMULATION])
    assert [message["role"] for message in row["messages"]] == [
        *("assistant", "user", "assistant", "tool", "tool", "assistant", "user")
    ]
    done = row["messages"][-1]["metadata"]["tau"]["user_tools"]
    assert [part["tool_calls"][0]["function"]["name"] for part in done[:1]] == ["toggle_data"]
    assert done[1]["content"] == "data is on"
    assert row["messages"][4]["metadata"]["tau"] == {"error": True}
    assert [(entry.kind, entry.what) for entry in loss.entries() if entry.kind == "aside"] == [
        ("aside", "tools that the user called")
    ]


def test_simulations_in_a_folder_are_read_with_their_results(tmp_path: Path) -> None:
    head: dict[str, Any] = {**RESULTS, "simulation_index": []}
    del head["simulations"]
    (tmp_path / "results.json").write_text(json.dumps(head))
    (tmp_path / "simulations").mkdir()
    for name in ("s1", "s2"):
        (tmp_path / "simulations" / f"{name}.json").write_text(json.dumps({**SIMULATION, "id": name}))
    rows, _ = _convert(tmp_path / "results.json")
    assert [(row["id"], row["policy"]) for row in rows] == [("telecom/net", "Be kind."), ("telecom/net-2", "Be kind.")]


def test_a_spoken_simulation_has_the_words_of_its_ticks() -> None:
    ticks = [
        {"tick_id": 0, "agent_chunk": {"content": "Hel"}, "user_chunk": None},
        {"tick_id": 1, "agent_chunk": {"content": "lo."}, "user_chunk": {"content": ""}},
        {"tick_id": 2, "agent_chunk": None, "user_chunk": {"content": "Hi."}},
    ]
    [row], loss = read_values(FORMAT, [{**SIMULATION, "messages": None, "ticks": ticks}])
    assert [message["content"] for message in row["messages"]] == ["Hello.", "Hi."]
    assert not loss.is_lossless


@given(damage(OLD) | damage(SIMULATION))
def test_nothing_makes_the_reader_fail(record: Any) -> None:
    read_values(FORMAT, [record, deepcopy(OLD)])


def _wire(message: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for call in message.get("tool_calls", ())
    ]
    return {**message, "tool_calls": calls or None}


@needs_recordings
def test_pass_of_all_trials_comes_out_as_it_was_published(tmp_path: Path) -> None:
    results: list[dict[str, Any]] = [
        {
            **OLD,
            "task_id": row["metadata"]["task_id"],
            "trial": row["metadata"]["trial"],
            "reward": row["labels"]["reward"],
            "traj": [_wire(message) for message in row["messages"]],
        }
        for _, row in read_rows(RECORDINGS / "tau_bench_airline" / "sierra__gpt-4o__airline.jsonl")
    ]
    path = tmp_path / "gpt-4o-airline.json"
    path.write_text(json.dumps(results))
    rows, loss = _convert(path)
    solved = Counter[str]()
    for row in rows:
        solved[row["id"]] += row["labels"]["success"]
    assert len(rows) == 200
    assert len(solved) == 50
    assert sum(solved.values()) / 200 == pytest.approx(0.420)
    assert sum(times == 4 for times in solved.values()) / 50 == pytest.approx(0.200)
    assert loss.is_lossless
