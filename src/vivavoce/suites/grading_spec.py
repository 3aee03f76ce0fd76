"""How a suite grades: its graders, how a judge is called, the reward of a sample, and the gate of a run."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, Discriminator, Field, ValidationInfo, field_validator, model_validator

from vivavoce.comparing.thresholds import SIGNS, Operator, compare
from vivavoce.errors import UsageError
from vivavoce.grading.grader import Scope
from vivavoce.grading.scores import ErrorLimit
from vivavoce.metrics.composition import wrong_thresholds
from vivavoce.metrics.config import Scope as MetricScope
from vivavoce.metrics.exact.rule import RuleMetric
from vivavoce.metrics.panel import VoteRule
from vivavoce.metrics.rules.rule import Rule
from vivavoce.models.modes import Mode
from vivavoce.records.label import CalibrationNeed
from vivavoce.records.run import Aggregation, Bound, BreachKind, OfScores, RateBound, Severity
from vivavoce.records.score import PASSING
from vivavoce.suites.document import Address, PassingThreshold, SettingsOfModel, Spec, check_weights


class RuleGraderSpec(Rule):
    """A rule about what comes before, after, never, always, or at most this many times; it needs no judge.

    A conversation that breaks it fails the run, or with `severity: warn` is only a warning. With `scores_errors`, the
    finished part of a conversation that ended with an error is scored, too.
    """

    kind: Literal["rule"]
    scores_errors: bool = False
    severity: Severity | None = None
    display_name: str | None = None

    def metric(self, name: str) -> RuleMetric:
        """Return the rule as a metric."""
        parts: dict[str, Any] = {part: getattr(self, part) or None for part in Rule.model_fields}
        return RuleMetric(name=name, **parts)


class RecordingSpec(Spec):
    """A recording, as viva export writes it: it answers tools of targets, and conversations are compared with it.

    `live` names the tools that are answered by their handlers for real, and the targets that call tools of their own.
    """

    path: str = Field(min_length=1)
    live: list[str] = Field(default_factory=list[str])

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


class RecordingGraderSpec(Spec):
    """Compares conversations with those of a recording, turn by turn; it needs no judge."""

    kind: Literal["recording"]
    path: str = Field(min_length=1)
    display_name: str | None = None


class GraderSpec(Spec):
    """Fields of every kind of grader: which part is graded, and its name in reports.

    `scope` decides whether each turn or the whole conversation is graded; without it, a sample with a ground truth for
    each turn is graded turn by turn. A score passes if it is at least `threshold`, 1 by default. With `scores_errors`,
    the finished part of a conversation that ended with an error is scored, too.
    """

    scope: Scope | None = None
    threshold: PassingThreshold = None
    scores_errors: bool = False
    display_name: str | None = None
    extractor: str = "last_assistant"
    extractor_config: dict[str, Any] = Field(default_factory=dict)


class FunctionGraderSpec(GraderSpec):
    """A grading function: built in or `file.py:name`; `config` has its options, `timeout` is in seconds.

    `kind: tool`, the name in letta-evals, means the same. `severity` is for `expect`, the grader of assertions: with
    `warn`, a miss does not fail the run.
    """

    kind: Literal["function", "tool"]
    function: str
    severity: Severity | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    timeout: float = Field(default=60.0, gt=0)


class ConfirmSpec(Spec):
    """Second opinions where the first judge says fail: whose, how many, and when the failure stands.

    By `majority` it stands unless more than half of the opinions pass, the first one included; by `all` only if none
    passes. `api_key_env` is for this model.
    """

    model: Address
    votes: int = Field(default=2, ge=1, le=9)
    rule: VoteRule = "majority"
    api_key_env: str | None = None


class CascadeSpec(Spec):
    """A cheap judge or metric that is asked first, and decides alone where it is sure.

    It is the same metric under another `model`, or another `metric` with its `config`. Below `fails_below` the
    conversation fails by it and from `passes_from` on it passes, both from 0 to 1; between them the grader's own judge
    decides. Without one of the two the first never decides that. `api_key_env` is for this model.
    """

    model: Address | None = None
    metric: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    fails_below: float | None = Field(default=None, ge=0, le=1)
    passes_from: float | None = Field(default=None, ge=0, le=1)
    api_key_env: str | None = None

    @model_validator(mode="after")
    def _decides(self) -> Self:
        if self.model is None and self.metric is None:
            raise ValueError("needs model, metric or both for the first judge")
        if self.config and self.metric is None:
            raise ValueError("config is for another metric; name it with metric")
        if wrong := wrong_thresholds(self.fails_below, self.passes_from):
            raise ValueError(wrong)
        return self


class JudgeSpec(Spec):
    """How a judge is called: its settings, the timeout of an answer in seconds, and how often a failed call is retried.

    `structured` is the way to ask for JSON, detected by default. The limits per minute are shared by all models of a
    provider with the same numbers.
    """

    temperature: float | None = 0.0
    settings: SettingsOfModel = Field(default_factory=dict)
    api_key_env: str | None = None
    max_retries: int = Field(default=5, ge=0, le=20)
    timeout: float = Field(default=120.0, gt=0)
    structured: Mode | None = None
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)

    @property
    def all_settings(self) -> dict[str, Any]:
        """The settings, including the temperature."""
        return self.settings if self.temperature is None else {"temperature": self.temperature, **self.settings}


class JudgeGraderSpec(GraderSpec, JudgeSpec):
    """A model that follows a rubric, which is text or a file.

    With `absence` the rubric is about something that must not be there, which no quote can show: then a high score
    needs no evidence.
    """

    kind: Literal["model_judge"]
    prompt: str | None = None
    prompt_path: str | None = None
    model: Address
    system_prompt: str | None = None
    rubric_vars: list[str] | None = None
    absence: bool = False
    confirm: ConfirmSpec | None = None
    cascade: CascadeSpec | None = None

    @model_validator(mode="after")
    def _one_prompt(self) -> Self:
        if (self.prompt is None) == (self.prompt_path is None):
            raise ValueError("needs exactly one of prompt and prompt_path")
        return self

    @model_validator(mode="after")
    def _one_procedure(self) -> Self:
        return _not_both(self)


class MetricGraderSpec(JudgeSpec):
    """A metric or a grading function by its name, or your own as `file.py:name`; `config` has its options.

    A metric judges the whole conversation; with a `scope`, it judges each turn or each window of turns in it. With an
    `extractor`, it judges the extracted text as if that were the answer, turn by turn if the sample has a ground truth
    for each turn. Its score passes on the right side of `threshold`, in the metric's own scale. A judged metric calls
    `model`, or the judge in VIVAVOCE_JUDGE. With `scores_errors`, the finished part of a conversation that ended with
    an error is scored, too. `severity` is for assertions and
    rules: with `warn`, a miss does not fail the run.
    """

    kind: Literal["metric"]
    metric: str
    model: Address | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    scope: MetricScope | None = None
    threshold: float | None = None
    scores_errors: bool = False
    severity: Severity | None = None
    extractor: str | None = None
    extractor_config: dict[str, Any] = Field(default_factory=dict)
    display_name: str | None = None
    confirm: ConfirmSpec | None = None
    cascade: CascadeSpec | None = None

    @model_validator(mode="after")
    def _one_procedure(self) -> Self:
        return _not_both(self)


_Judging = TypeVar("_Judging", JudgeGraderSpec, MetricGraderSpec)


def _not_both(spec: _Judging) -> _Judging:
    if spec.confirm is not None and spec.cascade is not None:
        raise ValueError("use either confirm or cascade, not both")
    return spec


AnyGraderSpec = Annotated[
    FunctionGraderSpec | JudgeGraderSpec | MetricGraderSpec | RuleGraderSpec | RecordingGraderSpec,
    Discriminator("kind"),
]


class RewardSpec(Spec):
    """Fields of every kind of reward: the lowest value that passes.

    Without a `threshold`, the reward of one grader passes if its score passes, and any other reward passes at 1.
    """

    threshold: PassingThreshold = None


class MetricRewardSpec(RewardSpec):
    """The reward is one grader's score."""

    kind: Literal["metric"]
    metric_key: str


class WeightedRewardSpec(RewardSpec):
    """The reward is a weighted mean of graders' scores; weights are normalised."""

    kind: Literal["weighted"]
    weights: dict[str, float] = Field(min_length=1)

    @field_validator("weights")
    @classmethod
    def _sum(cls, weights: dict[str, float]) -> dict[str, float]:
        return check_weights(weights)


class CustomRewardSpec(RewardSpec):
    """The reward is computed by a function: `file.py:name`, or a registered name."""

    kind: Literal["custom"]
    function: str


AnyRewardSpec = Annotated[MetricRewardSpec | WeightedRewardSpec | CustomRewardSpec, Field(discriminator="kind")]


def _reachable(value: float, info: ValidationInfo) -> float:
    aggregation, op = info.data.get("aggregation"), info.data.get("op")
    if aggregation is None or op is None:
        return value  # one of them is wrong itself, and that is said
    end, what = (100.0, "a percentage, from 0 to 100") if aggregation == "accuracy" else (1.0, "from 0 to 1")
    if not 0 <= value <= end:
        share = f"; did you mean {value / 100:g}, or aggregation: accuracy?"
        hint = share if end < value <= 100 else f", got {value:g}"
        raise ValueError(f"{aggregation} is {what}{hint}")
    if aggregation == "accuracy" and op in ("gt", "gte") and 0 < value <= 1:
        raise ValueError(f"accuracy is {what}: {value:g} is {value:g} %; did you mean {value * 100:g}?")
    if (op, value) in (("gt", end), ("lt", 0.0)):
        side, write = ("above", "gte") if op == "gt" else ("below", "lte")
        raise ValueError(f"{aggregation} is {what}, never {side} {value:g}; write op: {write}")
    return value


GateValue = Annotated[float, AfterValidator(_reachable)]
"""The value an aggregate is compared with: a run passes on one side of it and fails on the other."""


def _limit(value: int | str | None) -> str | None:
    if value is None:
        return None
    try:
        return ErrorLimit(str(value), "it").text
    except UsageError as error:
        raise ValueError(str(error)) from error


SpoiledLimit = Annotated[int | str | None, AfterValidator(_limit)]
"""How many conversations the tester may spoil, as a number or a share, so that the others decide."""


UnverifiedLimit = Annotated[int | None, Field(ge=0)]
"""How many verdicts of a judge may rest on evidence that is missing or not in the conversation."""


Errors = Literal["undecided", "fail"]
"""What a missing score counts as: anything from 0 to 1, so that it may leave a run undecided, or a failure of 0."""


def _check_counted(threshold: float | None, op: Operator) -> None:
    """Raise if a gate's own rule of what `accuracy` counts takes every score, or none."""
    limit = PASSING if threshold is None else threshold
    if len({compare(score, op, limit) for score in (0.0, limit, 1.0)}) == 1:
        which = "every score" if compare(limit, op, limit) else "no score"
        name = "pass_threshold" if threshold is not None else "pass_op"
        raise ValueError(f"{which} is {SIGNS[op]} {limit:g}, so this gate counts {which}; change {name}")


def _check_passing(aggregation: Aggregation, threshold: float | None, op: Operator = "gte") -> None:
    """Raise if a gate says what `accuracy` counts and is about another aggregate."""
    if aggregation != "accuracy" and (threshold is not None or op != "gte"):
        name = "pass_threshold" if threshold is not None else "pass_op"
        raise ValueError(
            f"{name} says which scores count as passing, but this gate uses {aggregation}; write aggregation: "
            f"accuracy, or remove {name}"
        )


def always_holds(spec: ConditionSpec | WeightedGateSpec) -> str:
    """Say that every aggregate is on the passing side of the value; empty where one could fail the gate."""
    most = 100 if spec.aggregation == "accuracy" else 1
    if not all(compare(score, spec.op, spec.value) for score in (0, most)) or spec.op == "eq":
        return ""
    return (
        f"every {'rate' if most == 100 else 'score'} is {SIGNS[spec.op]} {spec.value:g}, so this gate cannot fail; "
        "change value, or remove the gate"
    )


def _check_errors(errors: Errors, op: Operator, on: RateBound, pass_op: Operator = "gte") -> None:
    """Raise if errors that count as 0 could make a condition hold."""
    if errors == "fail" and pass_op not in ("gt", "gte"):
        raise ValueError(f"errors: fail counts errors as 0, which pass_op: {pass_op} could count as a pass")
    if errors == "fail" and op not in ("gt", "gte"):
        raise ValueError(f"errors: fail counts errors as 0, which op: {op} could reward; write op: gt or gte")
    if errors == "fail" and on in ("corrected", "corrected_lower"):
        raise ValueError(f"errors: fail counts scores without a judge, but on: {on} corrects only a judge's")


class ConditionSpec(Spec):
    """An aggregate of one grader's scores compared with a value; `k` is for pass^k and pass@k.

    `needs_calibration` says on how many labels the judge must be calibrated, and how far it must agree with them,
    before it decides: without that the run is inconclusive. With `max_tester_errors` the gate decides net of the
    conversations that the tester spoiled, while these are no more than that. With `errors: fail` every other missing
    score counts as 0 and as not passed. It fails if more than `max_unverified` verdicts of the judge rest on evidence
    that is missing or not in the conversation. `max_findings` says of false statements and broken rules that the judge
    of a goal finds besides the goal how many there may be.
    """

    metric_key: str
    aggregation: Aggregation = "avg_score"
    op: Operator = "gte"
    value: GateValue
    pass_threshold: float | None = Field(default=None, ge=0, le=1)
    pass_op: Operator = "gte"
    on: RateBound = "mean"
    k: int | None = Field(default=None, ge=1)
    min_scored: float = Field(default=0.0, ge=0, le=1)
    needs_calibration: CalibrationNeed | None = None
    max_tester_errors: SpoiledLimit = None
    errors: Errors = "undecided"
    max_unverified: UnverifiedLimit = None
    max_findings: dict[BreachKind, Annotated[int, Field(ge=0)]] = Field(default_factory=dict[BreachKind, int])

    @model_validator(mode="after")
    def _failing_errors(self) -> Self:
        _check_errors(self.errors, self.op, self.on, self.pass_op)
        return self

    @model_validator(mode="after")
    def _counts_some(self) -> Self:
        _check_counted(self.pass_threshold, self.pass_op)
        _check_passing(self.aggregation, self.pass_threshold, self.pass_op)
        return self

    @model_validator(mode="after")
    def _check_corrected(self) -> Self:
        own = self.pass_threshold is not None or self.pass_op != "gte"
        if self.on in ("corrected", "corrected_lower") and (self.aggregation != "accuracy" or own):
            raise ValueError(
                f"on: {self.on} needs a pass rate: write aggregation: accuracy, without pass_threshold and pass_op"
            )
        return self

    @model_validator(mode="after")
    def _trials(self) -> Self:
        over_trials = self.aggregation in ("pass^k", "pass@k")
        if over_trials and self.k is None:
            raise ValueError(f"{self.aggregation} needs k, the number of trials of a sample")
        if self.k is not None and not over_trials:
            raise ValueError(f"k is for pass^k and pass@k, not for {self.aggregation}")
        return self


class SimpleGateSpec(ConditionSpec):
    """One condition."""

    kind: Literal["simple"] = "simple"


class SamplesGateSpec(Spec):
    """Each sample passes by one grader in at least `min_pass` of its trials."""

    kind: Literal["samples"]
    metric_key: str
    min_pass: int = Field(ge=1)
    min_scored: float = Field(default=0.0, ge=0, le=1)
    errors: Errors = "undecided"
    max_unverified: UnverifiedLimit = None


class WeightedGateSpec(Spec):
    """One condition on a weighted mean of several graders' aggregates."""

    kind: Literal["weighted_average"]
    weights: dict[str, float] = Field(min_length=1)
    aggregation: OfScores = "avg_score"
    op: Operator = "gte"
    value: GateValue
    pass_threshold: float | None = Field(default=None, ge=0, le=1)
    on: Bound = "mean"
    min_scored: float = Field(default=0.0, ge=0, le=1)
    max_tester_errors: SpoiledLimit = None
    errors: Errors = "undecided"
    max_unverified: UnverifiedLimit = None

    @model_validator(mode="after")
    def _failing_errors(self) -> Self:
        _check_counted(self.pass_threshold, "gte")
        _check_passing(self.aggregation, self.pass_threshold)
        _check_errors(self.errors, self.op, self.on)
        return self

    @field_validator("weights")
    @classmethod
    def _sum(cls, weights: dict[str, float]) -> dict[str, float]:
        return check_weights(weights)


class LogicalGateSpec(Spec):
    """Conditions joined by `and` or `or`; `max_unverified` is about the verdicts of all graders in them."""

    kind: Literal["logical"]
    operator: Literal["and", "or"]
    conditions: list[AnyGateSpec] = Field(min_length=1)
    max_unverified: UnverifiedLimit = None


def grader_names(gate: AnyGateSpec) -> set[str]:
    """Return the names of the graders, and perhaps of the reward, that a gate decides on."""
    if isinstance(gate, LogicalGateSpec):
        return {name for part in gate.conditions for name in grader_names(part)}
    return set(gate.weights) if isinstance(gate, WeightedGateSpec) else {gate.metric_key}


AnyGateSpec = Annotated[
    SimpleGateSpec | SamplesGateSpec | WeightedGateSpec | LogicalGateSpec, Field(discriminator="kind")
]
