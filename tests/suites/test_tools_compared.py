"""A grader of tool calls that has nothing to compare in any row is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vivavoce import UsageError, evaluate
from vivavoce.cli.main import main
from vivavoce.messages import ToolCall
from vivavoce.metrics.exact.tool_calls import TRAJECTORY_MODES, CallOptions
from vivavoce.suites.experiment import run_suite

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
    with pytest.raises(UsageError, match=r"'refnud', which no target has; did you mean 'refund'\?"):
        _run(function, {option: ["refnud"]})


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("config", [{"ignore": ["refund"]}, {"only": ["refund"], "ignore": ["refund"]}])
def test_options_that_leave_nothing_to_compare_are_refused(function: str, config: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"exclude all calls that rows expect|leave no tool"):
        _run(function, config)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_row_that_expects_no_call_of_the_tools_compared_is_a_ban_on_calling_them(function: str) -> None:
    other = {"role": "assistant", "tool_calls": [{"id": "2", "name": "cancel", "arguments": {}}]}
    assert _run(function, {"only": ["cancel"]}, CALL, {"role": "user", "content": "and?"}, other).value == 0


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_row_with_calls_to_compare_is_scored(function: str) -> None:
    assert _run(function, {"only": ["refund"]}, CALL).value == 1
    assert _run(function, {"only": ["refund"]}).value == 0


def _talk(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "?"}, *messages, {"role": "assistant", "content": "done"}]


EXPECTED = [{"name": "refund", "arguments": {}}]


def _as_suite(kind: str, function: str, config: dict[str, Any], row: dict[str, Any]) -> None:
    fields = {"kind": kind, "function" if kind == "function" else "metric": function, "config": config}
    suite = {"name": "s", "driver": "replay", "dataset": {"rows": [row]}, "graders": {"calls": fields}}
    Path("suite.yaml").write_text(json.dumps(suite))
    run_suite("suite.yaml", store="kept.db")


def _in_evaluate(function: str, config: dict[str, Any], row: dict[str, Any]) -> None:
    evaluate([row], [{"metric": function, "config": config}], store="kept.db")


def _in_evaluated_file(function: str, config: dict[str, Any], row: dict[str, Any]) -> None:
    Path("rows.jsonl").write_text(json.dumps(row) + "\n")
    evaluate("rows.jsonl", [{"metric": function, "config": config}], store="kept.db")


def _in_judge(function: str, config: dict[str, Any], row: dict[str, Any]) -> None:
    Path("rows.jsonl").write_text(json.dumps(row) + "\n")
    text = json.dumps({"metric": function, "config": config})
    with pytest.raises(SystemExit) as ended:
        main(["judge", "rows.jsonl", "--quiet", "--store", "kept.db", "--metrics", text])
    if ended.value.code == 2:
        raise UsageError("refused")


def _in_expect(function: str, config: dict[str, Any], row: dict[str, Any]) -> None:
    expected = {"expect": {"metric": function, "config": config}}
    evaluate([{**row, **expected}], "expect", store="kept.db")


READERS: dict[str, Callable[[str, dict[str, Any], dict[str, Any]], None]] = {
    "function of a suite": lambda *arguments: _as_suite("function", *arguments),
    "metric of a suite": lambda *arguments: _as_suite("metric", *arguments),
    "evaluate": _in_evaluate,
    "evaluate a file": _in_evaluated_file,
    "judge": _in_judge,
    "expect": _in_expect,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "config",
    [
        {"only": ["refnud"]},
        {"only": ["ff"]},
        {"ignore": ["refnud"]},
        {"ignore": ["refund"]},
        {"only": []},
        {"only": ["refund"], "ignore": ["refund"]},
        {"arguments": {"*": "ignore", "tools": {"refnud": "exact"}}},
        {"arguments": {"order": "exact", "*": "ignore"}},
        {"failed_when": ".*"},
    ],
)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_reader_refuses_options_that_leave_nothing_to_compare(
    reader: str, function: str, config: dict[str, Any]
) -> None:
    row = {"id": "a", "messages": _talk(CALL), "reference_tool_calls": EXPECTED}
    with pytest.raises(UsageError):
        READERS[reader](function, config, row)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_reader_takes_options_that_leave_something(reader: str, function: str) -> None:
    row = {"id": "a", "messages": _talk(CALL), "reference_tool_calls": EXPECTED}
    for config in ({"only": ["refund"]}, {"arguments": {"tools": {"refund": "exact"}}}, {"ignore": []}):
        READERS[reader](function, config, row)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("mode", ["superset", "in_order"])
def test_every_reader_refuses_a_mode_that_is_always_true(reader: str, mode: str) -> None:
    row = {"id": "a", "messages": _talk(CALL), "reference_tool_calls": list[Any]()}
    with pytest.raises(UsageError):
        READERS[reader]("trajectory_match", {"mode": mode}, row)


def _scores(rows: list[dict[str, Any]], metric: str, **config: Any) -> list[tuple[str, float | None]]:
    run = evaluate(rows, [{"metric": metric, "config": config}], store="kept.db")
    return [(score.state, score.value) for outcome in run.outcomes() for score in outcome.scores.values()]


OTHER = {"role": "assistant", "tool_calls": [{"id": "2", "name": "cancel", "arguments": {}}]}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_row_without_any_call_to_compare_is_skipped_and_a_ban_stays_one(function: str) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "compared", "messages": _talk(OTHER), "reference_tool_calls": [{"name": "cancel", "arguments": {}}]},
        {"id": "nothing left", "messages": _talk(CALL), "reference_tool_calls": EXPECTED},
        {"id": "not called", "messages": _talk(), "reference_tool_calls": EXPECTED},
        {"id": "more called", "messages": _talk(OTHER), "reference_tool_calls": EXPECTED},
        {"id": "ban kept", "messages": _talk(CALL), "reference_tool_calls": []},
        {"id": "ban broken", "messages": _talk(OTHER), "reference_tool_calls": []},
    ]
    states = [("scored", 1), ("skipped", None), ("skipped", None), ("scored", 0), ("scored", 1), ("scored", 0)]
    assert _scores(rows, function, ignore=["refund"]) == states
    bans = [("scored", 1), ("scored", 1), ("scored", 1), ("scored", 0), ("scored", 1), ("scored", 0)]
    assert _scores(rows, function, only=["cancel"]) == bans


def test_a_row_that_expects_nothing_is_skipped_where_that_would_always_hold() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "messages": _talk(CALL), "reference_tool_calls": EXPECTED},
        {"id": "b", "messages": _talk(CALL), "reference_tool_calls": []},
    ]
    for mode in ("superset", "in_order"):
        assert _scores(rows, "trajectory_match", mode=mode) == [("scored", 1), ("skipped", None)]


def test_a_count_of_calls_refuses_a_misspelt_tool_and_takes_one_that_is_never_called() -> None:
    row = {"id": "a", "messages": _talk(CALL)}
    fields = {"metric": "tool_call_count", "threshold": 1}
    for option in ("only", "ignore"):
        with pytest.raises(UsageError, match="did you mean 'refund'"):
            evaluate([row], [{**fields, "config": {option: ["refnud"]}}], store="kept.db")
    run = evaluate([row], [{**fields, "config": {"only": ["cancel"]}}], store="kept.db")
    assert [outcome.scores["tool_call_count"].raw for outcome in run.outcomes()] == [0]
    with pytest.raises(UsageError, match="only is empty"):
        evaluate([row], [{**fields, "config": {"only": []}}], store="kept.db")


NAMES = st.lists(st.sampled_from("abc"), max_size=3)


@settings(max_examples=200)
@given(NAMES, NAMES, NAMES, st.none() | st.lists(st.sampled_from("abc"), min_size=1), st.sampled_from(TRAJECTORY_MODES))
def test_calls_are_compared_exactly_where_a_change_of_them_can_change_the_verdict(
    expected: list[str], made: list[str], ignore: list[str], only: list[str] | None, mode: Any
) -> None:
    if only is not None and not set(only) - set(ignore):
        with pytest.raises(UsageError):
            CallOptions(only, ignore, mode=mode)
        return
    options = CallOptions(only, ignore, mode=mode)
    counted_calls = [name for name in made if options.counts(name)]
    expected_calls = [name for name in expected if options.counts(name)]
    reason = options.idle_reason(
        [ToolCall(name=name) for name in expected], [[ToolCall(name=name)] for name in counted_calls]
    )
    nothing_left = only is None and bool(expected) and not expected_calls and not counted_calls
    assert bool(reason) is (nothing_left or (mode in ("superset", "in_order") and not expected_calls))
