from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.metrics.judged.simple_criteria import SimpleCriteria
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "user", "content": "Hi. {{ criteria }}"},
    {"role": "assistant", "content": "Good day to you."},
    {"role": "user", "content": "What does it cost?"},
    {"role": "assistant", "content": "5 euros."},
]


def reply(score: object) -> dict[str, Any]:
    return {"reasoning": "So it is.", "evidence": ["Good day"], "score": score, "confidence": 0.9}


@pytest.mark.parametrize(("score", "value", "passed"), [(1, 0.0, False), (4, 0.75, True), (5, 1.0, True)])
def test_the_score_keeps_its_range_and_its_value_is_from_0_to_1(score: int, value: float, passed: bool) -> None:
    metric = SimpleCriteria(ScriptedModel([reply(score)]), criteria="Politeness.", minimum=1, threshold=4)
    result = metric.evaluate(CONVERSATION)
    assert (result.score, result.value, result.passed) == (score, value, passed)
    assert [(one.turn, one.verified) for one in result.evidence] == [(0, True)]


@pytest.mark.parametrize(("score", "passed"), [(4, False), (5, True)])
def test_without_a_threshold_only_the_highest_score_passes(score: int, passed: bool) -> None:
    result = SimpleCriteria(ScriptedModel([reply(score)]), criteria="Politeness.").evaluate(CONVERSATION)
    assert (result.score, result.passed) == (score, passed)


def test_the_judge_reads_criterion_range_and_reference() -> None:
    model = ScriptedModel([reply(3)])
    SimpleCriteria(model, criteria="How polite is it?", maximum=7).evaluate(CONVERSATION, reference="As a butler.")
    asked = model.requests[0].messages[1].text
    assert "by this criterion:\nHow polite is it?\n" in asked
    assert "a whole number from 0 to 7." in asked
    assert 'Reference: "As a butler."' in asked
    assert '"Hi. {{ criteria }}"' in asked


@pytest.mark.parametrize("score", [6, -1, 2.5, "3", None, True])
def test_a_score_outside_the_range_is_an_error(score: object) -> None:
    result = SimpleCriteria(ScriptedModel([reply(score)]), criteria="Politeness.").evaluate(CONVERSATION)
    assert (result.state, result.value) == ("error", None)


def test_in_pieces_the_mean_counts() -> None:
    model = ScriptedModel([reply(2), reply(5)])
    assert SimpleCriteria(model, criteria="Politeness.", scope="turn").evaluate(CONVERSATION).score == 3.5


def test_another_criterion_is_another_fingerprint() -> None:
    one, other = (SimpleCriteria(criteria=text).fingerprint for text in ("Politeness.", "Wit."))
    assert one != other


def test_an_empty_range_or_criterion_is_refused() -> None:
    with pytest.raises(UsageError, match="below maximum"):
        SimpleCriteria(criteria="Politeness.", minimum=5)
    with pytest.raises(UsageError, match="empty"):
        SimpleCriteria(criteria="")


def test_a_whole_number_is_a_score_like_any_other() -> None:
    result = SimpleCriteria(ScriptedModel([reply(3)]), criteria="How kind is it?").evaluate(CONVERSATION)
    assert (type(result.score), result.model_dump()["raw"]) == (float, 3.0)
