"""Metrics made of metrics: chain, all of, any of, weighted.

A part that is skipped is left out; where all are, so is the whole. A part that is an error makes the whole an error
unless the others decide alone: one that fails decides `AllOf` and `Chain`, one that passes decides `AnyOf`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from vivavoce.comparing.thresholds import mean
from vivavoce.errors import Fault, UsageError
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evaluation import Named, choose, spent
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.reading import Reading
from vivavoce.metrics.result import About, MetricResult
from vivavoce.metrics.steps import Plan, Together
from vivavoce.metrics.stepwise import StepwiseMetric
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.models.model import identity_of
from vivavoce.records.score import UNSUPPORTED, Finding, FindingState


class Composition(StepwiseMetric):
    """A metric made of others, its `parts`; the result of each is a finding, and in full in `extra`."""

    def __init__(self, config: MetricConfig, parts: Sequence[BaseMultiTurnMetric]) -> None:
        super().__init__(config.model_copy(update={"class_name": config.class_name or type(self).__name__}))
        if not parts:
            raise UsageError(f"{self.name} is made of other metrics; give at least one")
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
    """Passes if every part does; one that fails decides, even where another is an error."""

    word: ClassVar[str] = "all_of"
    decisive: ClassVar[bool] = False
    """The verdict of one part that decides for all."""

    def __init__(self, *metrics: Named, name: str | None = None, model: ModelLike | None = None) -> None:
        config = MetricConfig(name=name or self.word, description=type(self).__doc__ or "", score_type="binary")
        super().__init__(config, choose(metrics, model))

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Measure by all parts at once."""
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
    """Passes if at least one part does; one that passes decides, even where another is an error."""

    word: ClassVar[str] = "any_of"
    decisive: ClassVar[bool] = True


class Chain(AllOf):
    """Passes if every part does, asked one after the other; after one that does not pass, the rest is not asked."""

    word: ClassVar[str] = "chain"

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Measure by one part after the other."""
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
    """The mean of what parts say, each from 0, worst, to 1, best, and by its weight; needs all that are not skipped."""

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
                raise UsageError(f"{name}: a weight is a number above 0; {part} has {weight}")

    @property
    def parameters(self) -> Mapping[str, object]:
        """The weights."""
        return {"weights": list(self.weights.values())}

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Measure by all parts at once."""
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
