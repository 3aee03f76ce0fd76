"""`Question` and `Answer`: a question to a judge about a piece of a conversation, and its reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.pieces import Piece
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.metrics.verdict import Verdict
from vivavoce.models.model import ModelReply, Request
from vivavoce.records.score import Finding, FindingState
from vivavoce.records.usage import Usage
from vivavoce.unchecked import unchecked

R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a judge; the evidence of its answer can be looked up with `checker`.

    `task` is what the metric says in the request, besides the conversation that stands there too.
    """

    request: Request
    task: str
    metric_input: MultiTurnEvaluationInput
    checker: Checker
    piece: Piece

    @property
    def shape(self) -> type[BaseModel]:
        """The class that the answer must match."""
        assert isinstance(self.request.schema, type)
        return self.request.schema

    def repaired(self, answer: ModelReply, problem: str) -> Question:
        """Return the question with an answer to it and the request for a better one, which says what is wrong."""
        text = answer.text or json.dumps(answer.parsed, ensure_ascii=False)
        messages = [*self.request.messages, AIMessage(content=text), HumanMessage(content=problem)]
        return replace(self, request=replace(self.request, messages=messages))

    def parsed(self, answer: Mapping[str, Any], kind: type[R]) -> R:
        """Return an answer as an instance of the class that it must match, which is a subclass of `kind`.

        Raises:
            ValidationError: it does not match.
        """
        reply = self.shape.model_validate(answer, strict=True)
        assert isinstance(reply, kind)
        return reply

    def finding(
        self,
        kind: str,
        what: str,
        verdict: str,
        state: FindingState,
        evidence: Sequence[str] = (),
        turn: int | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> Finding:
        """Return a finding with its evidence looked up; without `turn` it gets that of the first verified quote."""
        checked = tuple(self.checker.checked(evidence, against=state in ("fail", "partial")))
        place = turn if turn is not None else next((quote.turn for quote in checked if quote.verified), None)
        fields = {"kind": kind, "what": what, "verdict": verdict, "state": state, "turn": place}
        return unchecked(Finding, {**fields, "evidence": checked, "data": dict(data or {})})


@dataclass(slots=True)
class Answer:
    """The reply of a judge to a question; `verdict` is set once the reply has been read."""

    question: Question
    reply: ModelReply
    verdict: Verdict | None = None

    @property
    def usage(self) -> Usage | None:
        """The usage of the reply."""
        return self.reply.usage
