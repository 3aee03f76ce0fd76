from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import GraderFault
from vivavoce.grading.assertions import Held, Scene
from vivavoce.grading.calls import Calls
from vivavoce.grading.expected import read_expect
from vivavoce.grading.extractors import View
from vivavoce.messages import AnyMessage, ToolCall, read_messages
from vivavoce.metrics.exact.tool_calls import TRAJECTORY_MODES, TrajectoryMode, match_trajectory, select_steps

CALL: dict[str, Any] = {"name": "refund", "arguments": {"order": "1042", "amount": 24.9}}


def said(*texts: str, calls: list[dict[str, Any]] | None = None) -> list[AnyMessage]:
    """Return a turn in which the assistant says these texts; the calls are in the first."""
    answers: list[dict[str, Any]] = [{"role": "assistant", "content": text} for text in texts]
    if calls:
        answers[0]["tool_calls"] = calls
    return read_messages([{"role": "user", "content": "Where is the order 1042? Sorry to ask."}, *answers])


def held(assertion: dict[str, Any], *turns: list[AnyMessage], seconds: tuple[float | None, ...] = ()) -> Held:
    [expected] = read_expect(assertion)
    return expected.assertion.held(Scene(View(turns, seconds=seconds)))


REPLY = said("Let me look.", "You get EUR 24.90, not 30, by 5 May: that is 24.90.")


@pytest.mark.parametrize(
    ("assertion", "found"),
    [
        ({"contains": "eur 24.90"}, ""),
        ({"contains": ["LET ME", "may", 24.9]}, ""),
        ({"contains": ["look", "1042", "sorry"]}, "does not contain '1042'; does not contain 'sorry'"),
        ({"not_contains": ["sorry", "1042"]}, ""),
        ({"not_contains": ["sorry", "look"]}, "contains 'look'"),
        ({"contains": " ＬＥＴ\u00a0me\u200b "}, ""),
        ({"regex": r"EUR \d+\.\d\d"}, ""),
        ({"regex": "^You"}, "does not match /^You/"),
        ({"regex": "(?m)^You"}, ""),
        ({"equals": "Let me look."}, "is not 'Let me look.'"),
        ({"equals": "You get EUR 24.90, not 30, by 5 May: that is 24.90."}, ""),
        ({"one_of": ["yes", "no"]}, "is none of 'yes', 'no'"),
        ({"numeric": 24.9}, ""),
        (
            {"numeric": 25, "tolerance": 0.05},
            "the last number is 24.90 (in ', by 5 May: that is 24.90.'), expected 25 ± 0.05"
            "; use `take: first` or `contains: 25` for another number",
        ),
        ({"numeric": 25, "relative": 0.01}, ""),
        ({"numeric": 24.9, "take": "first"}, ""),
        (
            {"numeric": 5},
            "the last number is 24.90 (in ', by 5 May: that is 24.90.'), expected 5 ± 0"
            "; use `take: first` or `contains: 5` for another number",
        ),
        ({"json_schema": {"type": "object"}}, "is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ({"no_call": True}, ""),
        ({"calls": "refund"}, "missing call: refund"),
    ],
)
def test_what_is_said_is_searched_as_a_whole_and_the_last_of_it_compared(assertion: dict[str, Any], found: str) -> None:
    assert held(assertion, REPLY) == Held(not found, float(not found), found)


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ("{}", False),
        ("```json\n{}\n```", False),
        ("~~~\n{}\n~~~", False),
        ("[]", True),
        ("```\n[]\n```", True),
        ("Here: {}", True),
        ("```\nno JSON\n```", True),
    ],
)
def test_json_that_must_not_be_may_be_in_a_fence(answer: str, holds: bool) -> None:
    assert held({"not": {"json_schema": {"type": "object"}}}, said(answer)).passed is holds


def test_a_number_is_compared_as_it_would_be_written() -> None:
    assert held({"equals": 42}, said(" 42 ")).passed
    assert held({"one_of": [41, 42]}, said("42")).passed
    assert held({"numeric": 1e21}, said("1e21 it is")).passed
    assert held({"numeric": 1234567}, said("It is 1234568.")).found == "the number is 1234568, expected 1234567 ± 0"


@pytest.mark.parametrize(
    ("assertion", "passed"),
    [
        ({"calls": "refund"}, True),
        ({"calls": ["refund", "refund"]}, False),
        ({"calls": {"name": "refund", "arguments": {"order": "1042"}}}, True),
        ({"calls": {"name": "refund", "arguments": {"order": "1043"}}}, False),
        ({"calls": {"name": "refund", "arguments": {"order": "1042"}}, "arguments": "exact"}, False),
        (
            {
                "calls": {"name": "refund", "arguments": {"amount": 25}},
                "arguments": {"amount": {"tolerance": 0.1}, "*": "subset"},
            },
            True,
        ),
        ({"calls": {"name": "refund", "arguments": {"amount": 25}}, "arguments": {"amount": {"tolerance": 0.1}}}, True),
        ({"calls": "look_up"}, False),
        ({"all": [{"calls": ["refund", "look_up"], "mode": "subset"}, {"calls": "refund"}], "weight": 2}, True),
        ({"all": [{"calls": ["look_up"], "mode": "subset"}, {"calls": "refund"}], "weight": 2}, False),
        ({"calls": [], "mode": "strict"}, False),
        ({"no_call": True}, False),
        ({"no_call": "look_up"}, True),
        ({"no_call": ["look_up", "refund"]}, False),
        ({"no_call": {"name": "refund", "arguments": {"order": "7"}}}, True),
        ({"no_call": {"name": "refund", "arguments": {"order": "1042"}}}, False),
        (
            {"no_call": {"name": "refund", "arguments": {"amount": 25}}, "arguments": {"amount": {"tolerance": 0.1}}},
            False,
        ),
    ],
)
def test_calls_are_matched_by_name_and_by_the_arguments_that_are_given(assertion: dict[str, Any], passed: bool) -> None:
    result = held(assertion, said("Done.", calls=[CALL]))
    assert result.passed is passed
    assert bool(result.found) is not passed


def test_a_forbidden_call_is_shown() -> None:
    result = held({"no_call": "refund"}, said("Done.", calls=[CALL]))
    assert result.found == 'calls refund({"order": "1042", "amount": 24.9})'


@pytest.mark.parametrize("arguments", ['{"order": ', "[1042]", ""])
def test_a_call_is_forbidden_whatever_its_arguments_are_written_like(arguments: str) -> None:
    broken = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": arguments}}
    assert not held({"no_call": "refund"}, said("Done.", calls=[broken])).passed


BROKEN: dict[str, Any] = {"id": "b", "type": "function", "function": {"name": "refund", "arguments": '{"order": '}}


def answered(call: dict[str, Any], text: str, **metadata: Any) -> list[AnyMessage]:
    """Return a turn in which a call has a result."""
    return read_messages(
        [
            {"role": "user", "content": "My money back!"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "1", **call}]},
            {"role": "tool", "tool_call_id": "1", "content": text, "metadata": metadata},
            {"role": "assistant", "content": "It is paid back."},
        ]
    )


@pytest.mark.parametrize("by", ["user", "vivavoce"])
def test_a_call_that_was_never_made_is_tried_and_not_made(by: str) -> None:
    turn = answered(CALL, "Error: the user refused this call, it was not made", answered_by=by)
    result = held({"calls": "refund"}, turn)
    assert result.found == (
        'missing call: refund; refund({"order": "1042", "amount": 24.9}) does not count: '
        "it was refused; its result is 'Error: the user refused this call, it was not made'"
    )
    for mode in ("strict", "unordered"):
        assert not held({"calls": "refund", "mode": mode}, turn).passed
    assert not held({"calls": [], "mode": "subset"}, turn).passed
    assert not held({"no_call": "refund"}, turn).passed
    assert held({"not": {"calls": "refund"}}, turn).found == "calls refund, which must not be: it was only tried"
    assert held({"not": {"calls": ["refund", "refund"]}}, turn).passed


@pytest.mark.parametrize("mode", TRAJECTORY_MODES)
def test_a_call_that_was_refused_is_not_made_in_any_mode(mode: TrajectoryMode) -> None:
    refused = answered(CALL, "no", answered_by="user")
    look_up = {"id": "2", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    both = [*refused, *said("Done.", calls=[look_up])]
    scene = Scene(View([both]))
    called = Calls.model_validate({"calls": "look_up", "mode": mode})
    assert called.held(scene).passed
    assert called.objection(scene)
    both_wanted = Calls.model_validate({"calls": ["refund", "look_up"], "mode": mode})
    assert both_wanted.held(scene).passed is (mode == "subset")
    assert match_trajectory(select_steps(both), [ToolCall(name="look_up", args={})], mode=mode).score == 1.0
    assert not held({"calls": [], "mode": "strict"}, refused).passed


def test_an_outcome_leaves_out_calls_that_ended_otherwise() -> None:
    failed, done = answered(CALL, '{"error": "no funds"}'), answered(CALL, "done")
    assert held({"calls": "refund"}, failed).passed
    assert held({"calls": "refund", "outcome": "succeeded"}, failed).found == (
        'missing call: refund; refund({"order": "1042", "amount": 24.9}) does not count: '
        """it has failed; its result is '{"error": "no funds"}'"""
    )
    assert held({"calls": "refund", "outcome": "failed"}, failed).passed
    assert held({"calls": "refund", "outcome": "succeeded"}, done).passed
    assert held({"calls": ["refund"], "outcome": "succeeded", "mode": "strict"}, failed, done).passed
    assert "it has no result" in held({"calls": "refund", "outcome": "succeeded"}, said("", calls=[CALL])).found


@pytest.mark.parametrize(
    ("assertion", "passed"),
    [
        ({"not": {"calls": "refund"}}, False),
        ({"not": {"calls": {"name": "refund", "arguments": {"order": "7"}}}}, False),
        ({"not": {"calls": ["refund", "refund"]}}, True),
        ({"not": {"calls": ["refund", "look_up"]}}, True),
        ({"not": {"calls": "look_up"}}, True),
        ({"no_call": {"name": "refund", "arguments": {"order": "7"}}}, False),
    ],
)
def test_a_call_with_broken_arguments_may_be_any_call_of_its_tool(assertion: dict[str, Any], passed: bool) -> None:
    assert held(assertion, said("Done.", calls=[BROKEN])).passed is passed


def test_a_forbidden_argument_is_forbidden_as_a_number_and_as_its_digits() -> None:
    assert not held({"no_call": {"name": "refund", "arguments": {"order": 1042}}}, said("Done.", calls=[CALL])).passed
    assert held({"no_call": {"name": "refund", "arguments": {"order": 104}}}, said("Done.", calls=[CALL])).passed


def test_latency_is_that_of_the_slowest_turn() -> None:
    turns = (said("One."), said("Two."))
    assert held({"latency": 2}, *turns, seconds=(1.0, 2.0)).passed
    assert held({"latency": 2}, *turns, seconds=(3.0, None)).found == "takes 3 s, more than 2 s"
    with pytest.raises(GraderFault, match="turn 2 has no time"):
        held({"latency": 2}, *turns, seconds=(1.0, None))
    with pytest.raises(GraderFault, match="turn 2 has no time"):
        held({"not": {"latency": 2}}, *turns, seconds=(1.0, None))


@pytest.mark.parametrize("text", ["vou\u200dcher", "vou\u200ccher", "vou\u2060cher", "vou\ufeffcher", "ＶＯＵＣＨＥＲ"])
def test_a_forbidden_word_is_found_in_any_encoding_and_shown_as_it_is_written(text: str) -> None:
    answer = held({"not_contains": "voucher"}, said(f"Here is your {text}!"))
    assert answer.found == f"contains 'voucher' (only the encoding differs: {text!r})"


@pytest.mark.parametrize(
    ("assertion", "found"),
    [
        ({"not_contains": "voucher"}, "does not contain 'voucher' only because the assistant says nothing"),
        ({"not": {"contains": "voucher"}}, "not: contains 'voucher' only because the assistant says nothing"),
        (
            {"not": {"not_contains": "voucher"}},
            "not: does not contain 'voucher' only because the assistant says nothing",
        ),
        ({"not": {"any": [{"calls": "look_up"}, {"regex": "a"}]}}, "calls look_up, which must not be"),
        (
            {"not": {"any": [{"calls": "refund"}, {"regex": "a"}]}},
            "not: matches /a/ only because the assistant says nothing",
        ),
        ({"not": {"all": [{"calls": "refund"}, {"regex": "a"}]}}, ""),
        ({"no_call": "refund"}, ""),
        ({"not": {"calls": "refund"}}, ""),
        ({"latency": 5}, ""),
    ],
)
def test_words_are_not_avoided_by_saying_nothing(assertion: dict[str, Any], found: str) -> None:
    turn = said("", calls=[{"name": "look_up", "arguments": {}}])
    assert held(assertion, turn, seconds=(1.0,)).found == found


@pytest.mark.parametrize(
    "assertion",
    [
        {"not_contains": "voucher"},
        {"not": {"equals": "voucher"}},
        {"no_call": True},
        {"no_call": "refund"},
        {"not": {"calls": "refund"}},
        {"calls": [], "mode": "strict"},
        {"all": [{"calls": ["refund"], "mode": "subset"}, {"not_contains": "voucher"}], "weight": 2},
        {"latency": 5},
    ],
)
def test_nothing_holds_of_an_assistant_that_does_nothing_but_that_it_does_nothing(assertion: dict[str, Any]) -> None:
    for answer in (said(""), said(" \n"), said()):
        result = held(assertion, answer, seconds=(1.0,))
        assert not result.passed
        assert "only because the assistant" in result.found
    assert held({"regex": "^$"}, said("")).passed


@pytest.mark.parametrize(
    "made", [("Pay", {"n": 1}), ("pay", {"n": "1"}), ("pay", {"n": [1]}), ("PAY", {"n": "2-1"})], ids=str
)
def test_a_call_that_must_not_be_is_found_in_any_spelling(made: tuple[str, dict[str, Any]]) -> None:
    call = {"id": "c1", "name": made[0], "arguments": made[1]}
    rows: list[Any] = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}]
    talk = read_messages([*rows, {"role": "tool", "tool_call_id": "c1", "content": "done"}])
    for expect in ({"not": {"calls": {"name": "pay", "arguments": {"n": 1}}}}, {"not": {"calls": "pay"}}):
        assert held(expect, talk).passed is False
