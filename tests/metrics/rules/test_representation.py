"""A guard on calls does not miss a value for how it is written, and a requirement is not met by how one is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.grading.assertions import Scene
from vivavoce.grading.calls import NoCall
from vivavoce.grading.extractors import View
from vivavoce.messages import read_messages
from vivavoce.metrics import RuleMetric
from vivavoce.metrics.rules.sameness import inside_json, may_lie_above, opened


def talk(*calls: tuple[str, Any]) -> list[Any]:
    rows: list[Any] = [{"role": "user", "content": "x"}]
    for number, (name, arguments) in enumerate(calls):
        call = {"id": f"c{number}", "name": name, "arguments": arguments}
        rows += [{"role": "assistant", "tool_calls": [call]}]
        rows += [{"role": "tool", "tool_call_id": f"c{number}", "content": "done"}]
    return [*read_messages([*rows, {"role": "assistant", "content": "k"}])]


@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        ({"sum": {"above": 500}}, {"sum": "501"}),
        ({"sum": {"above": 500}}, {"sum": "2*300"}),
        ({"sum": {"above": 500}}, {"sum": "2 × 300"}),
        ({"sum": {"above": 500}}, {"sum": "(400+200)"}),
        ({"sum": {"above": 500}}, {"sum": "6e2"}),
        ({"p.sum": {"above": 500}}, {"p": '{"sum": 900}'}),
        ({"p.inner.sum": {"above": 500}}, {"p": {"inner": '{"sum": "900"}'}}),
        ({"p.0.sum": {"above": 500}}, {"p": '[{"sum": 900}]'}),
        ({"sum": 600}, {"sum": "2*300"}),
        ({"sum": 600}, {"sum": "EUR 600.00"}),
        ({"id": 7}, {"id": [6, 7]}),
        ({"id": 7}, {"id": "[6, 7]"}),
        ({"to": "eve"}, {"to": ["ann", "eve"]}),
        ({"to": "eve"}, {"to": '"eve"'}),
        ({"to": {"regex": r".*@evil\.com"}}, {"to": ["a@evil.com"]}),
        ({"to": {"regex": r".*@evil\.com"}}, {"to": "<a@evil.com>"}),
        ({"vip": True}, {"vip": "true"}),
        ({"vip": True}, {"vip": "True"}),
        ({"ids": [1042]}, {"ids": "[1042]"}),
        ({"ids": [1042]}, {"ids": ["1042"]}),
        ({"code": {"regex": r"A-\d"}}, {"code": "A-9\n"}),
        ({"code": {"regex": r"A-\d"}}, {"code": " A-9"}),
        ({"code": {"regex": r"A-\d"}}, {"code": "\uff21-9"}),
        ({"code": {"regex": r"\d+"}}, {"code": 9}),
        ({"code": "vip"}, {"code": " VIP "}),
    ],
)
def test_a_guard_sees_a_value_however_it_is_written(where: dict[str, Any], arguments: dict[str, Any]) -> None:
    rule = RuleMetric(never={"call": "wire", "where": where})
    assert rule.evaluate(talk(("wire", arguments))).passed is False


def test_a_guard_sees_a_tool_in_any_case() -> None:
    assert RuleMetric(never={"call": "wire"}).evaluate(talk(("Wire", {}))).passed is False
    assert NoCall.model_validate({"no_call": "wire"}).held(Scene(View([talk(("WIRE", {}))]))).passed is False


@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        ({"sum": {"above": 500}}, {"sum": "2*300"}),
        ({"p.sum": {"above": 500}}, {"p": '{"sum": 900}'}),
        ({"sum": 600}, {"sum": "2*300"}),
        ({"sum": 600}, {"sum": "EUR 600.00"}),
        ({"id": 7}, {"id": [6, 7]}),
        ({"id": 7}, {"id": "[6, 7]"}),
        ({"to": "eve"}, {"to": ["ann", "eve"]}),
        ({"to": "eve"}, {"to": '"eve"'}),
        ({"to": {"regex": r".*@evil\.com"}}, {"to": ["a@evil.com"]}),
        ({"to": {"regex": r".*@evil\.com"}}, {"to": "<a@evil.com>"}),
        ({"vip": True}, {"vip": "true"}),
        ({"code": {"regex": r"A-\d"}}, {"code": "A-9\n"}),
    ],
)
def test_a_requirement_needs_the_value_itself(where: dict[str, Any], arguments: dict[str, Any]) -> None:
    rule = RuleMetric(always={"call": "wire", "where": where})
    assert rule.evaluate(talk(("wire", arguments))).passed is False


@pytest.mark.parametrize("value", [None, "", "  ", "\u200b"])
def test_two_missing_values_are_not_the_same(value: object) -> None:
    rule = RuleMetric(each={"call": "wire"}, only_after=[{"call": "verify", "same": "account"}])
    both = talk(("verify", {"account": value}), ("wire", {"account": value}))
    assert rule.evaluate(both).passed is False
    assert rule.evaluate(talk(("verify", {}), ("wire", {}))).passed is False
    assert rule.evaluate(talk(("verify", {"account": "a"}), ("wire", {"account": "A"}))).passed is True
    followed = RuleMetric(each={"call": "wire"}, followed_by=[{"call": "notify", "same": "account"}])
    assert followed.evaluate(talk(("wire", {"account": value}), ("notify", {"account": value}))).passed is False


@pytest.mark.parametrize("arguments", [{"p": '{"sum": 900}'}, {"p": {"sum": "900"}}, {"p": {"sum": 900.0}}])
def test_a_forbidden_argument_is_found_in_json_text(arguments: dict[str, Any]) -> None:
    for wanted in ({"p": {"sum": 900}}, {"p.sum": 900}):
        forbidden = NoCall.model_validate({"no_call": {"name": "wire", "arguments": wanted}})
        assert forbidden.held(Scene(View([talk(("wire", arguments))]))).passed is False


@pytest.mark.parametrize("text", ["300", "EUR 300.00", "300 EUR", "1,200.50", "-300", "+300", "300%", "3 x"])
def test_a_plain_amount_is_no_arithmetic(text: str) -> None:
    assert not may_lie_above(text, 10_000)
    assert may_lie_above(f"{text} * 2", 10_000) or text == "3 x"


@given(st.recursive(st.integers() | st.booleans() | st.text("xyz", max_size=3), st.lists, max_leaves=4))
def test_a_value_is_the_same_inside_json_text(value: Any) -> None:
    wrapped: dict[str, Any] = {"a": json.dumps({"b": value})}
    assert opened(wrapped) == {"a": {"b": value}}
    assert inside_json("just text") == "just text"
