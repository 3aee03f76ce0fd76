"""`AskedFor`: which details of the user did the assistant ask for, in whatever words or language?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import GenericAlias
from typing import Any, ClassVar, Literal, Unpack

from pydantic import BaseModel, ConfigDict, create_model

from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions
from vivavoce.metrics.question import Piece, Question, Verdict
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.penelope.prompts import HERE

DETAILS = "details"
"""Where the context has the names of the details, and a result says of each whether it was asked for."""


class AskedReply(BaseModel):
    """What the judge answers; subclasses know the details."""

    model_config = ConfigDict(extra="forbid")

    asked: list[str]


class AskedFor(JudgedMetric):
    """Says which of `context["details"]` the assistant asked the user for: true where it asked for all of them.

    `extra["details"]` of a result says of each whether it did.
    """

    template: ClassVar[str] = str(HERE / "asked_for.jinja")
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(absence="the message that is judged is the only one")
    reply = AskedReply
    of_assistant: ClassVar[bool] = True
    own_variables: ClassVar[frozenset[str]] = frozenset((DETAILS,))

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="asked_for",
            description="Did the assistant ask for these details?",
            score_type="binary",
        )
        super().__init__(config, model, **options)

    def unmet(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Say that no details are named, where none are."""
        return None if _details(metric_input) else "needs details, and none are given"

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer, which chooses among the details, and their names."""
        if super().question(metric_input, written, piece) is None:
            return None
        details = _details(metric_input)
        return _reply(details), {DETAILS: details}

    def read(self, reply: AskedReply, question: Question) -> Verdict:
        """Return whether the assistant asked for all of them, and for which."""
        return _verdict({detail: detail in reply.asked for detail in _details(question.metric_input)})

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the verdict over all pieces: a detail was asked for if it was in one of them."""
        pieces = [verdict.extra[DETAILS] for verdict in verdicts]
        return _verdict({detail: any(piece[detail] for piece in pieces) for detail in pieces[0]})


def _verdict(results: Mapping[str, bool]) -> Verdict:
    return Verdict(all(results.values()), "", extra={DETAILS: dict(results)})


def _details(metric_input: MultiTurnEvaluationInput) -> tuple[str, ...]:
    return tuple((metric_input.context or {}).get(DETAILS) or ())


@lru_cache(256)
def _reply(details: tuple[str, ...]) -> type[AskedReply]:
    some: Any = GenericAlias(list, (Literal[details],))
    return create_model("AskedReply", __base__=AskedReply, asked=(some, ...))
