"""Paths of arguments that no expected call has are refused wherever rules for arguments are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce import evaluate
from vivavoce.errors import UsageError
from vivavoce.grading.assertions import Scene
from vivavoce.grading.expected import read_expect
from vivavoce.grading.extractors import View
from vivavoce.messages import read_messages
from vivavoce.suites.check import check_suite
from vivavoce.suites.load import load_suite

PLAN: dict[str, Any] = {"name": "plan", "arguments": {"meta": {"uid": "x9", "lang": "de"}}}
WANTED: dict[str, Any] = {"name": "plan", "arguments": {"meta": {"lang": "de"}}}
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "Plan my trip."},
    {"role": "assistant", "tool_calls": [{"id": "1", **PLAN}]},
    {"role": "tool", "tool_call_id": "1", "content": "ok"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "2", "name": "log", "arguments": {}}, {"id": "3", "name": "book", "arguments": {}}],
    },
    {"role": "tool", "tool_call_id": "2", "content": "ok"},
    {"role": "tool", "tool_call_id": "3", "content": "ok"},
    {"role": "assistant", "content": "Done."},
]
ROW: dict[str, Any] = {"id": "a", "messages": TALK, "reference_tool_calls": [WANTED]}


def holds(assertion: dict[str, Any]) -> bool:
    [expected] = read_expect(assertion)
    return expected.assertion.held(Scene(View([read_messages(TALK)]))).passed


def metric(rule: Any) -> Any:
    return {"metric": "trajectory_match", "config": {"mode": "in_order", "arguments": rule}}


def test_an_evaluation_refuses_an_unknown_path_and_takes_a_known_one(tmp_path: Path) -> None:
    [outcome] = evaluate([ROW], [metric({"meta.uid": "ignore"})]).outcomes()
    assert outcome.scores["trajectory_match"].value == 1
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(ROW) + "\n")
    for data in ([ROW], rows):
        with pytest.raises(UsageError, match=r"no expected call has an argument 'met\.uid'"):
            evaluate(data, [metric({"met.uid": "ignore"})])


def test_a_path_of_one_row_is_known_for_all() -> None:
    other: dict[str, Any] = {**ROW, "id": "b", "reference_tool_calls": [{"name": "book", "arguments": {}}]}
    scores = [
        outcome.scores["trajectory_match"].value
        for outcome in evaluate([other, ROW], [metric({"meta.uid": "ignore"})]).outcomes()
    ]
    assert scores == [1, 1]


def test_a_suite_is_refused_at_the_place_of_the_rule(tmp_path: Path) -> None:
    grader = {"kind": "function", "function": "trajectory_match", "config": {"arguments": {"met.uid": "ignore"}}}
    suite: dict[str, Any] = {"name": "s", "driver": "replay", "dataset": {"rows": [ROW]}, "graders": {"g": grader}}
    path = tmp_path / "suite.yaml"
    path.write_text(json.dumps(suite))
    with pytest.raises(UsageError, match=r"graders\.g\.config\.arguments: no expected call has an argument 'met\.uid'"):
        check_suite(load_suite(path))


@pytest.mark.parametrize("key", ["calls", "no_call"])
def test_an_assertion_is_checked_against_its_own_calls(key: str) -> None:
    assert read_expect({key: WANTED, "arguments": {"meta.uid": "ignore"}})
    with pytest.raises(UsageError, match=r"no expected call has an argument 'meta\.lng'"):
        read_expect({key: WANTED, "arguments": {"meta.lng": "casefold"}})


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ({"meta": {"lang": "de"}}, True),
        ({"meta.lang": "de"}, True),
        ({"meta.lang": "en"}, False),
        ({"meta": {"lang": "en"}}, False),
        ({"meta.gone": 1}, False),
    ],
)
def test_assertions_reach_into_nested_arguments(arguments: dict[str, Any], fits: bool) -> None:
    call = {"name": "plan", "arguments": arguments}
    assert holds({"calls": call}) is fits
    assert holds({"no_call": call}) is not fits


@pytest.mark.parametrize("path", ["meta.lang", "meta.gone", "met.lang"])
def test_graders_assertions_and_rules_agree_on_a_path(path: str) -> None:
    reference = {**ROW, "reference_tool_calls": [{"name": "plan", "arguments": {path: "de"}}]}
    rule: Any = {"metric": "rule", "config": {"never": {"call": "plan", "where": {path: "de"}}}}
    [outcome] = evaluate([reference], [metric("subset"), rule]).outcomes()
    found = holds({"calls": {"name": "plan", "arguments": {path: "de"}}})
    assert (outcome.scores["trajectory_match"].value == 1) is found
    assert outcome.scores["rule"].passed is not found
    assert found is (path == "meta.lang")


@pytest.mark.parametrize(
    ("calls", "mode", "passed"),
    [
        (["plan", "book"], "in_order", True),
        (["plan", "book", "log"], "strict", True),
        (["plan", "log", "book"], "strict", True),
        (["book", "plan"], "in_order", False),
        (["book", "plan"], "superset", True),
        (["plan", "book"], "strict", False),
    ],
)
def test_assertions_have_the_mode_in_order(calls: list[str], mode: str, passed: bool) -> None:
    wanted = [PLAN if name == "plan" else name for name in calls]
    assert holds({"calls": wanted, "mode": mode}) is passed
    assert holds({"not": {"calls": wanted, "mode": mode}}) is not passed
