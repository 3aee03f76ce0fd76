"""The recording of a suite: what may be live, which rows it covers, and the grader that it adds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.check import run_checks
from vivavoce.suites.grading_spec import RecordingGraderSpec
from vivavoce.suites.load import TargetChanges, described_suite

TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
MODEL = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "model_handles": ["m"], "tools": [TOOL]}
HTTP = {"kind": "http", "url": "http://127.0.0.1:9", "body": "{{ message }}"}
SUITE: dict[str, Any] = {
    "name": "shop",
    "dataset": {"rows": [{"id": "a", "input": ["Hi", "Bye"]}, {"id": "b", "input": "Hi"}]},
    "target": MODEL,
    "graders": {"says": {"kind": "function", "function": "ascii_printable_only"}},
    "recording": "r.jsonl",
}


def reply(sample: str, turn: int, message: Any, **more: Any) -> dict[str, Any]:
    done = {"messages": [{"role": "assistant", "content": "Hello"}]}
    return {"kind": "reply", "sample": sample, "target": "bot", "turn": turn, "said": message, **done, **more}


CALL = {"kind": "tool", "sample": "a", "name": "look_up", "arguments": {}, "result": 1}
REPLIES = [reply("a", 0, "Hi"), reply("a", 1, "Bye"), reply("b", 0, "Hi")]


def notes(folder: Path, *lines: dict[str, Any], head: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    """Write a recording, and return what is noted of a suite with it."""
    every = [{"vivavoce_recording": 2, **(head or {})}, *lines, {"kind": "end"}]
    (folder / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in every))
    checks = run_checks(described_suite({**SUITE, **changes}, folder, "suite.yaml"))
    return list(checks.prepared.suite.notes)


def test_rows_that_are_as_recorded_need_one_note(tmp_path: Path) -> None:
    assert notes(tmp_path, CALL, *REPLIES, head={"run": "shop-1"}) == [
        "r.jsonl covers 2 of 2 rows, recorded in run shop-1"
    ]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (
            [reply("a", 0, "Hi"), reply("a", 1, "Stop"), reply("b", 0, "Hi")],
            "has other words of the user: a from turn 2",
        ),
        ([reply("a", 0, "Hi"), reply("b", 0, "Hi")], "has other words of the user: a from turn 2 on"),
        ([reply("a", 0, "Hi"), reply("a", 1, "Bye")], "does not have b: a tool that only these rows call is not"),
        ([*REPLIES, reply("c", 0, "Hi")], "has rows that are not run: c"),
        ([*REPLIES, reply("b", 0, "Hi", trial=1)], "has up to 2 conversations of a row; each new one is compared"),
        ([*REPLIES, reply("b", 0, "Hi", target="x")], "has up to 2 conversations of a row with 2 targets"),
        (
            [*REPLIES, {**CALL, "name": "find"}],
            "has calls of tools that no target offers: find; is it called look_up now?",
        ),
        ([CALL], "has only tool results: they are answered from it, and nothing is compared"),
    ],
)
def test_what_is_not_as_it_was_recorded_is_noted(tmp_path: Path, lines: list[dict[str, Any]], text: str) -> None:
    assert any(note.startswith(f"r.jsonl {text}") for note in notes(tmp_path, *lines))


def test_texts_of_a_recording_are_safe_to_print(tmp_path: Path) -> None:
    assert "\x1b" not in "".join(notes(tmp_path, *REPLIES, reply("\x1b[2J", 0, "Hi"), head={"suite": "\x1b[31m"}))


def test_a_recording_adds_its_grader_once(tmp_path: Path) -> None:
    notes(tmp_path, *REPLIES)
    suite = run_checks(described_suite(SUITE, tmp_path, "suite.yaml")).prepared.suite
    assert isinstance(suite.spec.graders["as_recorded"], RecordingGraderSpec)
    own = {"same": {"kind": "recording", "path": "r.jsonl", "display_name": "as before"}}
    suite = run_checks(described_suite({**SUITE, "graders": own}, tmp_path, "suite.yaml")).prepared.suite
    assert list(suite.spec.graders) == ["same"]


def test_another_grader_may_not_have_its_name(tmp_path: Path) -> None:
    graders = {"as_recorded": {"kind": "function", "function": "ascii_printable_only"}}
    with pytest.raises(UsageError, match="as_recorded is the grader that compares with the recording"):
        notes(tmp_path, *REPLIES, graders=graders)


def test_a_grader_needs_replies(tmp_path: Path) -> None:
    own = {"same": {"kind": "recording", "path": "r.jsonl"}}
    with pytest.raises(UsageError, match=r"graders\.same\.path: r\.jsonl has only tool results"):
        notes(tmp_path, CALL, graders=own)


@pytest.mark.parametrize(
    ("recording", "target", "problem"),
    [
        ({"live": ["lookup"]}, MODEL, "no tool and no target is called 'lookup'; did you mean 'look_up'?"),
        ({"live": ["look_up"]}, MODEL, "no handler answers the tool 'look_up'; give the target handlers"),
        ({}, HTTP, "the target 'http' of kind http calls its tools itself"),
        ({}, {**MODEL, "tools": None}, "the target 'm' of kind openai calls its tools itself"),
    ],
)
def test_nothing_is_live_that_is_not_named(
    tmp_path: Path, recording: dict[str, Any], target: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem.replace("?", r"\?")):
        notes(tmp_path, CALL, *REPLIES, recording={"path": "r.jsonl", **recording}, target=target)


@pytest.mark.parametrize("target", [HTTP, {"kind": "terminal"}])
def test_a_recording_without_calls_of_tools_asks_for_no_name(tmp_path: Path, target: dict[str, Any]) -> None:
    assert notes(tmp_path, *REPLIES, target=target) == ["r.jsonl covers 2 of 2 rows"]


def test_what_judges_may_be_asked_is_an_upper_limit(tmp_path: Path) -> None:
    judge = {"kind": {"kind": "model_judge", "prompt": "Kind? {{ submission }}", "model": "openai:x"}}
    notes(tmp_path, *REPLIES, graders=judge)
    forecast = run_checks(described_suite({**SUITE, "graders": judge}, tmp_path, "suite.yaml")).forecast
    assert (forecast.verdicts, forecast.depends) == (4, True)


def test_a_command_line_adds_to_what_a_suite_says_of_its_recording() -> None:
    data: dict[str, Any] = {"recording": "r.jsonl"}
    TargetChanges(live=["a"]).apply(data)
    assert data["recording"] == {"path": "r.jsonl", "live": ["a"]}
    TargetChanges(recording="other.jsonl", live=["b"]).apply(data)
    assert data["recording"] == {"path": "other.jsonl", "live": ["a", "b"]}
    with pytest.raises(UsageError, match="--live needs --recording"):
        TargetChanges(live=["a"]).apply({})
