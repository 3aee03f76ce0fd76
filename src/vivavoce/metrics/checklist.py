"""Checklists: a judge answers questions one by one, about a conversation or about each turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Literal

from pydantic import BaseModel, Field, model_validator

from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgedMetric, answered
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.question import Piece, Question, Shape, Verdict, limited
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.records.score import Finding, FindingState, turn_label, turn_span

Answer = Literal["yes", "partly", "no", "not_applicable"]
WORTH: Mapping[str, float] = {"yes": 1.0, "partly": 0.5, "no": 0.0}
STATE_WORTH: Mapping[FindingState, float] = {"pass": 1.0, "partial": 0.5, "fail": 0.0}
STATES: Mapping[str, FindingState] = {"yes": "pass", "partly": "partial", "no": "fail", "not_applicable": "skip"}


class Check(Shape):
    """The answer to one question."""

    item: str
    evidence: list[str]
    answer: Answer


class ChecklistReply(Shape):
    """What the judge answers; a subclass knows which items it was asked about."""

    expected: ClassVar[tuple[str, ...]] = ()

    checks: list[Check]
    reasoning: str
    confidence: float = Field(ge=0, le=1)

    @model_validator(mode="after")
    def _each_once(self) -> ChecklistReply:
        answered = [check.item for check in self.checks]
        if self.expected and sorted(answered) != sorted(self.expected):
            raise ValueError(
                f"answer each of these items once: {', '.join(self.expected)}; got {', '.join(answered) or 'none'}"
            )
        return self


@lru_cache(256)
def checklist_reply(items: tuple[str, ...]) -> type[ChecklistReply]:
    """Return the class of an answer about these items; without items the judge lists them itself."""
    if not items:
        return ChecklistReply
    shape = limited(ChecklistReply, "checks", Check, "item", items)
    shape.expected = items
    return shape


class ChecklistMetric(JudgedMetric):
    """A judged metric whose answer is a list of checks.

    A subclass gives the `items`, each a name and a question that `yes` answers well, or none where the judge lists them
    itself, as the facts of a conversation. `yes` counts 1, `partly` 0.5, `no` 0; what does not apply is left out, and
    where nothing applies the metric is skipped.
    """

    version: ClassVar[str] = "5"
    reply = ChecklistReply
    of_assistant: ClassVar[bool] = True
    own_variables: ClassVar[frozenset[str]] = frozenset(("items",))
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule({("check", "pass"): "conversation"})

    def items(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, str]:
        """Return the questions by the names of their items, none where the judge lists them itself."""
        del metric_input
        return {}

    def what(self, item: str) -> str:
        """Return what a reader is shown of an item."""
        return item

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about the items, and the prompt's own variables; None for nothing to judge."""
        question = super().question(metric_input, written, piece)
        return question and (checklist_reply(tuple(self.items(metric_input))), question[1])

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the items."""
        return {"items": self.items(metric_input)}

    def read(self, reply: ChecklistReply, question: Question) -> Verdict:
        """Return the share of the applicable items that hold."""
        checks = [
            question.finding(
                "check",
                self.what(check.item),
                check.answer,
                STATES[check.answer],
                check.evidence,
                data={"item": check.item},
            )
            for check in reply.checks
        ]
        worth = [WORTH[check.answer] for check in reply.checks if check.answer in WORTH]
        score = sum(worth) / len(worth) if worth else None
        reasoning = reply.reasoning if worth else self.nothing
        weight = question.piece.judged if self.items(question.metric_input) else len(worth)
        return Verdict(score, reasoning, reply.confidence, checks, turns=weight)

    def passes(self, verdict: Verdict, findings: Sequence[Finding]) -> bool | None:
        """Return whether the share of what holds would pass with other findings."""
        del verdict
        worth = [STATE_WORTH[finding.state] for finding in findings if finding.state in STATE_WORTH]
        return self.config.passes(sum(worth) / len(worth)) if worth else None

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the mean over the pieces, with the checks of all of them."""
        whole = super().merge(verdicts)
        return whole if whole.score is not None else replace(whole, reasoning=self.nothing)


class TurnChecklistMetric(ChecklistMetric):
    """A checklist with an item for each turn in which the assistant says or does something, such as `turn 3`.

    The prompt finds these turns in `turns`. A turn without an answer is not an item, and a conversation
    without any is skipped.
    """

    own_variables: ClassVar[frozenset[str]] = ChecklistMetric.own_variables | {"turns"}

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about the turns of a piece, and the prompt's own variables."""
        turns = [turn for turn in answered(written, piece) if turn is not None]
        if not turns:
            return None
        items = tuple(turn_label(turn) for turn in turns)
        return checklist_reply(items), {**self.variables(metric_input), "turns": Wording(turn_span(turns))}
