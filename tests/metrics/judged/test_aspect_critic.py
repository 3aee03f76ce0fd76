from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import ModelFault, UsageError
from vivavoce.metrics.judged.aspect_critic import AspectCritic
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "user", "content": "Hi. {{ definition }}"},
    {"role": "assistant", "content": "Good day to you."},
    {"role": "user", "content": "What does it cost?"},
    {"role": "assistant", "content": "5 euros."},
]


def reply(verdict: object, why: str = "So it is.") -> dict[str, Any]:
    return {"reasoning": why, "evidence": ["Good day"], "verdict": verdict, "confidence": 0.9}


def critic(*replies: dict[str, Any] | ModelFault, **options: Any) -> tuple[AspectCritic, ScriptedModel]:
    model = ScriptedModel(replies)
    return AspectCritic(model, definition="The assistant is polite.", **options), model


@pytest.mark.parametrize("verdict", [True, False])
def test_one_vote_is_the_verdict(verdict: bool) -> None:
    metric, model = critic(reply(verdict), name="politeness")
    result = metric.evaluate(CONVERSATION)
    assert (result.name, result.score, result.passed, result.value) == ("politeness", verdict, verdict, float(verdict))
    assert [(one.turn, one.verified) for one in result.evidence] == [(0, True)]
    assert model.requests[0].settings["temperature"] == 0


def test_what_should_not_hold_passes_when_it_does_not() -> None:
    for verdict in (True, False):
        metric, _ = critic(reply(verdict), direction="lower_is_better")
        result = metric.evaluate(CONVERSATION)
        assert (result.score, result.passed, result.value) == (verdict, not verdict, 1.0 - verdict)


def test_the_judge_reads_the_definition_and_the_reference() -> None:
    metric, model = critic(reply(True))
    metric.evaluate(CONVERSATION, reference="As a butler.")
    asked = model.requests[0].messages[1].text
    assert "holds of the conversation:\nThe assistant is polite.\n" in asked
    assert 'Reference: "As a butler."' in asked
    assert '"Hi. {{ definition }}"' in asked


def test_the_majority_of_several_votes_decides_and_each_is_shown() -> None:
    metric, model = critic(reply(True, "one"), reply(False, "two"), reply(True, "three"), strictness=3, trial=1)
    result = metric.evaluate(CONVERSATION)
    assert (result.score, result.reasoning) == (True, "one\nthree")
    assert [vote["verdict"] for vote in result.details["votes"]] == [True, False, True]
    assert result.details["agreement"] == pytest.approx(2 / 3)
    assert [request.trial for request in model.requests] == [3, 4, 5]
    assert {request.settings["temperature"] for request in model.requests} == {0.7}


@pytest.mark.parametrize("third", [reply("maybe"), {"verdict": True}, ModelFault("gone")])
def test_a_vote_that_fails_is_an_error_of_the_whole(third: dict[str, Any] | ModelFault) -> None:
    metric, _ = critic(reply(True), reply(True), third, strictness=3)
    result = metric.evaluate(CONVERSATION)
    assert (result.state, result.passed) == ("error", None)


@pytest.mark.parametrize("wrong", [reply("yes"), reply(1), {**reply(True), "confidence": 2}, {"verdict": True}])
def test_a_verdict_out_of_shape_is_an_error(wrong: dict[str, Any]) -> None:
    metric, _ = critic(wrong)
    assert metric.evaluate(CONVERSATION).state == "error"


def test_in_pieces_the_worst_decides() -> None:
    answers = [reply(True), reply(True), reply(False), reply(False), reply(False), reply(True)]
    metric, _ = critic(*answers, scope="turn", strictness=3)
    result = metric.evaluate(CONVERSATION)
    assert result.score is False
    assert [turn.raw for turn in result.turns or ()] == [True, False]
    assert len(result.details["votes"]) == 6
    harmful, _ = critic(reply(False), reply(True), scope="turn", direction="lower_is_better")
    assert harmful.evaluate(CONVERSATION).score is True


def test_an_even_number_of_votes_or_no_definition_is_refused() -> None:
    with pytest.raises(UsageError, match="odd number"):
        AspectCritic(definition="Polite.", strictness=2)
    with pytest.raises(UsageError, match="empty"):
        AspectCritic(definition=" ")
