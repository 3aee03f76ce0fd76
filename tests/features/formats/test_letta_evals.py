"""Results of letta-evals as conversations of ours: of its newest form, and of the first one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce import run_suite
from vivavoce.conversations.format import Loss
from vivavoce.conversations.reading import detect, read
from vivavoce.errors import UsageError
from vivavoce.features.formats.letta import EVALS
from vivavoce.samples.rows import check_samples, read_samples
from vivavoce.targets.letta_rows import letta_turns, read_letta

DATE = "2026-01-02T03:04:05Z"


def letta_message(kind: str, **fields: Any) -> dict[str, Any]:
    return {"id": "message-1", "date": DATE, "message_type": kind, **fields}


CALL = {"name": "look_up", "arguments": '{"of": "France"}', "tool_call_id": "c1"}
TURN = [
    letta_message("user_message", content="The capital of France?"),
    letta_message("reasoning_message", reasoning="I look it up."),
    letta_message("tool_call_message", tool_call=CALL, tool_calls=[CALL]),
    letta_message("tool_return_message", tool_call_id="c1", status="success", tool_return="Paris"),
    letta_message("reasoning_message", reasoning="There it is."),
    letta_message("assistant_message", content=[{"type": "text", "text": "It is Paris."}]),
]
ROW: dict[str, Any] = {
    "sample_id": 0,
    "agent_id": "agent-1",
    "model_handle": "openai/gpt-5-mini",
    "trajectory": [TURN],
    "submissions": {"right": "It is Paris."},
    "grades": {"right": {"score": 1.0, "rationale": "r", "metadata": {}}},
    "reward": {"score": 1.0},
    "timing": {"total": 2.0, "target": 1.5},
}
SAMPLES: list[dict[str, Any]] = [
    {"id": 0, "input": "The capital of France?", "ground_truth": "Paris", "agent_args": {"item": "x"}}
]


def folder_of(place: Path, *rows: Any, name: str = "openai-gpt-5-mini.jsonl", samples: Any = SAMPLES) -> Path:
    (place / "suite.json").write_text(json.dumps({"suite": "s", "config": {}, "samples": samples}))
    file = place / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def rows_of(file: Path) -> tuple[list[dict[str, Any]], list[str]]:
    loss = Loss()
    return [row for _, row in read(file, EVALS, loss)], list(loss.lines())


def test_a_result_is_a_conversation_with_what_its_sample_knows(tmp_path: Path) -> None:
    file = folder_of(tmp_path, ROW)
    assert detect(file).name == "letta-evals"
    (sample,) = read_samples(file)
    assert (sample.id, sample.ground_truth, sample.agent_args) == ("0", "Paris", {"item": "x"})
    user, call, result, answer = (message.to_dict() for message in sample.messages or ())
    assert user["content"] == "The capital of France?"
    assert (call["reasoning_content"], call["content"]) == ("I look it up.", None)
    assert call["tool_calls"][0]["function"] == {"name": "look_up", "arguments": '{"of": "France"}'}
    assert (result["tool_call_id"], result["content"]) == ("c1", "Paris")
    assert (answer["reasoning_content"], answer["content"], answer["timestamp"]) == (
        "There it is.",
        "It is Paris.",
        DATE,
    )
    extra = sample.metadata["letta-evals"]
    assert (extra["model_handle"], extra["reward"], extra["grades"]) == (
        "openai/gpt-5-mini",
        {"score": 1.0},
        {"right": 1.0},
    )


def test_the_first_form_has_the_sample_in_each_row(tmp_path: Path) -> None:
    sample = {"id": 3, "input": "The capital of France?", "ground_truth": "Paris"}
    result = {"sample": sample, "submission": "x", "trajectory": [TURN], "model_name": "gpt", "grade": {"score": 1.0}}
    file = tmp_path / "results.jsonl"
    header: dict[str, Any] = {"type": "header", "suite": "s", "config": {}}
    lines: list[dict[str, Any]] = [
        header,
        *({"type": "result", "result": {**result, "model_name": name}} for name in ("gpt", "claude")),
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert detect(file).name == "letta-evals"
    assert [(sample.id, sample.ground_truth) for sample in read_samples(file)] == [
        ("3", "Paris"),
        ("3/claude", "Paris"),
    ]


def test_a_later_run_is_a_later_trial(tmp_path: Path) -> None:
    file = folder_of(tmp_path, ROW, name="openai-gpt-5-mini/run_2.jsonl")
    (sample,) = read_samples(file)
    assert (sample.trial, sample.ground_truth) == (1, "Paris")


def test_what_the_user_said_comes_from_the_sample_where_a_turn_lacks_it(tmp_path: Path) -> None:
    turns = [[letta_message("assistant_message", content=answer)] for answer in ("Paris", "Rome")]
    sample = {"id": 0, "input": ["France?", "Italy?"], "ground_truth": ["Paris", "Rome"]}
    file = folder_of(tmp_path, {**ROW, "trajectory": turns}, samples=[sample])
    (row,), report = rows_of(file)
    assert [message["content"] for message in row["messages"]] == ["France?", "Paris", "Italy?", "Rome"]
    assert row["ground_truth"] == ["Paris", "Rome"]
    assert report == []
    (tmp_path / "suite.json").unlink()
    (row,), report = rows_of(file)
    assert [message["content"] for message in row["messages"]][::2] == ["(not recorded)"] * 2
    assert report[0] == "guessed:"
    assert "2 × what the user said: neither the turn nor a suite.json next to the file has it" in report[1]


def test_truths_that_do_not_fit_the_turns_are_left_out_and_told(tmp_path: Path) -> None:
    sample = {"id": 0, "input": ["France?", "Italy?"], "ground_truth": ["Paris", "Rome"]}
    (row,), report = rows_of(folder_of(tmp_path, ROW, samples=[sample]))
    assert "ground_truth" not in row
    assert any("a list of truths without one per turn" in line for line in report)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            {**ROW, "trajectory": [], "error": {"category": "target", "exception_type": "E", "message": "no server"}},
            "has no conversation: no server; viva convert skips such results",
        ),
        ({**ROW, "trajectory": [["hello"]]}, "message 0: expected an object with message_type"),
        ({**ROW, "trajectory": [[letta_message("dance_message")]]}, "unknown Letta message type 'dance_message'"),
        ({"sample_id": 1}, "not a result of letta-evals: sample_id and trajectory are needed"),
    ],
)
def test_a_result_without_a_conversation_is_an_error_with_its_line_and_never_a_score(
    row: Any, reason: str, tmp_path: Path
) -> None:
    file = folder_of(tmp_path, ROW, row)
    rows, report = rows_of(file)
    assert len(rows) == 1
    assert any(reason in line for line in report)
    with pytest.raises(UsageError, match=r"openai-gpt-5-mini\.jsonl:2"):
        check_samples(file)


def test_rows_that_are_no_messages_are_told(tmp_path: Path) -> None:
    turn = [
        *TURN,
        letta_message("hidden_reasoning_message", state="redacted"),
        letta_message("stop_reason", stop_reason="end_turn"),
    ]
    (row,), report = rows_of(folder_of(tmp_path, {**ROW, "trajectory": [turn]}))
    assert len(row["messages"]) == 4
    assert any("1 × hidden_reasoning_message" in line for line in report)
    kinds = [message["message_type"] for message in row["messages"][-1]["metadata"]["letta"]["after"]]
    assert kinds == ["hidden_reasoning_message", "stop_reason"]


def test_a_yes_to_a_call_is_no_message_and_an_image_is_one() -> None:
    answer = letta_message(
        "approval_response_message", approvals=[{"type": "approval", "approve": True, "tool_call_id": "c1"}]
    )
    image = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    loss = Loss()
    messages = read_letta([letta_message("user_message", content=[image]), *TURN[1:3], answer, *TURN[3:]], loss)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[0]["content"] == [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [("aside", "approval_response_message")]


def test_messages_there_and_back() -> None:
    messages = read_letta(TURN, Loss())
    (turn,) = letta_turns([messages])
    keys = ("message_type", "content", "reasoning", "tool_call", "tool_return", "status", "date")
    plain = [{**row, "content": "It is Paris."} if isinstance(row.get("content"), list) else row for row in TURN]
    assert [{key: row[key] for key in keys if key in row} for row in turn] == [
        {key: row[key] for key in keys if key in row} for row in plain
    ]


def test_a_parallel_call_and_its_results_are_kept() -> None:
    second = {**CALL, "tool_call_id": "c2"}
    returns = [
        {"tool_call_id": call, "status": status, "tool_return": call}
        for call, status in (("c1", "error"), ("c2", "success"))
    ]
    rows = [
        letta_message("tool_call_message", tool_calls=[CALL, second]),
        letta_message("tool_return_message", tool_returns=returns),
    ]
    call, *results = read_letta(rows, Loss())
    assert [call["id"] for call in call["tool_calls"]] == ["c1", "c2"]
    assert [(result["tool_call_id"], result["content"]) for result in results] == [("c1", "c1"), ("c2", "c2")]
    assert results[0]["outcome"] == "failed"


def test_cached_results_are_replayed_and_graded_anew(tmp_path: Path) -> None:
    folder_of(
        tmp_path, ROW, {**ROW, "sample_id": 1}, samples=[*SAMPLES, {**SAMPLES[0], "id": 1, "ground_truth": "Rome"}]
    )
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "name: replayed\ndataset: openai-gpt-5-mini.jsonl\ndriver: replay\n"
        "graders:\n  right: {kind: function, function: contains}\n"
        "  looked: {kind: function, function: contains, extractor: tool_output,\n"
        "    extractor_config: {tool_name: look_up}}\n"
    )
    summary = run_suite(suite).summary
    assert [(grader.name, grader.mean) for grader in summary.graders] == [("right", 0.5), ("looked", 0.5)]
