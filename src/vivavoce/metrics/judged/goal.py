"""`GoalAchievementJudge`: did the conversation reach its goal? Outcome by outcome, each with its evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, Unpack

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from vivavoce.errors import ModelFault, UsageError
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions
from vivavoce.metrics.pieces import Piece
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.question import Answer, Question
from vivavoce.metrics.reading import Reading
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.silence import score_of_silence
from vivavoce.metrics.steps import Ask, Plan
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.metrics.verdict import Verdict
from vivavoce.models.custom import ModelLike
from vivavoce.models.model import Model
from vivavoce.records.failure import shorten
from vivavoce.records.score import Finding, FindingState
from vivavoce.records.usage import charge

LEVELS = ("not_achieved", "partially_achieved", "fully_achieved")
CRITERION, PROHIBITION = "criterion", "prohibition"
"""The kinds of findings: what has to come out, and what must not happen."""
AGAIN = 1_000_000
"""What the number of a question is raised by when it is asked a second time, so that its answer is kept apart."""


class Criterion(BaseModel):
    """One outcome that the goal requires."""

    model_config = ConfigDict(extra="forbid")

    outcome: str
    kind: Literal["change", "fact", "refusal", "fallback", "other"]
    evidence: list[str]
    met: bool


class Breach(BaseModel):
    """Something that should not have happened."""

    model_config = ConfigDict(extra="forbid")

    what: str
    evidence: list[str]


def _without_older_form(schema: dict[str, Any]) -> None:
    for name in ("evidence", "missing_criteria"):
        del schema["properties"][name]


class GoalReply(BaseModel):
    """What the judge answers; subclasses know the levels, and how many criteria are given.

    Older interfaces have `evidence` and `missing_criteria` in place of the criteria. That form is read and never asked
    for.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra=_without_older_form)

    criteria_given: ClassVar[int] = 0

    criteria: list[Criterion] = Field(default_factory=list[Criterion])
    violations: list[Breach] = Field(default_factory=list[Breach])
    reasoning: str
    achievement_level: str
    confidence: float = Field(ge=0, le=1)
    evidence: list[str] | None = None
    missing_criteria: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _has_criteria(self) -> GoalReply:
        if not self.criteria and (self.evidence is None or self.criteria_given or self.violations):
            raise ValueError("criteria are missing; judge each of them")
        return self


class GoalAchievementJudge(JudgedMetric):
    """Judges whether a conversation reached its goal; the score is one of `categories`, given worst first.

    The judge lists the outcomes that the goal requires, or is given them in `must` and `must_not`, and says of each
    whether it is met, with evidence; it also names violations. The level is computed from that: the worst when nothing
    is met, a passing one only when everything is met and nothing violated, and between them by the share that is met.
    What must not happen and does is a violation; that it does not achieves nothing. Where several levels pass, the
    judge's own choice among them stands.

    An outcome that is called met on quotes none of which is in the conversation is asked about once more. If whether
    the goal is reached still hangs on such a quote, it is an error of the judge and no score.

    A reply that has a level but no criteria counts as it is, so that a custom model may answer in that older form.

    Known failure: what the goal leaves open, the judge fills in. A careful reader who worked in this way agreed with
    the known outcome of 30 conversations of an airline agent at κ .53 (accuracy .77), one who gave a level on the whole
    at κ .40.
    """

    template: ClassVar[str] = "judged/goal.jinja"
    needs: ClassVar[tuple[str, ...]] = ("goal",)
    own_variables: ClassVar[frozenset[str]] = frozenset(("levels",))

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        categories: Sequence[str] | None = None,
        passing_categories: str | Sequence[str] | None = None,
        description: str = "Did the conversation reach its goal?",
        **options: Unpack[JudgingOptions],
    ) -> None:
        self.categories = list(categories or LEVELS)
        passing = self.categories[-1:] if passing_categories is None else passing_categories
        self.passing_categories = [passing] if isinstance(passing, str) else list(passing)
        _check_levels(self.categories, self.passing_categories)
        config = MetricConfig(
            class_name=type(self).__name__,
            name="goal_achievement",
            description=description,
            score_type="categorical",
            categories=tuple(self.categories),
            passing_categories=tuple(self.passing_categories),
        )
        super().__init__(config, model, **options)

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the levels, where they are others than everybody's; those explain themselves in the schema."""
        del metric_input
        own = tuple(self.categories) != LEVELS
        return {"levels": Wording(", ".join(self.categories)) if own else None}

    def read(self, answer: Mapping[str, Any], question: Question) -> Verdict:
        """Return the level that the criteria come to."""
        metric_input = question.metric_input
        reply = self._reply(metric_input).model_validate(answer, strict=True)
        if not reply.criteria:
            return self._holistic(reply, question)
        criteria = [
            question.finding(kind, what, _word(one.met), _state(one.met), one.evidence, data={"kind": one.kind})
            for one, kind, what in _named(reply.criteria, metric_input)
        ]
        violations = [
            question.finding("violation", one.what, "violated", "fail", one.evidence) for one in reply.violations
        ]
        return self._computed([*criteria, *violations], reply, question.piece.judged)

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the verdict over all pieces: an outcome is met if one piece shows it, and nothing may be violated."""
        if any(not verdict.findings for verdict in verdicts):
            raise ValueError("a judge that lists no criteria cannot judge a conversation in pieces")
        criteria: list[Finding] = []
        for versions in zip(*(_criteria(verdict.findings) for verdict in verdicts), strict=True):
            met = (all if versions[0].kind == PROHIBITION else any)(one.state == "pass" for one in versions)
            evidence = tuple(one for version in versions for one in version.evidence)
            state = _state(met)
            turn = next((one.turn for one in versions if one.state == state), None)
            updated = {"verdict": _word(met), "state": state, "turn": turn, "evidence": evidence}
            criteria.append(versions[0].model_copy(update=updated))
        violations = [one for verdict in verdicts for one in verdict.findings if one.kind == "violation"]
        reply = GoalReply.model_construct(
            reasoning="\n".join(verdict.reasoning for verdict in verdicts),
            confidence=min(verdict.confidence or 0.0 for verdict in verdicts),
            achievement_level=str(verdicts[-1].extra["judge_level"]),
        )
        return self._computed([*criteria, *violations], reply, sum(verdict.turns for verdict in verdicts))

    def first_decides(self, metric_input: MultiTurnEvaluationInput) -> bool:
        """Say whether the outcomes have to be listed by the judge, which it does once."""
        return not metric_input.must

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about a piece; None where the assistant says and does nothing at all."""
        return (self._reply(metric_input), self.variables(metric_input)) if written.answered else None

    def unasked(self, metric_input: MultiTurnEvaluationInput) -> MetricResult:
        """Return the lowest level, for silence reaches no goal; without a turn to judge by itself it is skipped."""
        if self.scope != "conversation":
            return super().unasked(metric_input)
        return score_of_silence(self, metric_input, self.categories[0], self._levels())

    def conclude(self, verdict: Verdict) -> Verdict:
        """Return the verdict, unless whether it passes hangs on evidence that is nowhere in the conversation.

        Raises:
            ModelFault: it does.
        """
        unfounded = _unfounded(verdict.findings)
        if not unfounded:
            return verdict
        met = [one.state == "pass" and one not in unfounded for one in verdict.findings if one.kind == CRITERION]
        violated = any(one.state == "fail" for one in verdict.findings if one.kind != CRITERION)
        without = self.level(sum(met) / len(met), violated, str(verdict.extra["judge_level"]))
        if self.config.passes(without) == self.config.passes(str(verdict.score)):
            return verdict
        quote = shorten(unfounded[0].evidence[0].text, 200)
        message = f"whether the goal is reached hangs on a quote that is not in the conversation: {quote!r}"
        raise ModelFault(message, kind="evidence", evidence=verdict.reasoning)

    def answers(self, reading: Reading, questions: Sequence[Question], judge: Model) -> Plan[Sequence[Answer]]:
        """Yield the questions; where the judge has to list the outcomes, those that it lists first hold for all."""
        if len(questions) < 2 or not self.first_decides(reading.metric_input):
            return (yield Ask(judge, questions, self._again))
        (first,) = yield Ask(judge, questions[:1], self._again, leads=True)
        try:
            if first.reply.parsed is not None:
                listed = [one for one in self.verdict(first).findings if one.kind == CRITERION]
                questions = self.questions(reading.knowing(must=tuple(one.what for one in listed)))
            return [first, *(yield Ask(judge, questions[1:], self._again))]
        except Exception as error:
            charge(error, first.usage)
            raise

    def _again(self, answer: Answer) -> Question | None:
        """Return the question once more where its answer calls an outcome met on evidence that is not there."""
        try:
            unfounded = _unfounded(self.verdict(answer).findings)
        except ModelFault:  # whoever reads the answer next says so
            return None
        request = answer.question.request
        return replace(answer.question, request=replace(request, trial=request.trial + AGAIN)) if unfounded else None

    def _computed(self, findings: Sequence[Finding], reply: GoalReply, turns: int) -> Verdict:
        wanted = [one.state == "pass" for one in findings if one.kind == CRITERION]
        violated = any(one.state == "fail" for one in findings if one.kind != CRITERION)
        level = self.level(sum(wanted) / len(wanted), violated, reply.achievement_level)
        extra = {"judge_level": reply.achievement_level, **self._levels()}
        return Verdict(level, reply.reasoning, reply.confidence, findings, extra=extra, turns=turns)

    def level(self, met: float, violated: bool, judged: str) -> str:
        """Return the level for the share of outcomes that are met; `judged` is what the judge itself would say."""
        passing = sorted(map(self.categories.index, self.passing_categories))
        lowest = passing[0]
        if met == 1 and not violated:
            return self.categories[max((i for i in passing if i <= self.categories.index(judged)), default=lowest)]
        if met == 0:
            return self.categories[0]
        return self.categories[max(1, math.ceil(met * (lowest - 1)))] if lowest > 1 else self.categories[0]

    def _holistic(self, reply: GoalReply, question: Question) -> Verdict:
        evidence = question.checker.checked(reply.evidence or ())
        extra = {"missing_criteria": reply.missing_criteria, **self._levels()}
        return Verdict(
            reply.achievement_level, reply.reasoning, reply.confidence, (), evidence, extra, question.piece.judged
        )

    def _reply(self, metric_input: MultiTurnEvaluationInput) -> type[GoalReply]:
        return goal_reply(tuple(self.categories), len(metric_input.must), len(metric_input.must_not))

    def _levels(self) -> dict[str, Any]:
        return {"categories": self.categories, "passing_categories": self.passing_categories}


@lru_cache(256)
def goal_reply(levels: tuple[str, ...], must: int, must_not: int) -> type[GoalReply]:
    """Return the class of an answer that chooses among the levels and judges as many criteria as are given."""
    least = must + must_not or 1
    count = Field(min_length=least + (must == 0 and must_not > 0), max_length=least if must else None)
    level: Any = Literal[levels]
    shape = create_model(
        "GoalReply",
        __base__=GoalReply,
        criteria=(Annotated[list[Criterion], count], Field(default_factory=list)),
        achievement_level=(level, ...),
    )
    shape.criteria_given = must + must_not
    return shape


def _named(
    criteria: Sequence[Criterion], metric_input: MultiTurnEvaluationInput
) -> Iterator[tuple[Criterion, str, str]]:
    """Yield each criterion with its kind and its words: ours for those that were given."""
    listed = len(criteria) - len(metric_input.must_not)
    for i, one in enumerate(criteria):
        if i >= listed:
            yield one, PROHIBITION, metric_input.must_not[i - listed]
        else:
            yield one, CRITERION, metric_input.must[i] if metric_input.must else one.outcome


def _unfounded(findings: Sequence[Finding]) -> list[Finding]:
    """Return the outcomes that are called met on evidence of which nothing is in the conversation."""
    return [
        one
        for one in findings
        if one.kind == CRITERION
        and one.state == "pass"
        and one.evidence
        and not any(evidence.verified for evidence in one.evidence)
    ]


def _criteria(findings: Sequence[Finding]) -> list[Finding]:
    return [one for one in findings if one.kind in (CRITERION, PROHIBITION)]


def _word(met: bool) -> str:
    return "met" if met else "not met"


def _state(met: bool) -> FindingState:
    return "pass" if met else "fail"


def _check_levels(categories: Sequence[str], passing: Sequence[str]) -> None:
    if len(set(categories)) != len(categories) or len(categories) < 2:
        raise UsageError(f"categories are at least two different levels, worst first; got {list(categories)}")
    if not passing or not set(passing) <= set(categories[1:]):
        raise UsageError(f"passing_categories are some of {list(categories[1:])}; got {list(passing)}")
