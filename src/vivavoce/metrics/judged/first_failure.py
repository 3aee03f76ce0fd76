"""`FirstFailureMetric`: did the conversation fail, and at which step? The root of it, and the point of no return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Unpack

from pydantic import BaseModel, Field, model_validator

from vivavoce.errors import Blame, ModelFault
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import Claim, EvidenceRule, Place, repair_request
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions
from vivavoce.metrics.metric import score_of_silence
from vivavoce.metrics.question import Answer, Piece, Question, Shape, Verdict, merged
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.records.score import FAILED_STEP, Finding, Score, shorten

Whose = Literal["user", "assistant", "tool", "environment"]
"""Who made a mistake; the environment is none of the others."""

Kind = Literal[
    "wrong_action",
    "wrong_argument",
    "missing_action",
    "false_statement",
    "ignored_request",
    "broken_rule",
    "tool_error",
    "bad_input",
    "other",
]
"""What a mistake is."""

ROOT, NO_RETURN = "root", "point_of_no_return"
"""The two steps, as findings are called."""

BLAME: Mapping[Whose, Blame] = {
    "user": "tester",
    "assistant": "target",
    "tool": "target",
    "environment": "environment",
}
"""Who is to blame for a mistake in a test: the tools are the target's, and the user is the tester."""


class FailedStep(Shape):
    """One step with a mistake."""

    evidence: str
    what: str
    whose: Whose
    kind: Kind


class FirstFailureReply(Shape):
    """What the judge answers; where nothing failed there is no step."""

    reasoning: str
    root: FailedStep | None
    no_return: FailedStep | None
    confidence: float = Field(ge=0, le=1)

    @model_validator(mode="after")
    def _both_or_neither(self) -> FirstFailureReply:
        if (self.root is None) != (self.no_return is None):
            raise ValueError("root and no_return are two steps, or the same step twice, or both null")
        return self


class FirstFailureMetric(JudgedMetric):
    """Judges where a conversation failed; it passes where nothing did.

    The judge names two steps: the `root`, the earliest mistake without which it would not have failed, and the
    `point_of_no_return`, which made it final; they may be the same. Each is a finding with a quote or a call that is
    looked up in the conversation. `turn` says where it is; `data` has the index from 0 of the `message`, `whose`
    mistake it was (user, assistant, tool, environment) and its `kind`. `confidence` is that of the root.

    A step that is not in the conversation is asked for once more. A root that is still not found is a judge error; a
    point of no return that is not found does not become a finding, and its quote is in the other evidence.

    Of a conversation in pieces the earliest root decides. A conversation in which the assistant says and does nothing
    fails, and no judge is asked.

    Known failure: a mistake that a later piece of a long conversation corrects still counts.
    """

    template: ClassVar[str] = "judged/first_failure.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(absence="a conversation did not fail where no step did")
    reply = FirstFailureReply

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="first_failure",
            description="At which step did the conversation fail, if it did?",
            score_type="binary",
        )
        super().__init__(config, model, **options)

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about a piece; None where the assistant says and does nothing at all."""
        return (self.reply, {}) if written.answered else None

    def unasked(self, metric_input: MultiTurnEvaluationInput) -> MetricResult:
        """Return a failure, as silence helps nobody; skipped if there is no turn to judge by itself."""
        if self.scope != "conversation":
            return super().unasked(metric_input)
        return score_of_silence(self, metric_input, False)

    def again(self, answer: Answer) -> Question | None:
        """Return the request for a better answer where a step that it names is not in the conversation."""
        question = answer.question
        try:
            reply = question.reply_of(answer.reply)
        except ValueError:  # whoever reads the answer next reports it
            return None
        assert isinstance(reply, FirstFailureReply)
        steps = [step for step in (reply.root, reply.no_return) if step is not None and _place(question, step) is None]
        claims = [Claim(step.what, question.checker.checked([step.evidence]), "if_quoted") for step in steps]
        return question.repaired(answer.reply, repair_request(claims, question.checker)) if claims else None

    def read(self, reply: FirstFailureReply, question: Question) -> Verdict:
        """Return the steps that were found.

        Raises:
            ModelFault: the root is not in the conversation.
        """
        verdict = Verdict(True, reply.reasoning, reply.confidence, turns=question.piece.judged)
        if reply.root is None or reply.no_return is None:
            return verdict
        root = _place(question, reply.root)
        if root is None:
            quote = shorten(reply.root.evidence, 200)
            message = f"the step where it failed is not in the conversation: {quote!r}"
            raise ModelFault(message, kind="evidence", evidence=reply.reasoning)
        findings = [_finding(question, ROOT, reply.root, root)]
        last = _place(question, reply.no_return, root.message)
        if last is None:
            unfound = question.checker.checked([reply.no_return.evidence])
            return replace(verdict, score=False, findings=findings, evidence=unfound)
        return replace(verdict, score=False, findings=[*findings, _finding(question, NO_RETURN, reply.no_return, last)])

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the verdict with the earliest root, or that nothing failed in any piece."""
        failed = [verdict for verdict in verdicts if verdict.findings]
        if not failed:
            return replace(merged(None, verdicts), score=True)
        first = min(failed, key=lambda verdict: verdict.findings[0].data["message"])
        return replace(first, turns=sum(verdict.turns for verdict in verdicts))


def root_of(scores: Iterable[Score]) -> Finding | None:
    """Return the root of the failure that one of the scores found, None where none did."""
    found = (finding for score in scores for finding in score.findings)
    return next((one for one in found if (one.kind, one.verdict) == (FAILED_STEP, ROOT)), None)


def _place(question: Question, step: FailedStep, since: int = 0) -> Place | None:
    """Return the first place of a step that its maker has, from message `since` on if there is one; else the first."""
    places = question.checker.places(step.evidence)
    own = [place for place in places if place.role == step.whose] or places
    return next((place for place in own if place.message >= since), own[0] if own else None)


def _finding(question: Question, name: str, step: FailedStep, place: Place) -> Finding:
    about = f"{step.whose}, {step.kind.replace('_', ' ')}: {step.what}"
    (evidence,) = question.checker.checked([step.evidence])
    return Finding(
        kind=FAILED_STEP,
        what=about,
        verdict=name,
        state="fail",
        turn=place.turn,
        evidence=(evidence.model_copy(update={"turn": place.turn}),),
        blame=BLAME[step.whose],
        data={"message": place.message, "whose": step.whose, "kind": step.kind},
    )
