"""Gates: whether a run passes, from the scores of its samples.

A score that is missing because of an error has no value. Instead, the gate is decided for everything that the missing
scores could have been, from 0 to 1: if all of these agree, that is the verdict; if they differ, it is `inconclusive`.
Skipped samples do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from vivavoce.comparing.thresholds import Number, Operator, compare, exact, mean, percentile, round_toward_side, total
from vivavoce.grading.scores import ErrorLimit, Population, Possible, Scores
from vivavoce.plugins import lazy
from vivavoce.records.label import CalibrationNeed
from vivavoce.records.run import Aggregation, BreachKind, Code, Condition, RateBound, Reason, SampleTrials, Verdict
from vivavoce.records.score import PASSING
from vivavoce.stats.intervals import mean_interval, pass_at_k, pass_hat_k

_PERCENTILES: Mapping[Aggregation, int] = {"min": 0, "median": 50, "p50": 50, "p95": 95, "p99": 99, "max": 100}

LISTED = 20
"""Samples that a reason names at most."""


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

    def aggregate(self, scores: Scores) -> Fraction | None:
        """Return the exact aggregate; `accuracy` is a percentage, 0 to 100.

        With `on: lower` it is the lower end of the 95% interval of the mean, of the accuracy or of pass^k. `pass^k`
        is over the samples with `k` scores, None where there is none.
        With `on: corrected` and `on: corrected_lower` it is the accuracy without the errors of the judge, or the lower
        end of its interval, None where it cannot be known.
        """
        if self.corrects:
            rate = scores.corrected()
            bound = None if rate is None else rate.low if self.on == "corrected_lower" else rate.value
            return None if bound is None else 100 * exact(bound)
        if self.k is not None:
            return self._over_trials(scores, self.k)
        if self.aggregation == "accuracy":
            counted = self.passing(scores)
            if self.on == "mean" and scores.population is None:
                return Fraction(100 * sum(counted), len(counted)) if counted else None
            share = self._mean([*map(float, counted)], scores.clusters, scores.population)
            return None if share is None else 100 * share
        if self.aggregation == "avg_score":
            return self._mean(scores.values, scores.clusters, scores.population)
        return percentile(scores.values, _PERCENTILES[self.aggregation])

    def possible(self, scores: Scores, found: Fraction | None) -> Possible | None:
        """Return what the aggregate can come to, whatever the missing scores are; None where that is not known.

        `found` is the aggregate of the scores that exist. Single numbers are listed only where the operator asks for
        one.
        """
        if not scores.errors:
            return None if found is None else Possible.only(found)
        if self.on == "mean" and self.k is not None:
            return self._possible_trials(scores, self.k)
        if self.on == "mean" and self.aggregation == "accuracy":
            return self._possible_rate(scores)
        ends = [self.aggregate(scores.filled(missing)) for missing in (0.0, 1.0)]
        known = [end for end in ends if end is not None]
        if not known or (self.k is None and len(known) < len(ends)):
            return None
        return Possible(min(known), max(known))

    def _possible_rate(self, scores: Scores) -> Possible:
        """Return each accuracy that the missing scores leave open: each of them is counted or not."""
        counted = list(map(int, self.passing(scores)))
        filled = scores.filled(0.0)
        weights = [1] * len(filled.values) if filled.population is None else filled.population.weights()
        whole = total(weights)
        known = Possible.only(total(exact(w) * one for w, one in zip(weights[: len(counted)], counted, strict=True)))
        for weight, count in Counter(weights[len(counted) :]).items():
            steps = {exact(weight) * times for times in range(count + 1)}
            if self.pass_threshold is not None or self.pass_op != "gte":
                steps = self._open_steps(exact(weight), count)
            known = known.plus(self._among(steps))
        return known.times(100 / whole)

    def _among(self, values: Collection[Fraction]) -> Possible:
        return Possible.among(values) if self.op == "eq" else Possible(min(values), max(values))

    def _open_steps(self, weight: Fraction, count: int) -> set[Fraction]:
        """Return what some missing scores of a weight can add, where the gate itself says which scores count."""
        limit = PASSING if self.pass_threshold is None else self.pass_threshold
        sides = {compare(value, self.pass_op, limit) for value in (0.0, limit, 1.0)}
        fewest, most = 0 if False in sides else count, count if True in sides else 0
        return {weight * times for times in range(fewest, most + 1)}

    def _possible_trials(self, scores: Scores, k: int) -> Possible | None:
        """Return each mean over samples that the missing trials leave open: each of them passes or not."""
        chance = pass_hat_k if self.aggregation == "pass^k" else pass_at_k
        samples = [one for one in scores.by_sample() if one.scored + one.errors >= k]
        if not samples:
            return None
        known = Possible.only(Fraction(0))
        for sample in samples:
            trials = sample.scored + sample.errors
            open_to = {chance(sample.passed + more, trials, k) for more in range(sample.errors + 1)}
            known = known.plus(self._among(open_to))
        return known.times(Fraction(1, len(samples)))

    @property
    def corrects(self) -> bool:
        """Whether it is about the rate without the errors of the judge."""
        return self.on in ("corrected", "corrected_lower")

    def _over_trials(self, scores: Scores, k: int) -> Fraction | None:
        chance = pass_hat_k if self.aggregation == "pass^k" else pass_at_k
        samples = [one for one in scores.by_sample() if one.scored >= k]
        if not samples:
            return None
        return self._mean(
            [chance(sample.passed, sample.scored, k) for sample in samples], [sample.sample_id for sample in samples]
        )

    def passing(self, scores: Scores) -> Sequence[bool]:
        """Return for each score whether it is on the side that `accuracy` counts."""
        threshold = self.pass_threshold
        if threshold is None and self.pass_op == "gte":
            return scores.passed
        limit = PASSING if threshold is None else threshold
        return [compare(value, self.pass_op, limit) for value in scores.values]

    def _mean(
        self, values: Sequence[Number], clusters: Sequence[str], population: Population | None = None
    ) -> Fraction | None:
        if not values:
            return None
        if self.on == "mean":
            return mean(values, None if population is None else population.weights())
        floats = [float(value) for value in values]
        estimate = mean_interval(floats, clusters) if population is None else population.mean(floats)
        return None if estimate is None or estimate.low is None else exact(estimate.low)

    def holds(self, found: Number) -> bool:
        """Return whether an aggregate is on the passing side."""
        return compare(found, self.op, self.value)

    def stored(self, found: Fraction | None) -> float | None:
        """Return an aggregate as a float on the same side of the value."""
        return None if found is None else round_toward_side(found, self.value)

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
            pass_threshold=self.pass_threshold if self.aggregation == "accuracy" else None,
            pass_op=self.pass_op if self.aggregation == "accuracy" else "gte",
        )

    def decide(
        self, graders: Mapping[str, float], found: Fraction | None, possible: Possible | None, errors: int
    ) -> GateResult:
        """Return the verdict on `found`, the scores as they are, and on what is `possible` with the missing scores."""

        def result(verdict: Verdict, code: Code = "threshold") -> GateResult:
            reason = Reason(
                verdict=verdict,
                code=code,
                graders=dict(graders),
                condition=self.condition,
                found=self.stored(found),
                errors=errors,
            )
            return GateResult(verdict, (reason,))

        if found is None and (self.k is None or possible is None):
            return result("inconclusive", "no_interval")
        verdicts = set[bool]() if possible is None else possible.verdicts(self.op, self.value)
        if len(verdicts) != 1:
            return result("inconclusive")
        return result("pass" if True in verdicts else "fail")


@dataclass(frozen=True, slots=True)
class SimpleGate:
    """One condition on one grader; `min_scored` is the share of samples, 0 to 1, that must have a score.

    `needs` is the calibration without which its judge decides nothing. With a `level` it decides while trials are still
    made: once an interval of that level that holds at any time is on one side of the value; it is inconclusive before.
    Of the trials the tester may have spoiled as many as `spoilable` says, which then do not count. With `errors_fail`
    every error counts as a score of 0 that does not pass. It fails if more than `max_unverified` scores rest on
    evidence that is missing or not in the conversation, or if the judge of a goal found more breaches of a kind besides
    it than `max_findings` allows.
    """

    metric_key: str
    threshold: Threshold
    min_scored: float = 0.0
    needs: CalibrationNeed | None = None
    level: float | None = None
    spoilable: ErrorLimit | None = None
    errors_fail: bool = False
    max_unverified: int | None = None
    max_findings: Mapping[BreachKind, int] = field(default_factory=dict[BreachKind, int])

    def decide(self, scores: Mapping[str, Scores]) -> GateResult:
        """Return the verdict."""
        return _with_unverified(self._on_scores(scores), {self.metric_key: 1.0}, scores, self.max_unverified)

    def _on_scores(self, scores: Mapping[str, Scores]) -> GateResult:
        if unmet := _too_spoiled(self.metric_key, scores[self.metric_key], self.spoilable):
            return unmet
        found = _counted(scores[self.metric_key], self.spoilable)
        if unmet := _too_few(self.metric_key, found, self.min_scored, errors_fail=self.errors_fail):
            return _with_tester_errors(unmet, found)
        if self.errors_fail:
            result = _with_failed_errors(self._decide(found.with_errors_failed()), found)
        else:
            result = _with_tester_errors(self._decide(found), found)
        unmet = list(self._too_many_breaches(found))
        if not unmet:
            return result
        verdicts = {result.verdict, *(reason.verdict for reason in unmet)}
        return GateResult("fail" if "fail" in verdicts else "inconclusive", (*result.reasons, *unmet))

    def _too_many_breaches(self, scores: Scores) -> Iterator[Reason]:
        """Yield a reason for each kind of breach with more than the gate allows, or that errors leave open."""
        for kind, limit in self.max_findings.items():
            samples = Counter(scores.breaches.get(kind, ()))
            number = samples.total()
            is_open = scores.errors and not self.errors_fail
            if number <= limit and not is_open:
                continue
            yield Reason(
                verdict="fail" if number > limit else "inconclusive",
                code="breaches",
                graders={self.metric_key: 1.0},
                text=kind,
                missed=number,
                limit=str(limit),
                errors=scores.errors,
                tester_errors=min(len(scores.spoiled), scores.errors),
                scored=len(scores.values),
                samples=[SampleTrials(sample_id=sample, passed=0, scored=1) for sample in list(samples)[:LISTED]],
                samples_in_all=len(samples),
            )

    def _decide(self, found: Scores) -> GateResult:
        unmet = _too_short(self.metric_key, found, self.threshold.k or 1) or self._uncalibrated(found)
        if unmet:
            return unmet
        if self.level is not None:
            return self._at_any_time(found, self.level)

        aggregate = self.threshold.aggregate(found)
        possible = self.threshold.possible(found, aggregate)
        return self.threshold.decide({self.metric_key: 1.0}, aggregate, possible, found.errors)

    def interval(self, scores: Scores, level: float) -> tuple[float, float]:
        """Return the interval of its aggregate that holds at any time, as fractions of 1."""
        rate = self.threshold.aggregation == "accuracy"
        values = [float(one) for one in self.threshold.passing(scores)] if rate else scores.values
        return at_any_time(scores, values, level)

    def _at_any_time(self, scores: Scores, level: float) -> GateResult:
        """Return the verdict once the interval is on one side of the value, and the mean on the same."""
        threshold = self.threshold
        found, (low, high) = threshold.aggregate(scores), self.interval(scores, level)
        value = exact(threshold.value) / (100 if threshold.aggregation == "accuracy" else 1)
        above, below = compare(low, "gt", value), compare(high, "lt", value)
        holds = found is not None and threshold.holds(found)
        decided = (above or below) and holds == (above == (threshold.op in ("gt", "gte")))
        verdict: Verdict = "inconclusive" if not decided else "pass" if holds else "fail"
        reason = Reason(
            verdict=verdict,
            code="threshold" if decided else "undecided",
            graders={self.metric_key: 1.0},
            condition=threshold.condition,
            found=threshold.stored(found),
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
    """Each sample passes by one grader in at least `min_pass` of its trials.

    `min_scored` and `max_unverified` are as in `SimpleGate`.

    An error counts where it could change the verdict, even one that a limit on errors allows: a sample that misses it
    even if every error had passed, fails, and one that could have missed it is not known to hold. Where `most` is how
    many trials a sample may have, one that misses it even if every trial to come passes has missed it already.
    """

    metric_key: str
    min_pass: int
    min_scored: float = 0.0
    most: int | None = None
    errors_fail: bool = False
    max_unverified: int | None = None

    def decide(self, scores: Mapping[str, Scores]) -> GateResult:
        """Return the verdict, and in its reason the samples that missed it, else those that could not be decided."""
        return _with_unverified(self._on_scores(scores), {self.metric_key: 1.0}, scores, self.max_unverified)

    def _on_scores(self, scores: Mapping[str, Scores]) -> GateResult:
        found = scores[self.metric_key]
        if unmet := _too_few(self.metric_key, found, self.min_scored, errors_fail=self.errors_fail):
            return _with_tester_errors(unmet, found)
        if self.errors_fail:
            return _with_failed_errors(self._decide(found.with_errors_failed()), found)
        return _with_tester_errors(self._decide(found), found)

    def _decide(self, found: Scores) -> GateResult:
        found = replace(found, missing=(*found.missing, *found.allowed), allowed=())
        samples = found.by_sample()
        missed = [sample for sample in samples if self._missed(sample)]
        open_to_more = self.undecided(found) if self.most is not None else ()
        unknown = [sample for sample in samples if sample.passed < self.min_pass <= sample.passed + sample.errors]
        unknown = [sample for sample in samples if sample.sample_id in open_to_more] or unknown
        if not missed and (unmet := self._too_short(found)):
            return unmet
        verdict: Verdict = "fail" if missed else "inconclusive" if unknown else "pass"
        return GateResult(verdict, (self._reason(verdict, missed or unknown, len(samples), found.errors),))

    def undecided(self, scores: Scores) -> set[str]:
        """Return the samples of which another trial could say whether they pass often enough."""
        found = replace(scores, missing=(*scores.missing, *scores.allowed), allowed=())
        if self.errors_fail:
            found = found.with_errors_failed()
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
    """One condition on the weighted mean of several graders' aggregates; weights are normalised.

    `max_unverified` is about the scores of all these graders together.
    """

    weights: Mapping[str, float]
    threshold: Threshold
    min_scored: float = 0.0
    spoilable: ErrorLimit | None = None
    errors_fail: bool = False
    max_unverified: int | None = None

    def decide(self, scores: Mapping[str, Scores]) -> GateResult:
        """Return the verdict."""
        return _with_unverified(self._on_scores(scores), self.weights, scores, self.max_unverified)

    def _on_scores(self, scores: Mapping[str, Scores]) -> GateResult:
        for key in self.weights:
            if unmet := _too_spoiled(key, scores[key], self.spoilable):
                return unmet
        counted = {key: _counted(scores[key], self.spoilable) for key in self.weights}
        for key, found in counted.items():
            if unmet := _too_few(key, found, self.min_scored, errors_fail=self.errors_fail):
                return _with_tester_errors(unmet, *counted.values())
        if self.errors_fail:
            failing = {key: found.with_errors_failed() for key, found in counted.items()}
            return _with_failed_errors(self._decide(failing), *counted.values())
        return _with_tester_errors(self._decide(counted), *counted.values())

    def _decide(self, scores: Mapping[str, Scores]) -> GateResult:
        errors = sum(scores[key].errors for key in self.weights)
        parts = [self.threshold.aggregate(scores[key]) for key in self.weights]
        known = [part for part in parts if part is not None]
        found = mean(known, [*self.weights.values()]) if len(known) == len(parts) else None
        possible = self._possible(scores, parts) if errors or found is None else Possible.only(found)
        return self.threshold.decide(self.weights, found, possible, errors)

    def _possible(self, scores: Mapping[str, Scores], parts: Sequence[Fraction | None]) -> Possible | None:
        whole, weighted = total(self.weights.values()), Possible.only(Fraction(0))
        for (key, weight), known in zip(self.weights.items(), parts, strict=True):
            part = self.threshold.possible(scores[key], known)
            if part is None:
                return None
            weighted = weighted.plus(part.times(exact(weight) / whole))
        return weighted


@dataclass(frozen=True, slots=True)
class LogicalGate:
    """Conditions joined by `and` or `or`; an inconclusive one counts unless the others decide.

    `max_unverified` is about the scores of all graders that its conditions name, each once.
    """

    operator: Literal["and", "or"]
    conditions: Sequence[Gate]
    max_unverified: int | None = None

    def decide(self, scores: Mapping[str, Scores]) -> GateResult:
        """Return the verdict."""
        results = [condition.decide(scores) for condition in self.conditions]
        verdicts = {result.verdict for result in results}
        deciding: Verdict = "fail" if self.operator == "and" else "pass"
        other: Verdict = "pass" if self.operator == "and" else "fail"
        verdict = deciding if deciding in verdicts else "inconclusive" if "inconclusive" in verdicts else other
        result = GateResult(verdict, tuple(reason for result in results for reason in result.reasons))
        return _with_unverified(result, dict.fromkeys(graders_of(self), 1.0), scores, self.max_unverified)


Gate = SimpleGate | SamplesGate | WeightedGate | LogicalGate


def graders_of(gate: Gate) -> Iterator[str]:
    """Yield the graders that a gate decides on, in its order; one that several conditions name comes several times."""
    if isinstance(gate, LogicalGate):
        for condition in gate.conditions:
            yield from graders_of(condition)
    elif isinstance(gate, WeightedGate):
        yield from gate.weights
    else:
        yield gate.metric_key


def graders_with_failing_errors(gate: Gate | None) -> frozenset[str]:
    """Return the graders whose errors a gate counts as failures."""
    if isinstance(gate, LogicalGate):
        return frozenset(name for part in gate.conditions for name in graders_with_failing_errors(part))
    if gate is None or not gate.errors_fail:
        return frozenset()
    return frozenset(graders_of(gate))


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


def _too_few(key: str, scores: Scores, min_scored: float, *, errors_fail: bool) -> GateResult | None:
    """Return that fewer scores exist than a gate demands, None where there are enough; failed errors need no score."""
    scored = len(scores.values)
    expected = scored + scores.errors + len(scores.allowed)
    counted = scored or (errors_fail and expected)
    if counted and (not min_scored or compare(scored, "gte", exact(min_scored) * expected)):
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


def _with_unverified(
    result: GateResult, graders: Mapping[str, float], scores: Mapping[str, Scores], limit: int | None
) -> GateResult:
    """Return a result that fails if more scores of some graders rest on unverified evidence than the limit allows."""
    count = sum(scores[name].unverified for name in graders)
    if limit is None or count <= limit:
        return result
    scored = sum(len(scores[name].values) for name in graders)
    of = {"graders": dict(graders), "errors": count, "scored": scored, "limit": str(limit)}
    reason = Reason.model_validate({"verdict": "fail", "code": "unverified", **of})
    return GateResult("fail", (*result.reasons, reason))


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


def _with_tester_errors(result: GateResult, *scores: Scores) -> GateResult:
    """Return a result whose reasons say how many of their errors the tester made."""
    spoiled = sum(len(score.spoiled) for score in scores)
    if not spoiled:
        return result
    reasons = (reason.model_copy(update={"tester_errors": min(spoiled, reason.errors)}) for reason in result.reasons)
    return GateResult(result.verdict, tuple(reasons))


def _with_failed_errors(result: GateResult, *scores: Scores) -> GateResult:
    """Return a result whose reasons say how many errors the gate counted as failures."""
    errors = sum(len(score.missing) + len(score.allowed) for score in scores)
    if not errors:
        return result
    update = {"errors": errors, "errors_fail": True}
    reasons = [reason.model_copy(update=update) for reason in result.reasons]
    return _with_tester_errors(GateResult(result.verdict, tuple(reasons)), *scores)
