"""A number is compared as a number and a text in quotes as a text, by every reader of an answer."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.grading.assertions import Scene
from vivavoce.grading.expected import read_expect
from vivavoce.grading.extractors import View
from vivavoce.messages import read_messages
from vivavoce.metrics import evaluate_conversation
from vivavoce.metrics.exact.tool_calls import EXACT_ARGUMENTS
from vivavoce.metrics.rules.sameness import alike

READERS = ("equals", "one_of", "exact_match")


def _talk(answer: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "?"}, {"role": "assistant", "content": answer}]


def _holds(assertion: dict[str, Any], answer: str) -> bool:
    [expected] = read_expect(assertion)
    return expected.assertion.held(Scene(View([read_messages(_talk(answer))]))).passed


def _accepts(reader: str, wanted: Any, answer: str) -> bool:
    if reader in ("exact_match", "numeric"):
        return bool(evaluate_conversation(_talk(answer), [reader], reference=wanted)[reader].passed)
    return _holds({reader: [wanted] if reader == "one_of" else wanted}, answer)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("wanted", "answer", "accepts"),
    [
        (42, "42", True),
        (42, " 42.00\n", True),
        (42.0, "42", True),
        (42, "42.01", False),
        (42, "It is 42.", False),
        ("42", "42", True),
        ("42", " 42\n", True),
        ("42", "42.00", False),
        ("42.00", "42", False),
        ("42", "４２", True),
        (True, "true", True),
        (True, "false", False),
        (True, "1", False),
        (1, "true", False),
        (True, "True", False),
        ({"a": 1}, '{"a": 1.0}', True),
        ({"a": 1}, '{"a": true}', False),
    ],
)
def test_every_reader_of_the_answer_agrees(reader: str, wanted: Any, answer: str, accepts: bool) -> None:
    assert _accepts(reader, wanted, answer) is accepts


@pytest.mark.parametrize(("wanted", "holds"), [(42, True), ("42", True), (4, False), ("42.00", False), (42.0, True)])
def test_contains_looks_for_a_text_or_a_number(wanted: Any, holds: bool) -> None:
    score = evaluate_conversation(_talk("It is 42."), ["contains"], reference=wanted)["contains"]
    assert [bool(score.passed), _holds({"contains": wanted}, "It is 42.")] == [holds, holds]


def test_a_rule_takes_a_number_and_its_text_for_the_same_and_arguments_do_not() -> None:
    assert alike(42, "42.00")
    assert not EXACT_ARGUMENTS.verdicts({"order": "42"}, {"order": 42})["order"]
    assert EXACT_ARGUMENTS.verdicts({"order": 42.0}, {"order": 42})["order"]


@pytest.mark.parametrize(
    "answer", ["It costs 5 million EUR.", "5 Mio. EUR", "5 or 10 thousand", "5 now, 5万 later", "5百"]
)
def test_no_reader_takes_the_digits_before_a_scale_for_the_number(answer: str) -> None:
    assert not _holds({"numeric": 5}, answer)
    assert not _accepts("numeric", 5, answer)
    assert not _holds({"equals": 5}, answer)


@pytest.mark.parametrize("answer", ["It costs 5 million EUR.", "5 Mio. EUR", "5 lakh", "between 5 and 10 thousand"])
def test_a_ban_assumes_the_worst_of_a_number_that_is_not_read(answer: str) -> None:
    assert not _holds({"contains": 5}, answer)
    assert not _holds({"not": {"contains": 5}}, answer)
    assert not _holds({"not_contains": 5}, answer)
    assert _holds({"not_contains": 7}, answer)


def test_a_reason_shows_a_number_with_its_scale() -> None:
    score = evaluate_conversation(_talk("It costs 5 million."), ["numeric"], reference=5)["numeric"]
    assert score.reason == "the number is 5 million (not read), expected 5 ± 0"
