"""The reward of a sample and the gate of a run."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from vivavoce.comparing.thresholds import SIGNS, Operator, compare
from vivavoce.errors import UsageError
from vivavoce.grading.scores import ErrorLimit
from vivavoce.records.label import CalibrationNeed
from vivavoce.records.run import Aggregation, Bound, BreachKind, OfScores, RateBound
from vivavoce.records.score import PASSING
from vivavoce.suites.part import PassingThreshold, Spec, check_weights


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


def _reachable(value: float, found: ValidationInfo) -> float:
    aggregation, op = found.data.get("aggregation"), found.data.get("op")
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
    if not all(compare(found, spec.op, spec.value) for found in (0, most)) or spec.op == "eq":
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
        raise ValueError(f"errors: fail counts scores that no judge gave, and on: {on} corrects those of a judge")


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
    def _corrected(self) -> Self:
        own = self.pass_threshold is not None or self.pass_op != "gte"
        if self.on in ("corrected", "corrected_lower") and (self.aggregation != "accuracy" or own):
            raise ValueError(
                f"on: {self.on} is about the rate of passing: write aggregation: accuracy, without pass_threshold "
                "and pass_op"
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
