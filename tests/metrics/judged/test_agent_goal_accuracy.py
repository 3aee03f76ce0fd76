from __future__ import annotations

from typing import Any

import pytest

from vivavoce.metrics.judged.agent_goal_accuracy import AgentGoalAccuracy
from vivavoce.testing import ScriptedModel

CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "Book a table for two at 8."},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "name": "book", "arguments": {"people": 2}}]},
    {"role": "tool", "tool_call_id": "a", "content": "booked"},
    {"role": "assistant", "content": "Your table is booked."},
    {"role": "user", "content": "Thank you."},
]


def reply(*reached: bool) -> dict[str, Any]:
    outcomes = [{"outcome": "a table", "evidence": ["c0"], "reached": one} for one in reached]
    return {"outcomes": outcomes, "reasoning": "Seen.", "confidence": 0.9}


def asked(metric: AgentGoalAccuracy) -> str:
    assert isinstance(metric.model, ScriptedModel)
    return metric.model.requests[0].messages[1].text


@pytest.mark.parametrize(("reached", "score"), [((True, True), 1.0), ((True, False), 0.0), ((False,), 0.0)])
def test_every_outcome_has_to_be_reached(reached: tuple[bool, ...], score: float) -> None:
    result = AgentGoalAccuracy(ScriptedModel([reply(*reached)])).evaluate(CONVERSATION, reference="A table at 8.")
    assert (result.name, result.score, result.value, result.passed) == ("agent_goal_accuracy", score, score, score == 1)
    assert result.details["score_type"] == "binary"
    assert [(one.text, one.turn, one.verified) for one in result.evidence] == [("c0", 0, True)]


def test_the_reference_comes_first_then_the_goal_then_what_the_user_asks_for() -> None:
    known: dict[str, Any] = {"reference": "A table at 8.", "goal": "Dinner."}
    for names, shown, compared_with in (
        (("reference", "goal"), 'Desired outcome: "A table at 8."', "reference"),
        (("goal",), 'What the user wanted: "Dinner."', "goal"),
        ((), "the user asks for", "inferred"),
    ):
        metric = AgentGoalAccuracy(ScriptedModel([reply(True)]))
        result = metric.evaluate(CONVERSATION, **{name: known[name] for name in names})
        assert result.details["compared_with"] == compared_with
        assert shown in asked(metric)
        assert "result c0:" in asked(metric)


def test_the_reference_can_be_left_out_of_view() -> None:
    metric = AgentGoalAccuracy(ScriptedModel([reply(True)]), reference=False)
    assert metric.evaluate(CONVERSATION, reference="A secret.").details["compared_with"] == "inferred"
    assert "A secret." not in asked(metric)


def test_the_reference_can_be_demanded() -> None:
    result = AgentGoalAccuracy(ScriptedModel([]), reference=True).evaluate(CONVERSATION)
    assert (result.state, result.reasoning) == ("skipped", "needs a reference, and none is given")


@pytest.mark.parametrize(
    "wrong",
    [reply(), {**reply(True), "confidence": 2}, {"verdict": "1"}, {**reply(True), "outcomes": [{"reached": True}]}],
    ids=["no outcomes", "confidence", "another shape", "half an outcome"],
)
def test_a_verdict_out_of_shape_is_an_error(wrong: dict[str, Any]) -> None:
    result = AgentGoalAccuracy(ScriptedModel([wrong])).evaluate(CONVERSATION, reference="A table.")
    assert (result.state, result.value) == ("error", None)


def test_in_pieces_one_that_shows_the_reference_is_enough_and_each_has_to_where_it_is_inferred() -> None:
    for reference, score in (("A table.", 1.0), (None, 0.0)):
        model = ScriptedModel([reply(True), reply(False)])
        assert AgentGoalAccuracy(model, scope="turn").evaluate(CONVERSATION, reference=reference).score == score
