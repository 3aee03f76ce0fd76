"""Grading functions, each against what it promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import GraderFault
from vivavoce.grading import graders as functions
from vivavoce.grading.extractors import View
from vivavoce.grading.graders import Case
from vivavoce.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from vivavoce.records.score import Score
from vivavoce.samples.sample import Sample


def case(submission: str, truth: Any = None, **fields: Any) -> Case:
    return Case(Sample(id="s", input="ask", ground_truth=truth, **fields), submission, View([]))


@pytest.mark.parametrize(
    ("function", "submission", "truth", "score"),
    [
        (functions.exact_match, " Paris\n", "Paris", 1.0),
        (functions.exact_match, "paris", "Paris", 0.0),
        (functions.contains, "It is PARIS.", "paris", 1.0),
        (functions.contains, "It is Rome.", "paris", 0.0),
        (functions.contains, "Paris", " Paris", 1.0),
        (functions.contains, "STRASSE", "Straße", 1.0),
        (functions.contains, "vou\u200dcher", "voucher", 1.0),
        (functions.exact_match, "cafe\u0301", "caf\u00e9", 1.0),
        (functions.exact_match, "two  words", "two words", 0.0),
        (functions.fuzzy_ratio, "ＣＡＦＥ\u0301", "caf\u00e9", 1.0),
        (functions.regex_match, "vou\u200dcher", "voucher", 0.0),
        (functions.regex_match, "order 12-345", r"\d+-\d+", 1.0),
        (functions.regex_match, "no order", r"\d+", 0.0),
        (functions.ascii_printable_only, "plain\r\ntext ~", None, 1.0),
        (functions.ascii_printable_only, "tab\tis not printable", None, 0.0),
        (functions.ascii_printable_only, "naïve", None, 0.0),
    ],
)
def test_text_graders_follow_their_rule(
    function: Callable[..., Any], submission: str, truth: Any, score: float
) -> None:
    assert function(case(submission, truth)).value == score


def test_a_complaint_says_what_is_wrong() -> None:
    assert functions.contains(case("Madrid", "Rome")).reason == "does not contain 'Rome'"
    assert functions.ascii_printable_only(case("é ü")).reason == "contains 'é', 'ü'"


@pytest.mark.parametrize(
    ("function", "submission", "reason"),
    [
        (functions.contains, "I'm sorry, I can't help with that.", "does not contain '4'; the assistant refused"),
        (functions.exact_match, "I'm sorry, I can't help with that.", "is not '4'; the assistant refused"),
        (functions.contains, "\u200b", "does not contain '4'; the answer is empty"),
        (functions.contains, "5", "does not contain '4'"),
        (functions.contains, "４", "matches; only the encoding differs: '４'"),
        (functions.exact_match, "\u200b4", "matches; only the encoding differs"),
        (functions.exact_match, "4", "matches"),
    ],
)
def test_a_reason_names_a_refusal_an_empty_answer_and_another_encoding(
    function: Callable[..., Any], submission: str, reason: str
) -> None:
    assert function(case(submission, "4")).reason == reason


def test_a_reason_says_if_only_case_or_white_space_differs() -> None:
    assert functions.exact_match(case("paris", "Paris")).reason == "is not 'Paris'; only case or white space differs"


@pytest.mark.parametrize("truth", ["", "  ", "\u200b"])
def test_a_ground_truth_that_shows_nothing_is_a_fault_and_no_score(truth: str) -> None:
    with pytest.raises(GraderFault, match="the ground truth is empty"):
        functions.contains(case("text", truth))


def test_a_ground_truth_that_is_no_regular_expression_is_a_fault_and_no_score() -> None:
    with pytest.raises(GraderFault, match="not a regular expression"):
        functions.regex_match(case("text", "(unclosed"))


@pytest.mark.parametrize("truth", [".*", "x?", "", "^", "(a|)"])
def test_a_ground_truth_that_matches_every_text_is_a_fault_and_no_score(truth: str) -> None:
    with pytest.raises(GraderFault, match="cannot fail" if truth else "is empty"):
        functions.regex_match(case("text", truth))


@pytest.mark.parametrize(
    ("submission", "truth", "options", "score"),
    [
        ("That is 42 euros.", "42", {}, 1.0),
        ("between 10 and 12", 12, {}, 1.0),
        ("between 10 and 12", 10, {"take": "first"}, 1.0),
        ("1,234.50 in all", 1234.5, {}, 1.0),
        ("-3.5", "-3.5", {}, 1.0),
        ("about 101", 100, {"tolerance": 1}, 1.0),
        ("about 101", 100, {"relative": 0.005}, 0.0),
        ("1e3", 1000, {}, 1.0),
        ("version v2", 2, {}, 0.0),
        ("none", 2, {}, 0.0),
    ],
)
def test_numeric_reads_numbers_as_people_write_them(
    submission: str, truth: Any, options: dict[str, Any], score: float
) -> None:
    assert functions.numeric(case(submission, truth), **options).value == score


def test_numeric_without_one_number_to_reach_is_a_fault() -> None:
    with pytest.raises(GraderFault, match="not one number"):
        functions.numeric(case("3", "three"))


@given(st.integers(-(10**9), 10**9))
def test_numeric_finds_every_whole_number(number: int) -> None:
    assert functions.numeric(case(f"The answer is {number}.", number)).value == 1.0


def test_json_schema_names_the_place_of_the_first_misfits() -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["name"]}
    good, bad = '{"name": "Ada", "age": 36}', '{"age": "old"}'
    assert functions.json_schema(case(good), schema=schema).value == 1.0
    assert functions.json_schema(case(bad), schema=schema).value == 0.0
    assert "'old' is not of type 'integer'" in (
        functions.json_schema(case('{"name": "Ada", "age": "old"}'), schema=schema).reason or ""
    )
    assert functions.json_schema(case("not json", schema)).value == 0.0


def test_fuzzy_ratio_is_a_likeness() -> None:
    assert functions.fuzzy_ratio(case("Berlin", "berlin")).value == 1.0
    assert 0 < (functions.fuzzy_ratio(case("Berlim", "Berlin")).value or 0) < 1
    assert (functions.fuzzy_ratio(case("Rome", "Berlin")).value or 0) < 0.5


def conversation() -> View:
    call = ToolCall(id="1", name="refund", args={"order": "7"})
    failed = ToolCall(id="2", name="refund", args={"order": "8"})
    return View(
        [
            [
                HumanMessage(content="Refund both"),
                AIMessage(tool_calls=[call, failed]),
                ToolMessage(tool_call_id="2", content="Error: too old"),
                ToolMessage(tool_call_id="1", content="done"),
                AIMessage(content="Order 7 is refunded."),
            ]
        ]
    )


def graded(function: Callable[..., Score], reference: list[ToolCall], **options: Any) -> Score:
    sample = Sample(id="s", input="x", reference_tool_calls=reference)
    return function(Case(sample, "", conversation()), **options)


def test_tool_call_graders_look_at_the_calls_and_leave_failed_ones_out() -> None:
    wanted = [ToolCall(name="refund", args={"order": "7"})]
    assert graded(functions.trajectory_match, wanted, failed_when="^Error").value == 1.0
    assert graded(functions.trajectory_match, wanted).value == 0.0
    assert graded(functions.trajectory_match, wanted, mode="superset").value == 1.0
    assert graded(functions.tool_call_accuracy, wanted).value == 0.5
    f1 = graded(functions.tool_call_f1, wanted)
    assert (f1.extra["precision"], f1.extra["recall"]) == (0.5, 1.0)
    assert "not wanted" in (f1.reason or "")


def test_recorded_reads_a_label_of_the_dataset() -> None:
    labelled = case("", labels={"reward": 1.0, "success": False, "grade": "good"})
    assert functions.recorded(labelled, path="labels.reward").value == 1.0
    assert functions.recorded(labelled, path="labels.success").value == 0.0
    assert functions.recorded(labelled, path="labels.absent").state == "skipped"
    with pytest.raises(GraderFault, match="'good', not a number"):
        functions.recorded(labelled, path="labels.grade")
