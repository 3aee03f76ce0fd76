"""Gates: whether a run passes, from the scores of its samples.

A score that is missing because of an error has no value. Instead, the gate is decided twice, once with every missing
score as 0 and once as 1: if both agree, that is the verdict; if they differ, it is `inconclusive`. Skipped samples do
not count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from vivavoce.grading.error_limit import ErrorLimit
from vivavoce.grading.population import Population
from vivavoce.grading.scores import Scores
from vivavoce.plugins import lazy
from vivavoce.records.calibration import CalibrationNeed
from vivavoce.records.reason import Aggregation, Code, Condition, Operator, RateBound, Reason, SampleTrials, Verdict
from vivavoce.records.score import PASSING
from vivavoce.stats.intervals import mean_interval, percentile
from vivavoce.stats.passes import pass_at_k, pass_hat_k

LISTED = 20
"""Samples that a reason names at most."""

_COMPARE: dict[Operator, Callable[[float, float], bool]] = {
    "gt": lambda a, b: a > b,
    "gte": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
}


@dataclass(frozen=True, slots=True)
class GateResult:
    """A verdict, and the reason of each condition."""

    verdict: Verdict
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Threshold:
    """What every simple condition compares: an aggregate of scores, by an operator, with a value.

    `accuracy` counts the scores that pass, or with the gate's own `pass_threshold` or `pass_op`, the scores on that
    side of it. `pass^k` and `pass@k` are means over the samples, from `k` of the trials of each.
    """

    aggregation: Aggregation
    op: Operator
    value: float
    pass_threshold: float | None = None
    pass_op: Operator = "gte"
    on: RateBound = "mean"
    k: int | None = None

    def aggregate(self, scores: Scores) -> float | None:
        """Return the aggregate; `accuracy` is a percentage, 0 to 100.

        With `on: lower` it is the lower end of the 95% interval of the mean, of the accuracy or of pass^k. `pass^k`
        is over the samples with `k` scores, None where there is none.
        With `on: corrected` and `on: corrected_lower` it is the accuracy without the errors of the judge, or the lower
        end of its interval, None where it cannot be known.
        """
        if self.corrects:
            rate = scores.corrected()
            found = None if rate is None else rate.low if self.on == "corrected_lower" else rate.value
            return None if found is None else 100 * found
        if self.k is not None:
            return self._over_trials(scores, self.k)
        values = list(scores.values)
        if self.aggregation == "accuracy":
            values = [100.0 * one for one in self.passing(scores)]
        if self.aggregation in ("avg_score", "accuracy"):
            return self._mean(values, scores.clusters, scores.population)
        if self.aggregation in ("min", "max"):
            return min(values) if self.aggregation == "min" else max(values)
        return percentile(values, {"median": 50, "p50": 50, "p95": 95, "p99": 99}[self.aggregation])

    @property
    def corrects(self) -> bool:
        """Whether it is about the rate without the errors of the judge."""
        return self.on in ("corrected", "corrected_lower")

    def _over_trials(self, scores: Scores, k: int) -> float | None:
        chance = pass_hat_k if self.aggregation == "pass^k" else pass_at_k
        samples = [one for one in scores.by_sample() if one.scored >= k]
        if not samples:
            return None
        return self._mean([chance(one.passed, one.scored, k) for one in samples], [one.sample_id for one in samples])

    def passing(self, scores: Scores) -> Sequence[bool]:
        """Return for each score whether it is on the side that `accuracy` counts."""
        threshold = self.pass_threshold
        if threshold is None and self.pass_op == "gte":
            return scores.passed
        limit = PASSING if threshold is None else threshold
        return [_COMPARE[self.pass_op](value, limit) for value in scores.values]

    def _mean(self, values: list[float], clusters: Sequence[str], population: Population | None = None) -> float | None:
        scale = 100.0 if self.aggregation == "accuracy" else 1.0
        if population is not None:
            estimate = population.mean([value / scale for value in values])
        elif self.on == "mean":
            return sum(values) / len(values)
        else:
            estimate = mean_interval([value / scale for value in values], clusters)
        if self.on == "mean":
            return estimate and estimate.mean * scale
        return None if estimate is None or estimate.low is None else estimate.low * scale

    def holds(self, found: float) -> bool:
        """Return whether an aggregate is on the passing side."""
        return _COMPARE[self.op](found, self.value)

    @property
    def condition(self) -> Condition:
        """The condition as data."""
        return Condition(
            aggregation=self.aggregation,
            op=self.op,
            value=self.value,
            lower=self.on in ("lower", "corrected_lower"),
            corrected=self.corrects,
            k=self.k,
        )

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

        ends = [end for missing in (0.0, 1.0) if (end := measure(missing)) is not None]
        if found is None and (self.k is None or not ends):
            return result("inconclusive", "no_interval")
        verdicts = {self.holds(one) for one in (found, *ends) if one is not None}
        unknown_end = self.k is None and len(ends) < 2
        if len(verdicts) == 1 and not unknown_end:
            return result("pass" if verdicts.pop() else "fail")
        return result("inconclusive")


@dataclass(frozen=True, slots=True)
class SimpleGate:
    """One condition on one grader; `min_scored` is the share of samples, 0 to 1, that must have a score.

    `needs` is the calibration without which its judge decides nothing. With a `level` it decides while trials are still
    made: once an interval of that level that holds at any time is on one side of the value; it is inconclusive before.
    Of the trials the tester may have spoiled as many as `spoilable` says, which then do not count.
    """

    metric_key: str
    threshold: Threshold
    min_scored: float = 0.0
    needs: CalibrationNeed | None = None
    level: float | None = None
    spoilable: ErrorLimit | None = None

    def decide(self, scores: Mapping[str, Scores]) -> GateResult:
        """Return the verdict."""
        if unmet := _too_spoiled(self.metric_key, scores[self.metric_key], self.spoilable):
            return unmet
        found = _counted(scores[self.metric_key], self.spoilable)
        return _telling(self._decide(found), found)

    def _decide(self, found: Scores) -> GateResult:
        unmet = _too_few(self.metric_key, found, self.min_scored)
        unmet = unmet or _too_short(self.metric_key, found, self.threshold.k or 1) or self._uncalibrated(found)
        if unmet:
            return unmet
        if self.level is not None:
            return self._at_any_time(found, self.level)

        def measure(missing: float | None) -> float | None:
            return self.threshold.aggregate(found if missing is None else found.filled(missing))

        return self.threshold.decide({self.metric_key: 1.0}, measure, found.errors)

    def interval(self, scores: Scores, level: float) -> tuple[float, float]:
        """Return the interval of its aggregate that holds at any time, as fractions of 1."""
        rate = self.threshold.aggregation == "accuracy"
        values = [float(one) for one in self.threshold.passing(scores)] if rate else scores.values
        return at_any_time(scores, values, level)

    def _at_any_time(self, scores: Scores, level: float) -> GateResult:
        """Return the verdict once the interval is on one side of the value, and the mean on the same."""
        threshold = self.threshold
        found, (low, high) = threshold.aggregate(scores), self.interval(scores, level)
        value = threshold.value / 100 if threshold.aggregation == "accuracy" else threshold.value
        apart = low > value or high < value
        holds = found is not None and threshold.holds(found)
        decided = apart and holds == ((low > value) == (threshold.op in ("gt", "gte")))
        verdict: Verdict = "inconclusive" if not decided else "pass" if holds else "fail"
        reason = Reason(
            verdict=verdict,
            code="threshold" if decided else "undecided",
            graders={self.metric_key: 1.0},
            condition=threshold.condition,
            found=found,
            low=low,
            high=high,
            errors=scores.errors,
        )
        return GateResult(verdict, (reason,))

    def _uncalibrated(self, scores: Scores) -> GateResult | None:
        """Return that the judge cannot decide for want of a calibration, None where it can."""
        if self.needs is None and not self.threshold.corrects:
            return None
        command = f"viva calibrate RUN --grader {self.metric_key}"
        why = f"its judge is not calibrated; calibrate it with: {command}" if scores.correction is None else None
        if scores.correction is not None and self.needs is not None:
            why = scores.correction.unmet(self.needs)
        if why is None and self.threshold.corrects and (rate := scores.corrected()) is not None:
            why = None if rate.why is None else f"its rate cannot be corrected: {rate.why}"
        if why is None:
            return None
        reason = Reason(verdict="inconclusive", code="calibration", graders={self.metric_key: 1.0}, text=why)
        return GateResult("inconclusive", (reason,))


@dataclass(frozen=True, slots=True)
class SamplesGate:
    """Each sample passes by one grader in at least `min_pass` of its trials; `min_scored` is as in `SimpleGate`.

    An error counts where it could change the verdict, even one that a limit on errors allows: a sample that misses it
    even if every error had passed, fails, and one that could have missed it is not known to hold. Where `most` is how
    many trials a sample may have, one that misses it even if every trial to come passes has missed it already.
    """

    metric_key: str
    min_pass: int
    min_scored: float = 0.0
    most: int | None = None

    def decide(self, scores: Mapping[str, Scores]) -> GateResult:
        """Return the verdict, and in its reason the samples that missed it, else those that could not be decided."""
        return _telling(self._decide(scores[self.metric_key]), scores[self.metric_key])

    def _decide(self, found: Scores) -> GateResult:
        if unmet := _too_few(self.metric_key, found, self.min_scored):
            return unmet
        found = replace(found, missing=(*found.missing, *found.allowed), allowed=())
        samples = found.by_sample()
        missed = [one for one in samples if self._missed(one)]
        open_to_more = self.undecided(found) if self.most is not None else ()
        unknown = [one for one in samples if one.passed < self.min_pass <= one.passed + one.errors]
        unknown = [one for one in samples if one.sample_id in open_to_more] or unknown
        if not missed and (unmet := self._too_short(found)):
            return unmet
        verdict: Verdict = "fail" if missed else "inconclusive" if unknown else "pass"
        return GateResult(verdict, (self._reason(verdict, missed or unknown, len(samples), found.errors),))

    def undecided(self, scores: Scores) -> set[str]:
        """Return the samples of which another trial could say whether they pass often enough."""
        found = replace(scores, missing=(*scores.missing, *scores.allowed), allowed=())
        return {one.sample_id for one in found.by_sample() if one.passed < self.min_pass and not self._missed(one)}

    def _missed(self, one: SampleTrials) -> bool:
        tried = one.scored + one.errors
        if self.most is None:
            return one.passed + one.errors < self.min_pass <= tried
        return one.passed + one.errors + max(0, self.most - tried) < self.min_pass

    def _too_short(self, scores: Scores) -> GateResult | None:
        """Return that a sample has fewer trials than are needed; one that passes often enough needs no more."""
        passing = {one.sample_id for one in scores.by_sample() if one.passed >= self.min_pass}
        return _too_short(self.metric_key, scores, self.min_pass, passing)

    def _reason(self, verdict: Verdict, listed: Sequence[SampleTrials], scored: int, errors: int) -> Reason:
        return Reason(
            verdict=verdict,
            code="samples",
            graders={self.metric_key: 1.0},
            scored=scored,
            errors=errors,
            trials=self.min_pass,
            samples=list(listed[:LISTED]),
            samples_in_all=len(listed),
        )


@dataclass(frozen=True, slots=True)
class WeightedGate:
    """One condition on the weighted mean of several graders' aggregates; weights are normalised."""

    weights: Mapping[str, float]
    threshold: Threshold
    min_scored: float = 0.0
    spoilable: ErrorLimit | None = None

    def decide(self, scores: Mapping[str, Scores]) -> GateResult:
        """Return the verdict."""
        for key in self.weights:
            if unmet := _too_spoiled(key, scores[key], self.spoilable):
                return unmet
        counted = {key: _counted(scores[key], self.spoilable) for key in self.weights}
        return _telling(self._decide(counted), *counted.values())

    def _decide(self, scores: Mapping[str, Scores]) -> GateResult:
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


Gate = SimpleGate | SamplesGate | WeightedGate | LogicalGate | EveryPass


def at_any_time(scores: Scores, values: Sequence[float], level: float) -> tuple[float, float]:
    """Return the interval of the mean of values from 0 to 1, one for each score, that holds after any round."""
    missing = (*scores.missing, *scores.allowed)
    # numpy takes long to load, and most gates need none
    found = lazy("vivavoce.stats.sequential:limits_of")(scores.clusters, scores.trials, values, missing, level)
    return found.low, found.high


def _too_short(key: str, scores: Scores, trials: int, left_out: Collection[str] = ()) -> GateResult | None:
    """Return that some samples have fewer trials than a condition is about, None where none has."""
    if trials == 1:
        return None
    short = [one for one in scores.by_sample() if one.scored + one.errors < trials and one.sample_id not in left_out]
    if not short:
        return None
    reason = Reason(
        verdict="inconclusive",
        code="few_trials",
        graders={key: 1.0},
        errors=scores.errors,
        trials=trials,
        samples=short[:LISTED],
        samples_in_all=len(short),
    )
    return GateResult("inconclusive", (reason,))


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


def _counted(scores: Scores, spoilable: ErrorLimit | None) -> Scores:
    """Return the scores that a gate decides by: net of the tester where it says how much that may spoil."""
    return scores if spoilable is None else scores.net_of_tester()


def _too_spoiled(key: str, scores: Scores, spoilable: ErrorLimit | None) -> GateResult | None:
    """Return that the tester spoiled more trials than a gate allows, None where it did not."""
    trials = len(scores.values) + len(scores.missing) + len(scores.allowed)
    if spoilable is None or not spoilable.exceeded(len(scores.spoiled), trials):
        return None
    reason = Reason(
        verdict="inconclusive",
        code="spoiled",
        graders={key: 1.0},
        errors=len(scores.spoiled),
        scored=trials,
        limit=spoilable.text,
    )
    return GateResult("inconclusive", (reason,))


def _telling(result: GateResult, *scores: Scores) -> GateResult:
    """Return a result whose reasons say how many of their errors the tester made."""
    spoiled = sum(len(one.spoiled) for one in scores)
    if not spoiled:
        return result
    told = (one.model_copy(update={"tester_errors": min(spoiled, one.errors)}) for one in result.reasons)
    return GateResult(result.verdict, tuple(told))
