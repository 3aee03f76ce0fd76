from __future__ import annotations

from typing import Any

import pytest

from vivavoce.metrics.judged.user_frustration import UserFrustrationMetric
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "user", "content": "Cancel my card."},
    {"role": "assistant", "content": "Which account?"},
    {"role": "user", "content": "I told you twice already!"},
    {"role": "assistant", "content": "Sorry. It is cancelled."},
    {"role": "user", "content": "Great, thanks."},
]


def reply(*quotes: str, settled: bool) -> dict[str, Any]:
    signs = [{"what": "annoyed", "evidence": [quote]} for quote in quotes]
    return {"signs": signs, "reasoning": "It shows.", "settled": settled, "confidence": 0.9}


TWICE = "I told you twice already"


@pytest.mark.parametrize(
    ("answer", "label", "passed", "value"),
    [
        (reply(TWICE, settled=False), "unresolved", False, 0.0),
        (reply(TWICE, settled=True), "resolved", True, 0.5),
        (reply(settled=True), "none", True, 1.0),
        (reply(settled=False), "none", True, 1.0),
    ],
)
def test_the_signs_and_how_the_user_ends_decide(answer: dict[str, Any], label: str, passed: bool, value: float) -> None:
    result = UserFrustrationMetric(ScriptedModel([answer])).evaluate(CONVERSATION)
    assert (result.name, result.score, result.passed, result.value) == ("user_frustration", label, passed, value)


def test_it_says_in_which_turns_the_frustration_shows() -> None:
    result = UserFrustrationMetric(ScriptedModel([reply(TWICE, "never said", settled=True)])).evaluate(CONVERSATION)
    assert result.details["turns"] == [1]
    assert [one.verified for one in result.evidence] == [True, False]


def test_in_pieces_the_last_one_says_how_the_user_ends() -> None:
    answers = [reply(settled=True), reply(TWICE, settled=False), reply(settled=True)]
    result = UserFrustrationMetric(ScriptedModel(answers), scope="turn").evaluate(CONVERSATION)
    assert (result.score, result.details["turns"]) == ("resolved", [1])


def test_a_conversation_in_which_the_user_is_silent_is_skipped() -> None:
    model = ScriptedModel([])
    result = UserFrustrationMetric(model).evaluate([{"role": "assistant", "content": "Hello?"}])
    assert (result.state, model.requests) == ("skipped", [])


NO_EVIDENCE: dict[str, Any] = {"what": "angry", "evidence": []}


@pytest.mark.parametrize(
    "wrong",
    [
        {**reply(settled=True), "settled": "mostly"},
        {**reply(settled=True), "signs": [NO_EVIDENCE]},
        {**reply(settled=True), "confidence": 90},
        {"signs": [], "settled": True},
        {"label": "none"},
    ],
    ids=["no bool", "no evidence", "confidence", "incomplete", "another shape"],
)
def test_a_verdict_out_of_shape_is_an_error(wrong: dict[str, Any]) -> None:
    assert UserFrustrationMetric(ScriptedModel([wrong])).evaluate(CONVERSATION).state == "error"
