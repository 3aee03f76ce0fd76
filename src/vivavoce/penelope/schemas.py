"""The messages and records of a test, under the names that the tester's interface uses."""

from __future__ import annotations

from vivavoce.messages import AIMessage as AssistantMessage
from vivavoce.messages import FunctionCall, SystemMessage, ToolMessage
from vivavoce.messages import ToolCall as MessageToolCall
from vivavoce.penelope.simple_goal import CriterionEvaluation, SimpleGoalEval
from vivavoce.penelope.turn import Step, Turn

__all__ = [
    "AssistantMessage",
    "CriterionEvaluation",
    "FunctionCall",
    "MessageToolCall",
    "SimpleGoalEval",
    "Step",
    "SystemMessage",
    "ToolMessage",
    "Turn",
]
