"""`Cascade`: a cheap metric or judge decides where it is sure, and only the rest goes to the expensive one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vivavoce.comparing.thresholds import reaches
from vivavoce.errors import UsageError
from vivavoce.metrics.composition import Composition, fingerprint_of, part_finding, plain
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evaluation import Named, choose, spent
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.reading import Reading
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.steps import Plan
from vivavoce.models.custom import ModelLike
from vivavoce.records.score import Score

_SCALE = {"score_type", "direction", "minimum", "maximum", "categories"}
"""What of two configurations must be equal for their scores to mean the same."""
_DIGITS = 9
"""Beyond these, 1 - 0.9 is not 0.1, and a threshold would tell equal answers apart."""


class Cascade(Composition):
    """Asks a cheap metric first, and the expensive one only where the first is unsure.

    `how_good` is one number from 0 to 1 for what `first` says: its value, nearer to 0.5 the less sure it is. Below
    `fails_below` the conversation fails and from `passes_from` on it passes, by the first alone; without one of the
    two, the first never decides that. Between them `then` decides, and also where the first is an error, is skipped, or
    gives a verdict that the thresholds contradict. An error of `then` is an error of the whole.

    The result is that of the one that decides, under the name of `then`; where the two have different scales, its score
    is the value from 0 to 1. `decided_by` in the details is `first` or `then`, `first_says` the number, `first` the
    first result where it did not decide, and `calls_saved` how many calls `then` would have made. The fingerprint is
    that of the whole procedure, and so a calibration is one of it.

    `passing` is the value from 0 to 1 from which `then` passes; with `by_threshold` its threshold decides that, and
    without either its own verdict. `model` judges for metrics given by name.

    Raises:
        UsageError: the thresholds are none, or the wrong way round; both metrics are the same; the first has no highest
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
        """Where the first one decides, and what passes by the other."""
        return {
            "fails_below": self.fails_below,
            "passes_from": self.passes_from,
            "passing": self.passing,
            "by_threshold": self.by_threshold,
        }

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Ask the first one, and the other where that is unsure."""
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
        raise UsageError(f"{first.name} has no highest score, so it cannot say from 0 to 1 how good a conversation is")
    if then.needs_threshold:
        raise UsageError(f"{then.name} has no highest score and needs a threshold, which decides what passes")
    if fingerprint_of(first) == fingerprint_of(then):
        raise UsageError(f"both of a cascade are {first.name} under the same model; name another model or metric")
