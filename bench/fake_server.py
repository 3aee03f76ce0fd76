"""What is known about the answers of the fake server in `../shared/bench`, and a judge that they satisfy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from vivavoce.metrics import GoalAchievementJudge
from vivavoce.metrics.judged.goal_reply import GoalReply
from vivavoce.metrics.question import Piece, Question, Verdict
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput

QUOTE = (
    "The assistant addressed the stated goal of the user: it asked for the missing details, applied the policy, and "
    "confirmed the result."
)
"""What its made-up answers quote. It is put into each conversation: a judge whose quotes are found nowhere is asked
again, which is not what is measured."""


class Goal(GoalAchievementJudge):
    """Judges a goal with one request: it asks for no false statements, and does not ask again about its doubts.

    The server fills each list of an answer with the same words, and a statement that is called false meets no outcome.
    """

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the question of the goal with a shorter answer."""
        question = super().question(metric_input, written, piece)
        return question and (_without_breaches(question[0]), question[1])

    def doubts(self, verdict: Verdict, question: Question) -> Sequence[str]:
        """Look for doubts, and return none."""
        super().doubts(verdict, question)
        return ()


@cache
def _without_breaches(shape: type[BaseModel]) -> type[BaseModel]:
    write = shape.model_config.get("json_schema_extra")

    def leave_out_breaches(schema: dict[str, Any], reply: type[GoalReply]) -> None:
        if callable(write):
            write(schema, reply)  # pyright: ignore[reportCallIssue, reportArgumentType]
        del schema["properties"]["breaches"]

    class ShortReply(shape):
        model_config = ConfigDict(json_schema_extra=leave_out_breaches)  # pyright: ignore[reportArgumentType]

    return ShortReply
