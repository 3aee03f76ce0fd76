"""A grader of tool calls that has nothing to compare in any row is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.opening import run_suite

FUNCTIONS = ("trajectory_match", "tool_call_accuracy", "tool_call_f1")
CALL = {"role": "assistant", "tool_calls": [{"id": "1", "name": "refund", "arguments": {}}]}


def _run(function: str, config: dict[str, Any], *messages: dict[str, Any]) -> Any:
    talk = [{"role": "user", "content": "?"}, *messages, {"role": "assistant", "content": "no calls at all"}]
    row = {"id": "a", "reference_tool_calls": [{"name": "refund", "arguments": {}}], "messages": talk}
    graders = {"calls": {"kind": "function", "function": function, "config": config}}
    suite = {"name": "only", "driver": "replay", "dataset": {"rows": [row]}, "graders": graders}
    Path("suite.yaml").write_text(json.dumps(suite))
    (outcome,) = run_suite("suite.yaml", store="kept.db").outcomes()
    return outcome.scores["calls"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("option", ["only", "ignore"])
def test_a_tool_that_nobody_expects_or_has_is_refused(function: str, option: str) -> None:
    with pytest.raises(UsageError, match=r"'refnud', and no target has it; did you mean 'refund'\?"):
        _run(function, {option: ["refnud"]})


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("config", [{"ignore": ["refund"]}, {"only": ["refund"], "ignore": ["refund"]}])
def test_options_that_leave_nothing_to_compare_are_refused(function: str, config: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="leave none of the calls that rows expect"):
        _run(function, config)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_row_that_expects_no_call_of_the_tools_compared_is_a_ban_on_calling_them(function: str) -> None:
    other = {"role": "assistant", "tool_calls": [{"id": "2", "name": "cancel", "arguments": {}}]}
    assert _run(function, {"only": ["cancel"]}, CALL, {"role": "user", "content": "and?"}, other).value == 0


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_row_with_calls_to_compare_is_scored(function: str) -> None:
    assert _run(function, {"only": ["refund"]}, CALL).value == 1
    assert _run(function, {"only": ["refund"]}).value == 0
