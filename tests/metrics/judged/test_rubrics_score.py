from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.messages import HumanMessage
from vivavoce.metrics.judged.rubrics_score import RubricsScore
from vivavoce.samples.sample import Sample
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "user", "content": "Hi. {{ levels }}"},
    {"role": "assistant", "content": "Good day to you."},
]
RUBRICS = {"score3_description": "Polite,\nand warm.", "score1_description": "Rude.", "score2_description": "Cold."}


def reply(score: object) -> dict[str, Any]:
    return {"reasoning": "So it is.", "evidence": ["Good day"], "score": score, "confidence": 0.9}


@pytest.mark.parametrize(("score", "value", "passed"), [(1, 0.0, False), (2, 0.5, True), (3, 1.0, True)])
def test_the_score_is_one_of_the_levels(score: int, value: float, passed: bool) -> None:
    result = RubricsScore(ScriptedModel([reply(score)]), rubrics=RUBRICS, threshold=2).evaluate(CONVERSATION)
    assert (result.name, result.score, result.value, result.passed) == ("rubrics_score", score, value, passed)
    assert [(one.turn, one.verified) for one in result.evidence] == [(0, True)]


def test_the_judge_reads_the_levels_the_lowest_first() -> None:
    model = ScriptedModel([reply(3)])
    RubricsScore(model, rubric=RUBRICS).evaluate(CONVERSATION, reference="As a butler.")
    asked = model.requests[0].messages[1].text
    assert "1: Rude.\n2: Cold.\n3: Polite, and warm.\n" in asked
    assert 'Reference: "As a butler."' in asked
    assert '"Hi. {{ levels }}"' in asked


@pytest.mark.parametrize("score", [0, 4, 2.5, "2", None])
def test_a_score_that_is_no_level_is_an_error(score: object) -> None:
    result = RubricsScore(ScriptedModel([reply(score)]), rubrics=RUBRICS).evaluate(CONVERSATION)
    assert (result.state, result.value) == ("error", None)


def test_levels_may_have_gaps() -> None:
    rubrics = {"score0_description": "Rude.", "score10_description": "Polite."}
    assert RubricsScore(ScriptedModel([reply(5)]), rubrics=rubrics).evaluate(CONVERSATION).state == "error"
    assert RubricsScore(ScriptedModel([reply(10)]), rubrics=rubrics).evaluate(CONVERSATION).value == 1.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rubrics": RUBRICS, "rubric": RUBRICS}, "give one of them"),
        ({"rubrics": {"accuracy": "Correct."}}, "got 'accuracy'"),
        ({"rubrics": {"score1_description": "Rude."}}, "at least two"),
        ({"rubrics": {"score1_description": "Rude.", "score2_description": " "}}, "empty"),
        ({"rubrics": {"score1_description": "Rude.", "score01_description": "Cold."}}, "duplicated"),
    ],
)
def test_rubrics_that_are_none_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        RubricsScore(**given)


def of_row(rubrics: object) -> Sample:
    return Sample(id="a", messages=[HumanMessage(content="Hi")], metadata={"rubrics": rubrics})


def test_without_rubrics_of_its_own_those_of_the_row_count() -> None:
    model = ScriptedModel([reply(3), reply(2)])
    metric = RubricsScore(model, threshold=2)
    first = metric.evaluate(CONVERSATION, sample=of_row(RUBRICS))
    assert (first.score, first.value, first.passed) == (3.0, 1.0, True)
    assert "3: Polite, and warm.\n" in model.requests[0].messages[1].text
    wider = {"score0_description": "Rude.", "score2_description": "So so.", "score8_description": "Kind."}
    second = metric.evaluate(CONVERSATION, sample=of_row(wider))
    assert (second.score, second.value, second.passed) == (2.0, 0.25, True)
    assert first.fingerprint == second.fingerprint == metric.fingerprint


def test_rubrics_of_its_own_come_before_those_of_the_row() -> None:
    result = RubricsScore(ScriptedModel([reply(3)]), rubrics=RUBRICS).evaluate(
        CONVERSATION, sample=of_row({"score1_description": "x", "score9_description": "y"})
    )
    assert (result.score, result.value) == (3.0, 1.0)


@pytest.mark.parametrize("rubrics", [None, {}, "a text"])
def test_without_any_rubrics_it_is_skipped(rubrics: object) -> None:
    model = ScriptedModel([])
    result = RubricsScore(model).evaluate(CONVERSATION, sample=of_row(rubrics))
    assert (result.state, result.reason) == (
        "skipped",
        "needs rubrics: give rubrics=, or a mapping of them in the row",
    )
    assert not model.requests


@pytest.mark.parametrize(
    ("rubrics", "said"),
    [
        ({"accuracy": "Correct"}, "got 'accuracy'"),
        ({"score1_description": 1, "score2_description": "b"}, "score1_description is a int, not a text"),
    ],
)
def test_rubrics_of_a_row_that_are_no_levels_are_an_error_of_that_row(rubrics: object, said: str) -> None:
    result = RubricsScore(ScriptedModel([])).evaluate(CONVERSATION, sample=of_row(rubrics))
    assert result.state == "error"
    assert result.failure is not None
    assert said in result.failure.message
    assert "this row cannot be judged by its rubrics" in result.failure.message


def test_a_score_outside_the_levels_of_the_row_is_an_error() -> None:
    result = RubricsScore(ScriptedModel([reply(4)])).evaluate(CONVERSATION, sample=of_row(RUBRICS))
    assert result.state == "error"
