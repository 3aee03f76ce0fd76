"""Metrics made of metrics: chain, all of, any of, weighted, and a cascade of a cheap and an expensive one.

A part that is skipped is left out; where all are, so is the whole. A part that is an error makes the whole an error
unless the others decide alone: one that fails decides `AllOf` and `Chain`, one that passes decides `AnyOf`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from vivavoce.comparing.thresholds import mean, reaches
from vivavoce.errors import Fault, UsageError
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evaluation import Named, choose, spent
from vivavoce.metrics.metric import BaseMultiTurnMetric, StepwiseMetric
from vivavoce.metrics.question import Plan, Together
from vivavoce.metrics.result import About, MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.models.custom import ModelLike
from vivavoce.models.model import identity_of
from vivavoce.records.score import UNSUPPORTED, Finding, FindingState, Score


class Composition(StepwiseMetric):
    """A metric made of others, its `parts`; the result of each is a finding, and in full in `extra`."""

    def __init__(self, config: MetricConfig, parts: Sequence[BaseMultiTurnMetric]) -> None:
        super().__init__(config.model_copy(update={"class_name": config.class_name or type(self).__name__}))
        if not parts:
            raise UsageError(f"{self.name} combines other metrics; give at least one")
        self.inner_metrics = tuple(parts)
        self.judged = any(part.judged for part in parts)

    @property
    def parts(self) -> tuple[BaseMultiTurnMetric, ...]:
        """The metrics that it is made of."""
        return self.inner_metrics

    def together(self, reading: Reading) -> Plan[Sequence[MetricResult]]:
        """Measure by all parts at once; return their results."""
        return (yield Together([part.plan_for(reading) for part in self.parts]))

    def planned_calls(self, reading: Reading) -> int:
        """Return how many calls the parts make at most for a conversation."""
        return sum(part.planned_calls(reading) for part in self.parts)

    async def close(self) -> None:
        """Close the connections of all parts."""
        for part in self.parts:
            await part.close()

    @property
    def parameters(self) -> Mapping[str, object]:
        """What decides the scores besides the parts and the configuration."""
        return {}

    @property
    def fingerprint(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A hash of everything that decides the scores: those of the parts, and how they are put together."""
        parts = [fingerprint_of(part) for part in self.parts]
        decided = [type(self).__name__, self.config.model_dump(mode="json"), self.parameters, parts]
        return _hashed(decided)

    def listed(self, results: Sequence[MetricResult]) -> dict[str, Any]:
        """Return the results of the parts as plain data."""
        return {"parts": [plain(result) for result in results]}

    def scored(
        self,
        metric_input: MultiTurnEvaluationInput,
        score: bool | float | str,
        reasoning: str,
        results: Sequence[MetricResult],
        rests_on: Sequence[MetricResult],
        passed: bool | None = None,
        **more: Any,
    ) -> MetricResult:
        """Return a score; `rests_on` are the results that decided it, `more` are details."""
        value, passed = self.config.scored(score, passed)
        claims = dict.fromkeys(claim for result in rests_on for claim in result.extra.get(UNSUPPORTED, ()))
        unsupported = {UNSUPPORTED: list(claims)} if claims else {}
        sure = [result.confidence for result in rests_on if result.confidence is not None]
        return MetricResult.model_construct(
            name=self.name,
            state="scored",
            value=value,
            raw=score,
            passed=passed,
            confidence=min(sure) if sure else None,
            reason=reasoning,
            findings=tuple(map(part_finding, results)),
            other_evidence=tuple(dict.fromkeys(evidence for result in rests_on for evidence in result.evidence)),
            extra={**self.listed(results), **more, **unsupported},
            usage=spent(results),
            fingerprint=self.fingerprint,
            about=About(self.config.score_type, len(metric_input.messages)),
        )

    def unscored(self, results: Sequence[MetricResult], wrong: Sequence[MetricResult], **more: Any) -> MetricResult:
        """Return the error that `wrong` parts make of the whole; where there are none, say that all were skipped."""
        extra = {**self.listed(results), **more}
        fields: dict[str, Any] = {"usage": spent(results), "fingerprint": self.fingerprint, "extra": extra}
        fields["findings"] = tuple(map(part_finding, results))
        if wrong:
            return self.failed(_fault(wrong), **fields)
        skipped = [result for result in results if result.state == "skipped"]
        reason = "; ".join(dict.fromkeys(f"{result.name} was skipped: {result.reason}" for result in skipped))
        return self.skipped(reason, **fields)


class AllOf(Composition):
    """Passes if every part does; a failing one decides, even if another has an error."""

    word: ClassVar[str] = "all_of"
    decisive: ClassVar[bool] = False
    """The verdict of one part that decides for all."""

    def __init__(self, *metrics: Named, name: str | None = None, model: ModelLike | None = None) -> None:
        config = MetricConfig(name=name or self.word, description=type(self).__doc__ or "", score_type="binary")
        super().__init__(config, choose(metrics, model))

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Run all parts concurrently."""
        return self._concluded(reading.metric_input, (yield from self.together(reading)))

    def _concluded(self, metric_input: MultiTurnEvaluationInput, results: Sequence[MetricResult]) -> MetricResult:
        applicable = [result for result in results if result.state != "skipped"]
        deciding = [result for result in applicable if result.passed is self.decisive]
        unknown = [result for result in applicable if result.passed is None]
        if not deciding and (unknown or not applicable):
            return self.unscored(results, unknown)
        score = self.decisive if deciding else not self.decisive
        return self.scored(metric_input, score, _summary(results), results, deciding or applicable)


class AnyOf(AllOf):
    """Passes if at least one part does; a passing one decides, even if another has an error."""

    word: ClassVar[str] = "any_of"
    decisive: ClassVar[bool] = True


class Chain(AllOf):
    """Passes if every part does; runs the parts in order and stops at the first that does not pass."""

    word: ClassVar[str] = "chain"

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Run one part after the other."""
        results: list[MetricResult] = []
        stopped = ""
        for part in self.parts:
            if stopped:
                results.append(part.skipped(f"not asked, for {stopped} did not pass"))
                continue
            result = yield from part.plan_for(reading)
            results.append(result)
            if result.state != "skipped" and not result.passed:
                stopped = part.name
        return self._concluded(reading.metric_input, results)


class Weighted(Composition):
    """The weighted mean of the parts, each from 0, worst, to 1, best; needs all that are not skipped."""

    def __init__(
        self,
        weights: Mapping[Named, float],
        *,
        threshold: float | None = None,
        name: str = "weighted",
        model: ModelLike | None = None,
    ) -> None:
        config = MetricConfig(name=name, description=type(self).__doc__ or "", threshold=threshold)
        super().__init__(config, choose(list(weights), model))
        self.weights = dict(zip([part.name for part in self.parts], weights.values(), strict=True))
        for part, weight in self.weights.items():
            if not (weight > 0 and math.isfinite(weight)):
                raise UsageError(f"{name}: a weight must be a number above 0; {part} has {weight}")

    @property
    def parameters(self) -> Mapping[str, object]:
        """The weights."""
        return {"weights": list(self.weights.values())}

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Run all parts concurrently."""
        results = yield from self.together(reading)
        measured = list(zip(self.parts, results, strict=True))
        applicable = [(part, result) for part, result in measured if result.state != "skipped"]
        values = {part.name: value for part, result in applicable if (value := result.value) is not None}
        missing = [result for part, result in applicable if part.name not in values]
        if missing or not values:
            return self.unscored(results, missing, weights=self.weights)
        score = float(mean([*values.values()], [self.weights[name] for name in values]))
        counted = [result for _, result in applicable]
        return self.scored(reading.metric_input, score, _summary(results), results, counted, weights=self.weights)


def fingerprint_of(metric: BaseMultiTurnMetric) -> str:
    """Return the fingerprint of a metric, or for a user-defined one without one, a hash of its configuration."""
    fingerprint: object = getattr(metric, "fingerprint", None)
    kind = type(metric)
    parts = [
        kind.__module__,
        kind.__qualname__,
        metric.config.model_dump(mode="json"),
        metric.model and identity_of(metric.model),
    ]
    return fingerprint if isinstance(fingerprint, str) else _hashed(parts)


def plain(result: MetricResult, **more: object) -> dict[str, Any]:
    """Return a result as plain data, in which a part says under a name of its own which claims are unsupported."""
    data = result.model_dump(mode="json", exclude_defaults=True)
    if claims := data.get("extra", {}).pop(UNSUPPORTED, None):
        data["extra"]["unsupported_claims"] = claims
    return {**data, "state": result.state, **more}


def part_finding(result: MetricResult) -> Finding:
    """Return the result of a part as a finding of the whole."""
    states: dict[bool | None, FindingState] = {True: "pass", False: "fail", None: "skip"}
    verdict = str(result.raw) if result.state == "scored" else result.state
    what = f"{result.name}: {result.reason}" if result.reason else result.name
    return Finding(kind="metric", what=what, verdict=verdict, state=states[result.passed])


def _fault(wrong: Sequence[MetricResult]) -> Fault:
    """Return the error of the whole, for parts that are errors or have no usable score."""
    message = "; ".join(
        f"{result.name}: {result.error.message if result.error else _useless(result)}" for result in wrong
    )
    first = next((result.error for result in wrong if result.error), None)
    fault = Fault(message, kind=first.kind if first else "verdict", evidence=first.evidence if first else None)
    fault.blame = first.blame if first else "suite"
    return fault


def _useless(result: MetricResult) -> str:
    return f"its score {result.score!r} neither passes nor fails, or has no range; give it a threshold or a range"


def _summary(results: Sequence[MetricResult]) -> str:
    words = {True: " passed", False: " failed", None: ""}
    return "; ".join(
        f"{result.name} {result.score}{words[result.passed]}"
        if result.state == "scored"
        else f"{result.name}: {result.reasoning}"
        for result in results
    )


def _hashed(decided: object) -> str:
    text = json.dumps(decided, default=str)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


_SCALE = {"score_type", "direction", "minimum", "maximum", "categories"}
"""What of two configurations must be equal for their scores to mean the same."""
_DIGITS = 9
"""Beyond these, 1 - 0.9 is not 0.1, and a threshold would tell equal answers apart."""


class Cascade(Composition):
    """Asks a cheap metric first, and the expensive one only where the first is unsure.

    `how_good` is the value of `first` from 0 to 1, nearer to 0.5 the less sure it is. By the first alone, the
    conversation fails below `fails_below` and passes from `passes_from` up; if one is not set, the first never decides
    that. Otherwise `then` decides: between them, or if the first has an error, is skipped, or contradicts the
    thresholds. An error of `then` is an overall error.

    The result is that of the deciding metric, under the name of `then`; if the scales differ, its score is the value
    from 0 to 1. `decided_by` in the details is `first` or `then`, `first_says` the number, `first` the
    first result where it did not decide, and `calls_saved` how many calls `then` would have made. The fingerprint
    covers the whole procedure, and so does a calibration.

    `then` passes from the value `passing`, 0 to 1; with `by_threshold` its threshold decides, and without either its
    own verdict. `model` judges for metrics given by name.

    Raises:
        UsageError: the thresholds are missing or reversed; both metrics are the same; the first has no highest
            score.
    """

    def __init__(
        self,
        first: Named,
        then: Named,
        *,
        fails_below: float | None = None,
        passes_from: float | None = None,
        passing: float | None = None,
        by_threshold: bool = False,
        model: ModelLike | None = None,
    ) -> None:
        (cheap,), (expensive,) = choose([first], model), choose([then], model)
        _check(cheap, expensive, fails_below, passes_from)
        self.fails_below, self.passes_from = fails_below, passes_from
        self.passing, self.by_threshold = passing, by_threshold
        self.same_scale = _scale(cheap) == _scale(expensive)
        config = expensive.config.model_copy(update={"name": expensive.name})
        if not self.same_scale:
            config = MetricConfig(name=expensive.name, description=config.description)
        super().__init__(config, [cheap, expensive])

    @property
    def parameters(self) -> Mapping[str, object]:
        """The thresholds of the first, and what passes by the other."""
        return {
            "fails_below": self.fails_below,
            "passes_from": self.passes_from,
            "passing": self.passing,
            "by_threshold": self.by_threshold,
        }

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Ask the first one, and the other if it is unsure."""
        cheap, expensive = self.parts
        first = yield from cheap.plan_for(reading)
        passed = verdict(first, self.fails_below, self.passes_from)
        says: dict[str, Any] = {"first_says": how_good(first)}
        if passed is not None:
            saved = expensive.planned_calls(reading)
            return self._whole(first, passed, {"decided_by": "first", **says, "calls_saved": saved}, usage=first.usage)
        then = yield from expensive.plan_for(reading)
        extra = {"decided_by": "then", **says, "calls_saved": 0}
        extra["first"] = plain(first, model=cheap.model and cheap.model.name)
        findings = (part_finding(first), *then.findings)
        return self._whole(then, self._passes(then), extra, usage=spent([first, then]), findings=findings)

    def _passes(self, then: MetricResult) -> bool | None:
        if self.by_threshold and then.raw is not None:
            return self.parts[1].config.passes(then.raw)
        if self.passing is None or then.value is None:
            return then.passed
        return reaches(then.value, self.passing)

    def _whole(self, result: MetricResult, passed: bool | None, extra: Mapping[str, Any], **more: Any) -> MetricResult:
        raw = result.raw if self.same_scale else result.value
        changes = {"name": self.name, "raw": raw, "passed": passed, "extra": {**result.extra, **extra}}
        return result.model_copy(update={**changes, "fingerprint": self.fingerprint, **more})


def how_good(score: Score) -> float | None:
    """Return what a score says as one number from 0, surely bad, to 1, surely good; None where there is no score.

    That is its value, drawn towards 0.5 by doubt: `c·value + (1 - c)·(1 - value)` with the confidence c, which is taken
    as 0.5 where it is less. For a yes or no this is the probability of a pass: 0.8 for a pass and 0.2 for a fail, each
    with confidence 0.8. Without a confidence, as of an exact metric, it is the value.
    """
    if score.state != "scored" or score.value is None:
        return None
    sure = 1.0 if score.confidence is None else min(max(score.confidence, 0.5), 1.0)
    return round(sure * score.value + (1 - sure) * (1 - score.value), _DIGITS)


def verdict(score: Score, fails_below: float | None, passes_from: float | None) -> bool | None:
    """Return whether a first score passes by these thresholds, None where it is unsure.

    A yes or no, and a category, is unsure where the thresholds would turn it into its opposite.
    """
    good = how_good(score)
    if good is None:
        return None
    if passes_from is not None and reaches(good, passes_from):
        return True if may_decide(score, passes=True) else None
    if fails_below is not None and not reaches(good, fails_below):
        return False if may_decide(score, passes=False) else None
    return None


def may_decide(score: Score, *, passes: bool) -> bool:
    """Say whether thresholds may let a score pass, or fail: a number either, a yes or no only what it is."""
    return (isinstance(score.raw, float | int | None) and not isinstance(score.raw, bool)) or score.passed is passes


def wrong_thresholds(fails_below: float | None, passes_from: float | None) -> str | None:
    """Say what is wrong with the thresholds of a cascade, None where nothing is."""
    given = [one for one in (fails_below, passes_from) if one is not None]
    if not given:
        return "a cascade needs fails_below, passes_from or both: where the first one is sure"
    if not all(0 <= one <= 1 for one in given):
        return f"fails_below and passes_from are from 0 to 1; got {', '.join(f'{one:g}' for one in given)}"
    if fails_below is not None and passes_from is not None and fails_below >= passes_from:
        return f"fails_below must be less than passes_from; got {fails_below:g} and {passes_from:g}"
    return None


def _scale(metric: BaseMultiTurnMetric) -> dict[str, Any]:
    return metric.config.model_dump(include=_SCALE)


def _check(
    first: BaseMultiTurnMetric, then: BaseMultiTurnMetric, fails_below: float | None, passes_from: float | None
) -> None:
    if wrong := wrong_thresholds(fails_below, passes_from):
        raise UsageError(wrong)
    if first.config.score_type == "numeric" and first.config.maximum is None:
        raise UsageError(f"{first.name} has no highest score, so it cannot be scaled from 0 to 1")
    if then.needs_threshold:
        raise UsageError(f"{then.name} has no highest score and needs a threshold, which decides what passes")
    if fingerprint_of(first) == fingerprint_of(then):
        raise UsageError(
            f"both judges of the cascade are {first.name} with the same model; use another model or metric"
        )
