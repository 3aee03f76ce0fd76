from __future__ import annotations

import json
from typing import Any

import pytest

from server.pages.cases import outcome, per_turn
from vivavoce.features.labels.labelling import (
    Question,
    agreement_shown,
    human_labels,
    progress,
    question,
    questions,
)
from vivavoce.records.label import Label, LabelAgreement
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.records.score import Failure, Score, failed
from vivavoce.stats.agreement import Agreement

BROKEN = Failure(blame="judge", kind="timeout", message="no answer")


def label(**more: Any) -> Label:
    stored_label = Label(
        sample_id="one", target="bot", trial=0, grader="goal", author="Ida", verdict="pass", created_at=1.0
    )
    return stored_label.model_copy(update=more)


@pytest.mark.parametrize(
    ("verdict", "grade", "beside"),
    [
        ("pass", Score(value=1.0), "the judge says Pass, 1.00: they agree"),
        ("fail", Score(value=1.0), "the judge says Pass, 1.00: too lenient"),
        ("pass", Score(value=0.5), "the judge says Fail, 0.50: too strict"),
        ("pass", Score(value=0.5, passed=True), "the judge says Pass, 0.50: they agree"),
        ("unsure", Score(value=0.0), "the judge says Fail, 0.00"),
        ("pass", failed(BROKEN), "the judge gave no score: error"),
    ],
)
def test_a_label_is_told_beside_what_the_judge_says(verdict: str, grade: Score, beside: str) -> None:
    (mark,) = human_labels([label(verdict=verdict)], outcome(grades={"goal": grade}))[None]
    assert mark.comparison == beside


def test_a_label_of_a_turn_stands_beside_the_grade_of_that_turn() -> None:
    labels = human_labels([label(turn=1), label(turn=7)], outcome(grades={"goal": per_turn(1.0, 0.0)}))
    assert labels[1][0].comparison == "the judge says Fail, 0.00: too strict"
    assert labels[7][0].comparison == "the judge has no score here"


def test_a_label_to_no_grader_stands_alone() -> None:
    assert human_labels([label(grader="")], outcome())[None][0].comparison == ""


def test_the_questions_of_judges_come_first_with_what_they_are_told() -> None:
    graders = {
        "words": {"kind": "tool"},
        "polite": {"kind": "model_judge", "display_name": "Politeness", "prompt": "Is it?"},
    }
    grading = Grading(id="g", run_id="r", spec={"graders": graders}, created_at=1.0)
    assert [question.grader for question in questions(grading)] == ["polite", "words"]
    assert question(grading, "polite").text == "Does it pass “Politeness”?"
    assert (question(grading, "polite").rubric, question(grading, "words").rubric) == ("Is it?", "")


def question_of(**spec: object) -> Question:
    """Return the question about a grader."""
    return question(Grading(id="g", run_id="r", spec={"graders": {"it": spec}}, created_at=1.0), "it")


@pytest.mark.parametrize(
    ("spec", "judged"),
    [
        ({"kind": "metric", "metric": "goal_achievement"}, True),
        ({"kind": "metric", "metric": "turn_count"}, False),
        ({"kind": "metric", "metric": "contains"}, False),
        ({"kind": "metric", "metric": "TurnCountMetric"}, False),
        ({"kind": "metric", "metric": "mine.py:polite"}, False),
        ({"kind": "metric", "metric": "mine.py:polite", "model": "openai/gpt"}, True),
        ({"kind": "model_judge", "prompt": "Is it?"}, True),
        ({"kind": "tool", "function": "contains"}, False),
        ({"kind": "rule", "never": "refund"}, False),
        ({}, False),
    ],
)
def test_only_what_asks_a_model_is_said_to_be_judged_by_one(spec: dict[str, object], judged: bool) -> None:
    assert question_of(**spec).judged is judged


def test_a_question_says_what_is_measured_and_how_the_suite_sets_it() -> None:
    metric = question_of(kind="metric", metric="turn_count", config={"maximum": "<b>"}, threshold=0.5)
    assert metric.definition.startswith("Counts the turns")
    assert json.loads(metric.options) == {"maximum": "<b>", "threshold": 0.5}
    assert question_of(kind="tool", function="contains").definition.startswith("Score 1 when the submission contains")
    rule = question_of(kind="rule", never="refund", display_name="No refunds")
    assert (rule.definition.startswith("Says whether a rule holds"), json.loads(rule.options)) == (
        True,
        {"never": "refund"},
    )
    unknown = question_of(kind="metric", metric="mine.py:polite")
    assert (unknown.definition, unknown.options) == ("", "")


def test_a_short_queue_is_drawn_item_by_item_and_a_long_one_as_a_bar() -> None:
    keys = [AttemptKey(str(number), "bot", 0) for number in range(100)]
    labels = {key: label(created_at=30.0 * number) for number, key in enumerate(keys[:5])}
    short = progress(keys[:10], labels, 6)
    assert (short.strokes, short.done, short.minutes) == ("dddddctttt", 5, 2)
    assert (progress(keys, labels, 6).strokes, progress(keys, labels, 6).share) == ("", 5.0)
    assert progress(keys, {}, 1).minutes is None


@pytest.mark.parametrize(
    ("table", "first", "wide"), [(Agreement(40, 2, 3, 30), "0", False), (Agreement(2, 2, 1, 1), "-1", True)]
)
def test_kappa_is_drawn_from_0_on_or_from_below_where_it_reaches_there(
    table: Agreement, first: str, wide: bool
) -> None:
    low, high = table.kappa_interval() or (None, None)
    agreement = LabelAgreement(
        n=table.n,
        both_pass=table.tp,
        both_fail=table.tn,
        too_lenient=table.fp,
        too_strict=table.fn,
        unsure=0,
        unscored=0,
        kappa=table.kappa,
        low=low,
        high=high,
        disagreements=[],
    )
    shown_agreement = agreement_shown(agreement, lambda _: None)
    assert (shown_agreement.ticks[0], shown_agreement.wide, shown_agreement.same) == (
        (0.0, first),
        wide,
        table.tp + table.tn,
    )
