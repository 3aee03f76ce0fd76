"""A guard on calls does not miss a value for how it is written, and a requirement is not met by how one is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.grading.assertions import Scene
from vivavoce.grading.calls import Calls, NoCall
from vivavoce.grading.extractors import View
from vivavoce.messages import read_messages
from vivavoce.metrics import RuleMetric
from vivavoce.metrics.rules.possible import Possible, PossibleArguments
from vivavoce.metrics.rules.sameness import may_lie_above, may_lie_below


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


@pytest.mark.parametrize("text", ["300 each, twice", "100 (times six)", "1 0 0 0", "1,0,0,0", "200 minus 1"])
def test_an_amount_in_words_or_in_single_digits_may_be_larger(text: str) -> None:
    assert may_lie_above(text, 500)


@pytest.mark.parametrize("text", ["(10)", "10-", "50 cents", "10 %", "10 minus 9", "5 ¢"])
def test_an_amount_that_is_a_debt_or_a_part_of_one_may_be_smaller(text: str) -> None:
    assert may_lie_below(text, 5)
    assert not may_lie_below("EUR 10", 5)


@pytest.mark.parametrize("text", ["300", "EUR 300.00", "300 EUR", "1,200.50", "-300", "+300", "300%", "3 x"])
def test_a_plain_amount_is_no_arithmetic(text: str) -> None:
    assert not may_lie_above(text, 10_000)
    assert may_lie_above(f"{text} * 2", 10_000) or text == "3 x"


@given(st.recursive(st.integers() | st.booleans() | st.text("xyz", max_size=3), st.lists, max_leaves=4))
def test_a_value_is_found_in_json_text(value: Any) -> None:
    text = json.dumps({"b": value})
    ways: list[Any] = [text, json.dumps(text), f"```json\n{text}\n```", [{"b": value}]]
    for way in ways:
        there = PossibleArguments({"a": way}).at("a.b")
        assert there.values == [value]
        assert not there.is_unread


def test_plain_text_has_no_fields() -> None:
    assert PossibleArguments({"a": "just text"}).at("a.b") == Possible([])
    assert PossibleArguments({"a": "just text"}).at("a") == Possible(["just text"])


BANNED = {"order_id": 7, "note": "eve"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"orderId": 7, "note": "eve"},
        {"Order ID": "7", "NOTE": "Eve"},
        {"order-id": "#7", "note": "**eve**"},
        {"order_id": "007", "note": "bob, eve"},
        {"order_id": {"value": 7}, "note": ["bob", "eve"]},
        {"order_id": "6+1", "note": '{"name": "eve"}'},
        {"order_id": "order A-7", "note": '```\n["eve"]\n```'},
        {"order_id": 7, "note": '["eve'},
        {"order_id": 8, "OrderId": 7, "note": "eve"},
        {"args": {"order_id": 7, "note": "eve"}},
        {"input": '{"order_id": 7, "note": "eve"}'},
        {"params": '{"order_id": 7, "note'},
    ],
)
def test_every_guard_on_a_call_sees_each_way_to_write_its_arguments(arguments: dict[str, Any]) -> None:
    for name in ("pay", "Pay", "functions.pay", "mcp__bank__pay", "pay "):
        assert guards_that_pass(name, arguments) == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("pay", {"order_id": 8, "note": "eve"}),
        ("pay", {"orderId": 77, "note": "eve"}),
        ("pay", {"order_id": 7, "note": "Evelyn"}),
        ("pay", {"order_id": 7}),
        ("repay", {"order_id": 7, "note": "eve"}),
        ("payment", {"order_id": 7, "note": "eve"}),
    ],
)
def test_no_guard_takes_another_call_for_the_banned_one(name: str, arguments: dict[str, Any]) -> None:
    assert len(guards_that_pass(name, arguments)) == 3


def guards_that_pass(name: str, arguments: dict[str, Any]) -> list[str]:
    """Return the guards that pass a conversation with this call."""
    call = {"name": "pay", "arguments": BANNED}
    scene = Scene(View([talk((name, arguments))]))
    guards = {
        "no_call": NoCall.model_validate({"no_call": call}).held(scene).passed,
        "not calls": not Calls.model_validate({"calls": call}).objection(scene),
        "rule": RuleMetric(never={"call": "pay", "where": BANNED}).evaluate(talk((name, arguments))).passed,
    }
    return [guard for guard, passed in guards.items() if passed]


@pytest.mark.parametrize(
    "value", ['{"sum": 900', '```json\n{"sum": 900}\n```', '"{\\"sum\\": 900}"', "sum=900", [{"sum": 900}]]
)
def test_a_path_leads_into_text_that_is_cut_fenced_or_encoded_twice(value: object) -> None:
    rule = RuleMetric(never={"call": "wire", "where": {"p.sum": {"above": 500}}})
    assert rule.evaluate(talk(("wire", {"p": value}))).passed is False
    ban = NoCall.model_validate({"no_call": {"name": "wire", "arguments": {"p": {"sum": 900}}}})
    assert ban.held(Scene(View([talk(("wire", {"p": value}))]))).passed is False


@pytest.mark.parametrize(
    ("rule", "arguments", "passes"),
    [
        ("exact", {"N": "1"}, False),
        ("exact", {"n": 1, "further": 2}, True),
        ("exact", {"n": 1, "further": None}, False),
        ({"n": "ignore"}, {}, False),
        ({"n": {"tolerance": 0.5}}, {"N": "1.4"}, False),
        ({"n": {"tolerance": 0.5}}, {"n": 1.6}, True),
        ({"n": {"regex": "[0-9]"}}, {"N": [1]}, False),
        ({"n": {"regex": "[0-9]"}}, {"n": "ten"}, True),
        ("ignore", {"n": 5}, False),
    ],
)
def test_a_rule_for_arguments_does_not_narrow_a_ban(rule: Any, arguments: dict[str, Any], passes: bool) -> None:
    ban = NoCall.model_validate({"no_call": {"name": "pay", "arguments": {"n": 1}}, "arguments": rule})
    assert ban.held(Scene(View([talk(("pay", arguments))]))).passed is passes


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"acct": "A-17"}, {"Acct": "A-17"}),
        ({"acct": ["A-17", "B-2"]}, {"acct": "a-17"}),
        ({"acct": '"A-17"'}, {"acct": "A-17"}),
        ({"acct": "1042 or 5"}, {"acct": 5}),
        ({"acct": '{"id": 7'}, {"acct": 7}),
        ({"acct": "A 17"}, {"acct": "a17"}),
        ({"acct": "TK-8812, please"}, {"acct": "tk8812"}),
        ({"acct": "2024-05-01"}, {"acct": "on May 1, 2024 at noon"}),
        ({"acct": "2024-05-01T10:30"}, {"acct": "01.05.2024"}),
    ],
)
def test_what_must_not_come_after_a_call_sees_the_same_argument(first: Any, second: Any) -> None:
    rule = RuleMetric(never={"call": "wire"}, after={"call": "flag", "same": "acct"})
    assert rule.evaluate(talk(("flag", first), ("wire", second))).passed is False
    assert rule.evaluate(talk(("flag", first), ("wire", {"acct": "C-99"}))).passed is True


@pytest.mark.parametrize("value", [None, "", "\u200b", [], {"x": None}])
def test_a_missing_argument_connects_no_two_calls(value: object) -> None:
    after = RuleMetric(never={"call": "wire"}, after={"call": "flag", "same": "acct"})
    most = RuleMetric(at_most=1, of={"call": "wire", "same": "acct"})
    for arguments in ({}, {"acct": value}):
        result = after.evaluate(talk(("flag", arguments), ("wire", arguments)))
        assert (result.passed, result.reason) == (
            None,
            "the rule has no occasion: no call of flag has a value for acct",
        )
        assert after.evaluate(talk(("flag", {"acct": "A-1"}), ("wire", {"acct": "A-2"}), ("wire", arguments))).passed
        twice = most.evaluate(talk(("wire", arguments), ("wire", arguments)))
        assert (twice.passed, twice.reason) == (None, "the rule has no occasion: no call of wire has a value for acct")
        assert most.evaluate(talk(("wire", {"acct": "A-1"}), ("wire", arguments), ("wire", arguments))).passed


SPELLINGS = [
    (
        "TK-8812",
        ["TK8812", "tk 8812", "tk_8812", "TK-8812", ["TK 8812"], "order TK-88 12, please", '{"code": "TK8812"}'],
    ),
    ("A-9", ["A9", "a 9", "#A-9"]),
    ("DE89 3704 0044", ["DE8937040044", "de89-3704-0044"]),
    ("555-123-4567", ["(555) 123 4567", "+1 555 123 4567", 5551234567]),
    ("2024-05-01", ["2024/05/01", "01.05.2024", "5/1/2024", "May 1, 2024", "1 May", 20240501, "2024-05-01T10:30:00Z"]),
    ("2024-05-01T10:30", ["2024-05-01 10:30:00Z", "May 1, 2024 at 10:30 am"]),
]
OTHERS = [
    ("TK-8812", ["TK-8813", "TK-88120", "TK-8812-B", "TK", 88, "K-8812"]),
    ("A-9", ["A-90", "B-9", "see A-9 and B-1"]),
    ("24.90", ["25.90", 25]),
    ("5000", [-5000, "5,001"]),
    ("2024-05-01", ["2024-05-02", "2023-05-01", "May 2024", "2 May"]),
    ("2024-05-01T10:30", ["2024-05-01T10:31", "2024-05-02T10:30"]),
]


@pytest.mark.parametrize(("value", "written"), [(value, form) for value, forms in SPELLINGS for form in forms])
def test_each_ban_sees_a_code_or_a_day_in_other_spellings(value: str, written: object) -> None:
    assert broken_bans(value, talk(("wire", {"acct": written}))) == [True, True, True]
    demand = RuleMetric(always={"call": "wire", "where": {"acct": value}})
    assert demand.evaluate(talk(("wire", {"acct": written}))).passed is (written == value)


@pytest.mark.parametrize(("value", "written"), [(value, form) for value, forms in OTHERS for form in forms])
def test_no_ban_takes_another_code_or_day_for_the_banned_one(value: str, written: object) -> None:
    assert broken_bans(value, talk(("wire", {"acct": written}))) == [False, False, False]


def broken_bans(value: object, messages: list[Any]) -> list[bool]:
    """Return for each way to ban a call with a value whether it is broken."""
    call, scene = {"name": "wire", "arguments": {"acct": value}}, Scene(View([messages]))
    return [
        not NoCall.model_validate({"no_call": call}).held(scene).passed,
        bool(Calls.model_validate({"calls": call}).objection(scene)),
        RuleMetric(never={"call": "wire", "where": {"acct": value}}).evaluate(messages).passed is False,
    ]


@pytest.mark.parametrize("second", [{"O": "a-1"}, {"o": '"A-1"'}, {"o": ["A-1"]}, {"o": "A–1"}, {"o": '["A-1"]'}])
def test_what_may_happen_once_for_a_value_sees_the_same_value(second: Any) -> None:
    rule = RuleMetric(at_most=1, of={"call": "wire", "same": "o"})
    assert rule.evaluate(talk(("wire", {"o": "A-1"}), ("wire", second))).passed is False
    assert rule.evaluate(talk(("wire", {"o": "A-2"}), ("wire", second))).passed is True


@pytest.mark.parametrize("words", ["sec\u00adret", "ｓecret", "s**ec**ret", "s_e_c_r_e_t"])
def test_a_rule_against_words_reads_them_in_every_way(words: str) -> None:
    messages: list[Any] = [{"role": "user", "content": words}, {"role": "assistant", "content": words}]
    assert RuleMetric(never={"assistant_says": "secret"}).evaluate(messages).passed is False
    assert RuleMetric(always={"assistant_says": "secret"}).evaluate(messages).passed is False
    calls: list[Any] = [*messages, {"role": "assistant", "tool_calls": [{"id": "c", "name": "wire", "arguments": {}}]}]
    assert RuleMetric(never={"call": "wire"}, after={"user_says": "secret"}).evaluate(calls).passed is False


def test_a_ban_on_an_agent_holds_where_nobody_is_named() -> None:
    calls = talk(("pay", {}))
    ban = NoCall.model_validate({"no_call": {"name": "pay", "agent": "billing"}})
    assert ban.held(Scene(View([calls]))).passed is False
    assert RuleMetric(never={"call": "pay", "agent": "billing"}).evaluate(calls).passed is False
    assert RuleMetric(always={"call": "pay", "agent": "billing"}).evaluate(calls).passed is False
