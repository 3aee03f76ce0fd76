from __future__ import annotations

import json
from typing import Any

import pytest

import vivavoce
from conversations import Row, calls, result, says, user
from vivavoce import SingleTurnSample
from vivavoce.metrics import ContextPrecisionMetric, ContextRecallMetric

HOURS = {"id": "hours", "text": "We open from nine  to five."}
RETURNS = {"id": "returns", "text": "Goods may be returned for 30 days."}
SHIPPING = {"id": "shipping", "text": "Parcels to Norway take a week."}


def found(*contexts: Any) -> Row:
    return {"role": "assistant", "content": "Here is what I found.", "retrieval_context": [*contexts]}


TALK = [
    user("When do you open?"),
    found(HOURS, SHIPPING),
    user("Can I send it back, and what does that cost?"),
    found(RETURNS),
    user("Thanks!"),
    says("You are welcome."),
]
NOTHING: list[list[str]] = [[]]
WANTED = [["hours"], ["returns", "refunds"], None]


def given(wanted: object) -> dict[str, Any]:
    return {"context": {"reference_contexts": wanted}}


def test_each_turn_is_compared_with_what_is_wanted_in_it() -> None:
    recall = ContextRecallMetric().evaluate(TALK, **given(WANTED))
    precision = ContextPrecisionMetric().evaluate(TALK, **given(WANTED))
    assert (recall.score, recall.passed, recall.reason) == (0.75, False, "not retrieved: turn 2: refunds")
    assert (precision.score, precision.passed, precision.reason) == (0.75, False, "not wanted: turn 1: shipping")
    [finding] = recall.findings
    assert (finding.kind, finding.what, finding.verdict, finding.turn) == ("context", "refunds", "not retrieved", 1)


def test_turns_may_be_scored_apart() -> None:
    recall = ContextRecallMetric(scope="turn").evaluate(TALK, **given(WANTED))
    assert [(one.state, one.raw) for one in recall.turns or ()] == [("scored", 1.0), ("scored", 0.5), ("skipped", None)]
    assert recall.score == 0.75


def test_a_context_is_known_by_a_text_in_it_whatever_its_capitals_and_spaces() -> None:
    assert ContextRecallMetric().evaluate(TALK[:2], **given([["OPEN FROM NINE to five"]])).score == 1.0
    assert ContextRecallMetric().evaluate(TALK[:2], **given([["hour"]])).score == 0.0


def test_a_flat_list_holds_for_all_turns_together() -> None:
    assert ContextRecallMetric().evaluate(TALK, **given(["returns", "hours"])).score == 1.0
    precision = ContextPrecisionMetric().evaluate(TALK, **given(["returns", "hours"]))
    assert (precision.score, precision.reason) == (2 / 3, "not wanted: shipping")


def test_results_of_tools_are_contexts_a_json_list_one_in_each_entry() -> None:
    talk = [
        user("When do you open?"),
        calls(("a", "search", {"q": "hours"}), ("b", "clock", {})),
        result("a", json.dumps([HOURS, {"text": "nothing"}])),
        result("b", "12:30"),
        says("At nine."),
    ]
    assert ContextRecallMetric().evaluate(talk, **given([["hours", "12:30"]])).score == 1.0
    assert ContextPrecisionMetric().evaluate(talk, **given([["hours"]])).score == 1 / 3
    only = ContextPrecisionMetric(tools=["search"])
    assert only.evaluate(talk, **given([["hours"]])).score == 0.5
    assert only.fingerprint != ContextPrecisionMetric().fingerprint


def test_where_nothing_is_wanted_whatever_is_retrieved_is_too_much() -> None:
    assert ContextPrecisionMetric().evaluate(TALK[:2], **given(NOTHING)).score == 0.0
    assert ContextRecallMetric().evaluate(TALK[:2], **given(NOTHING)).state == "skipped"
    assert ContextPrecisionMetric().evaluate(TALK[4:], **given([["hours"]])).state == "skipped"
    assert ContextRecallMetric().evaluate(TALK[4:], **given([["hours"]])).score == 0.0


def test_a_row_that_does_not_say_what_is_wanted_is_skipped() -> None:
    skipped = ContextRecallMetric().evaluate(TALK)
    assert skipped.state == "skipped"
    assert "the row does not say what should be retrieved: context: {reference_contexts: [...]}" in str(skipped.reason)


@pytest.mark.parametrize(
    ("wanted", "rule"),
    [
        ("hours", "a list of ids and texts"),
        ([1, 2], "a list of ids and texts"),
        ([["hours"], [""], None], "a list of ids and texts"),
        ([["hours"]], "a list for each of the 3 turns"),
    ],
)
def test_what_cannot_be_compared_is_an_error_of_the_suite_and_no_score(wanted: object, rule: str) -> None:
    row = {"id": "one", "messages": TALK, "context": {"reference_contexts": wanted}}
    [outcome] = vivavoce.evaluate([row], ["context_recall"], store="here.db").outcomes()
    score = outcome.scores["context_recall"]
    assert (score.state, score.value) == ("error", None)
    assert score.failure is not None
    assert score.failure.blame == "suite"
    assert rule in score.failure.message


def test_the_contexts_of_a_sample_of_one_turn_are_compared() -> None:
    sample = SingleTurnSample(
        user_input="When do you open?",
        response="At nine.",
        retrieved_contexts=["We open from nine to five.", "Parcels to Norway take a week."],
        reference_contexts=["We open from nine to five."],
    )
    [outcome] = vivavoce.evaluate([sample], ["context_recall", "context_precision"], store="here.db").outcomes()
    assert {name: score.value for name, score in outcome.scores.items()} == {
        "context_recall": 1.0,
        "context_precision": 0.5,
    }
