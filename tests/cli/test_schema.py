"""The schema of a suite and that of its rows, as an editor reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from vivavoce.cli.schema import rows_text, schema_text
from vivavoce.grading.expected import KINDS
from vivavoce.samples.row import read_sample
from vivavoce.samples.sample import Sample

SCHEMA: Any = Draft202012Validator(json.loads(schema_text()))


def fits(expect: object) -> bool:
    rows = [{"input": "Hello.", "expect": expect}]
    suite = {"name": "a", "dataset": {"rows": rows}, "target": {"kind": "function", "function": "bot.py:reply"}}
    return SCHEMA.is_valid(suite)


@pytest.mark.parametrize(
    "expect",
    [
        [{"contains": "a"}, None, [{"numeric": 24.9, "tolerance": 0.01}, {"one_of": ["yes", 3]}]],
        {"all": [{"contains": ["a", 2], "weight": 2}, {"not": {"calls": "refund"}}]},
        {"calls": ["look_up", {"name": "refund", "arguments": {"order": "1042"}}], "mode": "strict"},
        {"no_call": True},
        [{"judged": "It is polite.", "weight": 2}, {"not": {"metric": "turn_count", "threshold": 3, "config": {}}}],
    ],
)
def test_assertions_of_a_row_fit(expect: object) -> None:
    assert fits(expect)


@pytest.mark.parametrize(
    "expect", [[{"contians": "a"}], {"not": {"regx": "a"}}, {"numeric": "one"}, "EUR", {"judged": 3}]
)
def test_what_is_no_assertion_does_not_fit(expect: object) -> None:
    assert not fits(expect)


def test_every_assertion_can_be_completed() -> None:
    assert set(KINDS) <= {name for one in SCHEMA.schema["$defs"].values() for name in one.get("properties", ())}


ROWS: Any = Draft202012Validator(json.loads(rows_text()))


READABLE: list[dict[str, Any]] = [
    {"input": ["Hi.", {"content": "Bye."}], "expect": [None, {"judged": "It is polite."}], "tags": ["a"]},
    {"id": 7, "messages": [{"role": "user", "content": "Hi."}], "goal": None, "must": None, "cost": 3},
    {"input": ["Hi.", "Bye."], "reference_tool_calls": [[{"name": "look_up"}], None], "rubric_path": "r.txt"},
    {"user_input": "Hi.", "response": "Hello.", "rubric": {"score1_description": "bad"}},
]


@pytest.mark.parametrize("row", READABLE)
def test_what_a_reader_takes_is_a_row(row: dict[str, Any]) -> None:
    Path("r.txt").write_text("Be kind.")
    read_sample(row, line=1, position=0, base=Path())
    assert ROWS.is_valid(row)
    assert ROWS.is_valid([row, row])


@pytest.mark.parametrize(
    "row", [{"input": 3}, {"expect": [{"contians": "a"}]}, {"tags": "a"}, {"messages": "Hi."}, {"trial": -1}, "Hi."]
)
def test_what_no_reader_takes_is_no_row(row: object) -> None:
    assert not ROWS.is_valid(row)
    assert not ROWS.is_valid([row])


def test_every_field_of_a_row_can_be_completed() -> None:
    assert set(Sample.model_fields) <= ROWS.schema["$defs"]["Row"]["properties"].keys()


@pytest.mark.parametrize(("trials", "is_one"), [(3, True), ("${TRIALS}", True), ("${TRIALS:-3}", True), ("3", False)])
def test_a_number_may_be_a_variable(trials: object, is_one: bool) -> None:
    target: dict[str, Any] = {"kind": "function", "function": "bot.py:reply", "timeout": trials}
    assert SCHEMA.is_valid({"name": "a", "dataset": "d.jsonl", "target": target, "trials": trials}) is is_one


def test_no_variable_is_read_in_a_handler_or_a_row() -> None:
    target = {"kind": "openai", "base_url": "http://localhost/v1", "model_handles": ["m"]}
    suite = {"name": "a", "dataset": "d.jsonl", "target": target}
    assert SCHEMA.is_valid({**suite, "target": {**target, "handlers": {"find": {"result": 1, "delay": 2}}}})
    assert not SCHEMA.is_valid({**suite, "target": {**target, "handlers": {"find": {"result": 1, "delay": "${SLOW}"}}}})
    assert not fits([{"numeric": "${PRICE}"}])
