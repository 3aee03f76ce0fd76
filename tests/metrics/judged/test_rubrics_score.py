from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.metrics.judged.rubrics_score import RubricsScore
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
        ({}, "give rubrics"),
        ({"rubrics": RUBRICS, "rubric": RUBRICS}, "give rubrics"),
        ({"rubrics": {"accuracy": "Correct."}}, "got 'accuracy'"),
        ({"rubrics": {"score1_description": "Rude."}}, "at least two"),
        ({"rubrics": {"score1_description": "Rude.", "score2_description": " "}}, "empty"),
        ({"rubrics": {"score1_description": "Rude.", "score01_description": "Cold."}}, "twice"),
    ],
)
def test_rubrics_that_are_none_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        RubricsScore(**given)
