"""The schema of a suite, as an editor reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from vivavoce.cli.schema import schema_text
from vivavoce.grading.expected import KINDS

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
    ],
)
def test_assertions_of_a_row_fit(expect: object) -> None:
    assert fits(expect)


@pytest.mark.parametrize("expect", [[{"contians": "a"}], {"not": {"regx": "a"}}, {"numeric": "one"}, "EUR"])
def test_what_is_no_assertion_does_not_fit(expect: object) -> None:
    assert not fits(expect)


def test_every_assertion_can_be_completed() -> None:
    assert set(KINDS) <= {name for one in SCHEMA.schema["$defs"].values() for name in one.get("properties", ())}
