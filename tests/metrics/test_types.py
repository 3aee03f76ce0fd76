from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from vivavoce.messages import AIMessage, HumanMessage, ToolMessage
from vivavoce.metrics.types import ConversationTurn, GoalAchievementResponse


def test_a_turn_of_a_conversation_is_the_message_of_its_role() -> None:
    turn = ConversationTurn(role="user", content="Hi", metadata={"tokens": 1})
    assert turn == HumanMessage(content="Hi", metadata={"tokens": 1})
    with pytest.raises(ValueError, match="needs a role"):
        ConversationTurn(role="human being", content="Hi")


def test_it_is_the_type_of_every_message() -> None:
    assert isinstance(AIMessage(content="x"), ConversationTurn)
    assert issubclass(ToolMessage, ConversationTurn)
    assert not isinstance("x", ConversationTurn)
    assert not issubclass(str, ConversationTurn)


def test_it_is_a_type_of_fields() -> None:
    class Log(BaseModel):
        turns: list[ConversationTurn]

    log = Log.model_validate({"turns": [{"role": "user", "content": "Hi"}, AIMessage(content="Hello")]})
    assert [type(turn) for turn in log.turns] == [HumanMessage, AIMessage]
    with pytest.raises(ValidationError):
        Log.model_validate({"turns": ["Hi"]})


def test_the_answer_of_a_judge_of_goals_has_the_documents_fields() -> None:
    answer = {"achievement_level": "fully_achieved", "confidence": 0.9, "reasoning": "r", "evidence": ["e"]}
    assert GoalAchievementResponse.model_validate(answer).missing_criteria == []
    with pytest.raises(ValidationError):
        GoalAchievementResponse.model_validate({**answer, "confidence": 57})
