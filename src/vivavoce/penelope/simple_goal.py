"""`SimpleGoalEvaluator`: the goal, criterion by criterion, and questions about a goal with a yes or a no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.comparing.negations import is_state_of_change
from vivavoce.messages import split_turns
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import ACTS, CRITERION, OBJECTION, EvidenceRule
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions
from vivavoce.metrics.ledger import Act, doubts_of_changes, ledger, objection_to_change, tools_visible
from vivavoce.metrics.metric import score_of_silence
from vivavoce.metrics.question import Piece, Question, Shape, Verdict
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.transcript import Transcript, transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.penelope.prompts import HERE
from vivavoce.records.score import Finding


class GoalQuestion(JudgedMetric):
    """Asks a judge about the goal; silence of the assistant is a no, and nobody is asked.

    A subclass has its `metric_name`, what it is `about`, its template, and the class of an answer. The prompt may use
    `visible`, whether the calls of the assistant are shown.
    """

    metric_name: ClassVar[str]
    about: ClassVar[str]
    own_variables: ClassVar[frozenset[str]] = frozenset(("visible",))
    needs: ClassVar[tuple[str, ...]] = ("goal",)

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name=self.metric_name,
            description=self.about,
            score_type="binary",
        )
        super().__init__(config, model, **options)

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about a piece; None where the assistant says and does nothing at all."""
        del piece
        return (self.reply, {"visible": tools_visible(metric_input, written)}) if written.answered else None

    def unasked(self, metric_input: MultiTurnEvaluationInput) -> MetricResult:
        """Return no: silence reaches no goal, and gives nothing."""
        return score_of_silence(self, metric_input, False)


class CriterionEvaluation(Shape):
    """One criterion of a goal, whether it is met, and the words that show it."""

    criterion: str
    met: bool
    evidence: str


def _without_what_code_knows(schema: dict[str, Any]) -> None:
    schema.pop("description", None)
    for name in ("evidence", "turn_count", "all_criteria_met", "goal_achieved"):
        del schema["properties"][name]


class SimpleGoalEval(BaseModel):
    """What the judge answers; what code can know better, it neither asks for nor believes from here.

    `turn_count` is counted in code; `all_criteria_met`, `goal_achieved` and the evidence follow from the criteria.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra=_without_what_code_knows)

    criteria_evaluations: list[CriterionEvaluation] = Field(min_length=1)
    reasoning: str
    evidence: list[str] = Field(default_factory=list[str])
    goal_achieved: bool | None = None
    confidence: float = Field(ge=0, le=1)
    turn_count: int | None = None
    all_criteria_met: bool | None = None


class SimpleGoalEvaluator(GoalQuestion):
    """Judges whether a conversation reached its goal, by criteria that the judge draws from it; yes or no.

    The answer is yes when every criterion is met, unless the judge says no anyway, unasked. Where the judge's
    own sums differ from ours, ours count and `extra["disagreements"]` says so. A criterion that is met needs
    evidence of what the assistant or a tool said or did; where all calls are shown and the goal names a state a call
    makes, only such a call counts. A yes that depends on one without evidence is a judge error.

    Known failure: it asks neither for the values of each change nor for changes that nobody wanted, as
    `GoalAchievementJudge` does.
    """

    metric_name = "simple_goal"
    about = "Did the conversation reach its goal, criterion by criterion?"
    template: ClassVar[str] = str(HERE / "simple_goal.jinja")
    version: ClassVar[str] = "5"
    reply = SimpleGoalEval
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(ACTS)

    def read(self, reply: SimpleGoalEval, question: Question) -> Verdict:
        """Return yes or no, from the criteria."""
        turn_count = len(split_turns(question.metric_input.messages)[1])
        all_met = all(criterion.met for criterion in reply.criteria_evaluations)
        differs = {
            "turn_count": reply.turn_count not in (None, turn_count),
            "all_criteria_met": reply.all_criteria_met not in (None, all_met),
            "goal_achieved": reply.goal_achieved is True and not all_met,
        }
        metric_input = question.metric_input
        visible = tools_visible(metric_input, transcript(metric_input.messages, self.shown))
        acts = ledger(metric_input.messages) if visible else None
        criteria = [_criterion(question, criterion, acts) for criterion in reply.criteria_evaluations]
        extra = {
            "all_criteria_met": all_met,
            "turn_count": turn_count,
            "findings": [
                f"[{_met_or_not(criterion)}] {criterion.criterion}: {criterion.evidence}"
                for criterion in reply.criteria_evaluations
            ],
            "disagreements": [name for name, differing in differs.items() if differing],
        }
        reasoning = f"Turn count: {turn_count}. {reply.reasoning}"
        evidence = question.checker.checked(reply.evidence)
        achieved = all_met and reply.goal_achieved is not False
        return Verdict(achieved, reasoning, reply.confidence, criteria, evidence, extra)

    def doubts(self, verdict: Verdict, question: Question) -> Sequence[str]:
        """Return a question about each criterion based on a call that may have been refused."""
        return doubts_of_changes(verdict.findings, ledger(question.metric_input.messages))

    def passes(self, verdict: Verdict, findings: Sequence[Finding]) -> bool:
        """Say whether the goal would be reached with other criteria met."""
        return bool(verdict.score) and all(finding.state == "pass" for finding in findings)


def _criterion(question: Question, criterion: CriterionEvaluation, acts: Sequence[Act] | None) -> Finding:
    """Return the finding about a criterion; `acts` are None where not all calls are shown."""
    quotes = [criterion.evidence] if criterion.evidence else []
    finding = question.finding(
        CRITERION, criterion.criterion, _met_or_not(criterion).lower(), "pass" if criterion.met else "fail", quotes
    )
    goal = question.metric_input.goal or ""
    if acts is None or not criterion.met or not is_state_of_change(goal, criterion.criterion):
        return finding
    objection = objection_to_change(acts, finding.evidence, question.checker)
    return finding.model_copy(update={"data": {**finding.data, OBJECTION: objection}}) if objection else finding


def _met_or_not(criterion: CriterionEvaluation) -> str:
    return "MET" if criterion.met else "NOT MET"
