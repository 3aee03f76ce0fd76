"""Gates: whether a run passes, from the scores of its samples.

A score that is missing because of an error has no value. Instead, the gate is decided twice, once with every missing
score as 0 and once as 1: if both agree, that is the verdict; if they differ, it is `inconclusive`. Skipped samples do
not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from vivavoce.records.reason import Aggregation, Bound, Code, Condition, Operator, Reason, Verdict
from vivavoce.records.score import PASSING
from vivavoce.stats.intervals import mean_interval, percentile

_COMPARE: dict[Operator, Callable[[float, float], bool]] = {
    "gt": lambda a, b: a > b,
    "gte": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
}


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a grader or of the reward: values, whether each passes, its sample, and how many are missing."""

    values: Sequence[float]
    passed: Sequence[bool]
    clusters: Sequence[str]
    errors: int = 0
    skipped: int = 0

    def filled(self, missing: float) -> Scores:
        """Return the scores as if every error had been `missing`."""
        unknown = [f"error {i}" for i in range(self.errors)]
        values, passed = [*self.values, *[missing] * self.errors], [*self.passed, *[missing >= 1] * self.errors]
        return Scores(values, passed, [*self.clusters, *unknown], 0, self.skipped)


@dataclass(frozen=True, slots=True)
class GateResult:
    """A verdict, and the reason of each condition."""

    verdict: Verdict
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Threshold:
    """What every simple condition compares: an aggregate of scores, by an operator, with a value.

    `accuracy` counts the scores that pass, or with the gate's own `pass_threshold` or `pass_op`, the scores on that
    side of it.
    """

    aggregation: Aggregation
    op: Operator
    value: float
    pass_threshold: float | None = None
    pass_op: Operator = "gte"
    on: Bound = "mean"

    def aggregate(self, scores: Scores) -> float | None:
        """Return the aggregate; `accuracy` is a percentage, 0 to 100.

        With `on: lower` it is the lower end of the 95% interval of the mean or of the accuracy, None for a single
        sample, which has no interval.
        """
        values = list(scores.values)
        if self.aggregation == "accuracy":
            values = [100.0 * one for one in self._passing(scores)]
        if self.aggregation in ("avg_score", "accuracy"):
            return self._mean(values, scores.clusters)
        if self.aggregation in ("min", "max"):
            return min(values) if self.aggregation == "min" else max(values)
        return percentile(values, {"median": 50, "p50": 50, "p95": 95, "p99": 99}[self.aggregation])

    def _passing(self, scores: Scores) -> Sequence[bool]:
        threshold = self.pass_threshold
        if threshold is None and self.pass_op == "gte":
            return scores.passed
        limit = PASSING if threshold is None else threshold
        return [_COMPARE[self.pass_op](value, limit) for value in scores.values]

    def _mean(self, values: list[float], clusters: Sequence[str]) -> float | None:
        if self.on == "mean":
            return sum(values) / len(values)
        scale = 100.0 if self.aggregation == "accuracy" else 1.0
        estimate = mean_interval([value / scale for value in values], clusters)
        return None if estimate is None or estimate.low is None else estimate.low * scale

    def holds(self, found: float) -> bool:
        """Return whether an aggregate is on the passing side."""
        return _COMPARE[self.op](found, self.value)

    @property
    def condition(self) -> Condition:
        """The condition as data."""
        return Condition(aggregation=self.aggregation, op=self.op, value=self.value, lower=self.on == "lower")

    def decide(
        self, graders: Mapping[str, float], measure: Callable[[float | None], float | None], errors: int
    ) -> GateResult:
        """Return the verdict on `measure(None)`, the scores as they are, and on missing scores as 0 and as 1."""
        found = measure(None)

        def result(verdict: Verdict, code: Code = "threshold") -> GateResult:
            reason = Reason(
                verdict=verdict, code=code, graders=dict(graders), condition=self.condition, found=found, errors=errors
            )
            return GateResult(verdict, (reason,))

        if found is None:
            return result("inconclusive", "no_interval")
        passed = self.holds(found)
        ends = [end for missing in (0.0, 1.0) if (end := measure(missing)) is not None]
        if all(self.holds(end) == passed for end in ends):
            return result("pass" if passed else "fail")
        return result("inconclusive")


@dataclass(frozen=True, slots=True)
class SimpleGate:
    """One condition on one grader; `min_scored` is the share of samples, 0 to 1, that must have a score."""

    metric_key: str
    threshold: Threshold
    min_scored: float = 0.0

    def decide(self, scores: Mapping[str, Scores]) -> GateResult:
        """Return the verdict."""
        found = scores[self.metric_key]
        if unmet := _too_few(self.metric_key, found, self.min_scored):
            return unmet

        def measure(missing: float | None) -> float | None:
            return self.threshold.aggregate(found if missing is None else found.filled(missing))

        return self.threshold.decide({self.metric_key: 1.0}, measure, found.errors)


@dataclass(frozen=True, slots=True)
class WeightedGate:
    """One condition on the weighted mean of several graders' aggregates; weights are normalised."""

    weights: Mapping[str, float]
    threshold: Threshold
    min_scored: float = 0.0

    def decide(self, scores: Mapping[str, Scores]) -> GateResult:
        """Return the verdict."""
        for key in self.weights:
            if unmet := _too_few(key, scores[key], self.min_scored):
                return unmet
        errors = sum(scores[key].errors for key in self.weights)
        return self.threshold.decide(self.weights, lambda missing: self._mean(scores, missing), errors)

    def _mean(self, scores: Mapping[str, Scores], missing: float | None) -> float | None:
        parts: list[float] = []
        for key, weight in self.weights.items():
            found = scores[key] if missing is None else scores[key].filled(missing)
            aggregate = self.threshold.aggregate(found)
            if aggregate is None:
                return None
            parts.append(weight * aggregate)
        return sum(parts) / sum(self.weights.values())


@dataclass(frozen=True, slots=True)
class LogicalGate:
    """Conditions joined by `and` or `or`; an inconclusive one counts unless the others decide."""

    operator: Literal["and", "or"]
    conditions: Sequence[Gate]

    def decide(self, scores: Mapping[str, Scores]) -> GateResult:
        """Return the verdict."""
        results = [condition.decide(scores) for condition in self.conditions]
        verdicts = {result.verdict for result in results}
        deciding: Verdict = "fail" if self.operator == "and" else "pass"
        other: Verdict = "pass" if self.operator == "and" else "fail"
        verdict = deciding if deciding in verdicts else "inconclusive" if "inconclusive" in verdicts else other
        return GateResult(verdict, tuple(reason for result in results for reason in result.reasons))


@dataclass(frozen=True, slots=True)
class EveryPass:
    """The gate of a suite that has none: every score of these graders passes, wherever they apply."""

    metric_keys: Sequence[str]

    def decide(self, scores: Mapping[str, Scores]) -> GateResult:
        """Return the verdict; it passes where no grader applies."""
        applied = [key for key in self.metric_keys if scores[key].values or scores[key].errors]
        if not applied:
            return GateResult("pass", ())
        return LogicalGate("and", [SimpleGate(key, Threshold("accuracy", "gte", 100.0)) for key in applied]).decide(
            scores
        )


Gate = SimpleGate | WeightedGate | LogicalGate | EveryPass


def _too_few(key: str, scores: Scores, min_scored: float) -> GateResult | None:
    scored, expected = len(scores.values), len(scores.values) + scores.errors
    if scored and scored >= min_scored * expected:
        return None
    reason = Reason(
        verdict="inconclusive",
        code="min_scored" if scored else "nothing_scored",
        graders={key: 1.0},
        errors=scores.errors,
        scored=scored,
        min_scored=min_scored,
    )
    return GateResult("inconclusive", (reason,))
