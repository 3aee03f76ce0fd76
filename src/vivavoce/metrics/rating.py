"""`RatingMetric`: a judge gives the score itself, within a range or among labels that the schema enforces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from vivavoce.metrics.config import ScoreType
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.question import Question
from vivavoce.metrics.verdict import Verdict, merged

ANSWER: Mapping[ScoreType, str] = {"numeric": "score", "categorical": "label", "binary": "verdict"}
"""What the score is called in an answer, by its kind."""


class RatingMetric(JudgedMetric):
    """A judged metric whose answer is a score with its reasoning and evidence.

    The score is what its configuration says: a number from `minimum` to `maximum`, one of `categories`, or a yes or no.
    Pieces of a conversation count by their turns where the score is a number; else the worst piece decides: of those
    that fail, where there are any, the one with the lowest value.
    """

    @cached_property
    def answer(self) -> Any:
        """The type of the score in an answer."""
        config = self.config
        if config.score_type == "binary":
            return bool
        if config.score_type == "categorical":
            return Literal[config.categories]
        return Annotated[float, Field(ge=config.minimum, le=config.maximum, allow_inf_nan=False)]

    @cached_property
    def reply(self) -> type[BaseModel]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The class of an answer: reasoning and evidence come before the score, so that they lead to it."""
        fields: dict[str, Any] = {
            "reasoning": (str, ...),
            "evidence": (list[str], ...),
            ANSWER[self.config.score_type]: (self.answer, ...),
            "confidence": (Annotated[float, Field(ge=0, le=1)], ...),
        }
        return create_model("Rating", __config__=ConfigDict(extra="forbid"), **fields)

    def read(self, answer: Mapping[str, Any], question: Question) -> Verdict:
        """Return the score as it was given."""
        fields = self.reply.model_validate(answer, strict=True).model_dump()
        score = fields[ANSWER[self.config.score_type]]
        if self.config.score_type == "numeric":
            score = float(score)  # a whole number is an int
        evidence = question.checker.checked(fields["evidence"])
        return Verdict(score, fields["reasoning"], fields["confidence"], (), evidence, turns=question.piece.judged)

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the mean over the pieces, or the score of the worst one."""
        if self.config.score_type == "numeric":
            return super().merge(verdicts)
        scores = [verdict.score for verdict in verdicts if verdict.score is not None]
        return merged(min(scores, key=self.config.goodness), verdicts)
