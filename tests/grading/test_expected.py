from __future__ import annotations

import time
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.grading.assertions import Scene
from vivavoce.grading.expected import KINDS, read_expect
from vivavoce.grading.extractors import View
from vivavoce.messages import read_messages

NEVER: dict[str, Any] = {"contains": "never"}
YES: dict[str, Any] = {"contains": "yes"}


def held(assertion: dict[str, Any]) -> tuple[bool, float]:
    turn = read_messages([{"role": "user", "content": "Well?"}, {"role": "assistant", "content": "yes"}])
    results = [one.assertion.held(Scene(View([turn]))) for one in read_expect({"any": [assertion]})]
    return results[0].passed, round(results[0].value, 3)


@pytest.mark.parametrize(
    ("assertion", "passed", "value"),
    [
        ({"all": [YES, YES]}, True, 1.0),
        ({"all": [YES, NEVER, NEVER]}, False, 0.333),
        ({"all": [{**YES, "weight": 3}, NEVER]}, False, 0.75),
        ({"any": [NEVER, YES]}, True, 1.0),
        ({"any": [NEVER, {"all": [YES, NEVER]}]}, False, 0.5),
        ({"not": NEVER}, True, 1.0),
        ({"not": YES}, False, 0.0),
        ({"not": {"all": [YES, NEVER]}}, True, 1.0),
    ],
)
def test_assertions_are_joined(assertion: dict[str, Any], passed: bool, value: float) -> None:
    assert held(assertion) == (passed, value)


def test_a_list_is_about_turns_and_a_mapping_about_the_conversation() -> None:
    turns = read_expect([YES, None, [YES, NEVER]])
    assert [(one.turn, one.assertion.wording) for one in turns] == [
        (0, "contains 'yes'"),
        (2, "contains 'yes'"),
        (2, "contains 'never'"),
    ]
    assert [one.turn for one in read_expect({"all": [YES, NEVER]})] == [None, None]
    assert [one.assertion.wording for one in read_expect({"any": [YES, {"not": NEVER}]})] == [
        "any of: contains 'yes'; not: contains 'never'"
    ]


ALONE = (
    "calls with mode: subset holds where no tool is called, so alone it tests nothing; write another assertion beside "
    "it, such as {calls: …} without a mode, or no_call"
)
MISTAKES: list[tuple[Any, str]] = [
    ([{"contians": "a"}], "expect.0: no assertion 'contians'; did you mean 'contains'?"),
    ([None, [YES, {"contains": ""}]], "expect.1.1.contains: is empty"),
    ({"contains": "a", "weight": True}, "expect.weight: must be a valid number"),
    ({"metric": "turn_count", "threshold": True}, "expect.threshold: must be a valid number"),
    (
        {"json_schema": {"required": ["a"]}},
        "expect.json_schema: the JSON schema has required but no type, so it accepts other values; add type: object",
    ),
    ({"contains": []}, "expect.contains: is empty"),
    ({"not": {"not_contains": ["a", ""]}}, "expect.not.not_contains.1: is empty"),
    ({"regex": "(a"}, "expect.regex: '(a' is not a regular expression: missing ) at position 2"),
    ({"regex": "a*"}, "expect.regex: /a*/ matches every text, so it cannot fail"),
    ({"any": []}, "expect.any: is empty"),
    ([[]], "expect.0: is empty"),
    ([None, None], "expect: no turn has an assertion; remove expect, or write an assertion"),
    ({"numeric": "24"}, "expect.numeric: must be a valid number"),
    ({"numeric": True}, "expect.numeric: must be a valid number"),
    ({"numeric": 1, "tolerance": -1}, "expect.tolerance: must be greater than or equal to 0"),
    ({"numeric": 1, "toleranc": 1}, "expect: numeric has no option 'toleranc'; did you mean 'tolerance'?"),
    ({"contains": "a", "weight": 0}, "expect.weight: must be greater than 0"),
    ({"latency": 0}, "expect.latency: must be greater than 0"),
    ({"no_call": []}, "expect.no_call: is empty"),
    (
        {"no_call": False},
        "expect.no_call: must be the name of a tool, or {name: …, arguments: {…}}; got False",
    ),
    (
        {"no_call": "refund_*"},
        "expect.no_call: 'refund_*' cannot be the name of a tool; names with * are for rules: "
        "{metric: rule, config: …}",
    ),
    (
        {"calls": {"nam": "a"}},
        "expect.calls: a tool call has no 'nam'; did you mean 'name'? Write {name: …, arguments: {…}}",
    ),
    ({"one_of": "a"}, "expect.one_of: must be a list such as [yes, no]; write {equals: …} for a single value"),
    ({"calls": ["a"], "mode": "subset"}, f"expect: {ALONE}"),
    ([[{"calls": "a", "mode": "subset"}], [{"contains": "x"}]], f"expect.0: {ALONE}"),
    ({"all": [{"calls": "a", "mode": "subset"}]}, f"expect: {ALONE}"),
    ({"any": [{"calls": "a", "mode": "subset"}, {"contains": "x"}]}, f"expect: {ALONE}"),
    (
        {"metric": "rule", "config": {"at_most": True, "of": {"call": "a"}}},
        "expect: metric 'rule': option 'at_most': must be a number, got true or false",
    ),
    (
        {"metric": "rule", "config": {"never": {"call": "a", "where": {}}}},
        "expect: metric 'rule': never.where: is empty; remove it to allow any arguments, "
        "or write {amount: {above: 100}}",
    ),
    (
        {"metric": "numeric", "config": {"tolerance": True}},
        "expect: metric 'numeric': option 'tolerance' of 'numeric': must be a number, got true or false",
    ),
    (
        {"metric": "turn_count", "threshold": 2, "config": {"window": True}},
        "expect: metric 'turn_count': option 'window': must be a number, got true or false",
    ),
    (
        {"calls": "a", "at_least": 0},
        "expect: calls has no option 'at_least'; known: arguments, mode, outcome, severity, weight",
    ),
    ({"calls": "a", "mode": "any"}, "expect.mode: must be 'strict', 'in_order', 'unordered', 'subset' or 'superset'"),
    ({"calls": "a", "arguments": {"x": "fuzy"}}, "expect: arguments.x: no matcher 'fuzy'; did you mean 'fuzzy'?"),
    (
        {"calls": []},
        "expect: an empty list of calls cannot fail; write no_call: true where no tool may be called",
    ),
    (
        {"all": [{"contains": "a", "regex": "b"}]},
        "expect.all.0: has two assertions, contains and regex; write a list, or {all: [...]}",
    ),
    (
        ["EUR"],
        "expect.0: expected a mapping such as {contains: EUR 24.90}; for this text write {contains: EUR}",
    ),
    ({"weight": 2}, f"expect: has no assertion; known: {', '.join(KINDS)}"),
]


@pytest.mark.parametrize(("expect", "message"), MISTAKES)
def test_what_can_not_be_used_is_named_with_its_path(expect: Any, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_expect(expect)
    assert str(raised.value) == message


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match=r"expect\.0\.json_schema: the JSON schema is not valid at"):
        read_expect([{"json_schema": {"type": "objekt"}}])


def test_a_schema_that_refers_elsewhere_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"expect\.json_schema: .* refers to 'http://x/y', which is not a schema in it"
    ):
        read_expect({"json_schema": {"$ref": "http://x/y"}})


@pytest.mark.parametrize("depth", [300, 10_000])
def test_what_is_nested_too_deeply_is_a_short_mistake(depth: int) -> None:
    expect = YES
    for _ in range(depth):
        expect = {"not": expect}
    with pytest.raises(UsageError) as raised:
        read_expect(expect)
    assert len(str(raised.value)) < 500


def test_an_expression_that_explodes_is_refused_in_bounded_time() -> None:
    started = time.monotonic()
    with pytest.raises(UsageError, match="may backtrack catastrophically"):
        read_expect({"regex": "(x+x+)+y"})
    assert time.monotonic() - started < 5
