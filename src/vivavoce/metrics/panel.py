"""Several opinions: a metric asked several times or under several models, or again where the first says no."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any, Literal, TypeVar, cast

from typing_extensions import TypeIs

from vivavoce.comparing.thresholds import reaches
from vivavoce.errors import Fault, UsageError
from vivavoce.metrics.composition import Composition, part_finding, plain
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evaluation import Named, choose, spent
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.question import Plan, Together
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model, identity_of

M = TypeVar("M", bound=BaseMultiTurnMetric)


def with_judges(metric: M, choose: Callable[[Model | None], Model | None]) -> M:
    """Return a metric that asks what `choose` gives in place of its own judge, None for one that has none.

    The metric itself stays as it is; one that never asks a judge is returned unchanged. In a composition every part
    that asks gets its judge this way.
    """
    if not (metric.judged or metric.may_ask):
        return metric
    changed = copy_of(metric)
    if changed.inner_metrics:
        changed.inner_metrics = tuple(with_judges(part, choose) for part in changed.inner_metrics)
    else:
        changed.model = choose(changed.model)
    return changed


def asking(metric: BaseMultiTurnMetric) -> Iterator[BaseMultiTurnMetric]:
    """Yield the parts of a metric that ask a judge; of one without parts the metric itself."""
    if metric.inner_metrics:
        for part in metric.inner_metrics:
            yield from asking(part)
    elif metric.judged:
        yield metric


def copy_of(metric: M) -> M:
    """Return a copy of a metric without what was computed for its judge and kept, such as the fingerprint."""
    changed = copy(metric)
    for name in list(vars(changed)):
        if isinstance(getattr(type(changed), name, None), cached_property):
            delattr(changed, name)
    return changed


@dataclass(frozen=True, slots=True)
class Majority:
    """The outcome of votes: `share` of them agree with `score`; `tied` are the scores with equal votes, worst first."""

    score: bool | float | str
    share: float | None
    tied: Sequence[bool | float | str] = ()


class Panel(Composition):
    """Asks a judged metric for several votes: `votes` of each of `models`, or of the metric's own model.

    The score is the category with the most votes, in a tie the worse one, or the median of numbers. `agreement` in the
    details is the share of the scored votes with the same category or, for numbers, the same verdict on
    passing. A vote that is an error is shown and does not count; if more than half are, so is the result.

    Votes of one model differ only if it is asked with a `temperature` above 0: `settings={"temperature": 0.7}`. Each is
    cast by a copy of the metric with the next `trial`.
    """

    def __init__(
        self,
        metric: Named,
        *,
        votes: int = 1,
        models: Sequence[ModelLike] = (),
        name: str | None = None,
        model: ModelLike | None = None,
    ) -> None:
        (voter,) = choose([metric], model)
        if not isinstance(voter, JudgedMetric):
            raise UsageError(f"a panel needs a metric that asks a model; {voter.name} is a {type(voter).__name__}")
        judges = [as_model(judge_model) for judge_model in models] or [voter.model]
        _check(voter.name, votes, judges)
        seats = [seat_of(voter, judge, trial) for judge in judges for trial in range(votes)]
        super().__init__(voter.config.model_copy(update={"name": name or voter.name}), seats)

    @property
    def seats(self) -> Sequence[JudgedMetric]:
        """The copies of the metric that vote."""
        return cast("Sequence[JudgedMetric]", self.parts)

    @property
    def parameters(self) -> Mapping[str, object]:
        """Which trial each vote is."""
        return {"trials": [seat.trial for seat in self.seats]}

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Ask for all votes at once, and count them."""
        results = yield from self.together(reading)
        valid = [result for result in results if result.state == "scored"]
        broken = [result for result in results if result.state == "error"]
        if len(broken) > len(valid):
            return self._broken(results, broken)
        return self._counted(reading.metric_input, results, valid) if valid else self.unscored(results, ())

    def listed(self, results: Sequence[MetricResult]) -> dict[str, Any]:
        """Return every vote."""
        votes = zip(self.seats, results, strict=True)
        return {
            "votes": [plain(result, model=seat.judge and seat.judge.name, trial=seat.trial) for seat, result in votes]
        }

    def _counted(
        self, metric_input: MultiTurnEvaluationInput, results: Sequence[MetricResult], valid: Sequence[MetricResult]
    ) -> MetricResult:
        scores = [result.score for result in valid if result.score is not None]
        majority = majority_of(scores, self.config)
        same = [result for result in valid if _agrees(result, majority, self.config)]
        numbers = [score for score in scores if _is_number(score)]
        more: dict[str, Any] = {
            "agreement": majority.share,
            "counts": dict(Counter(str(score) for score in scores)),
            "tie": list(majority.tied),
            "spread": max(numbers) - min(numbers) if numbers else None,
        }
        return self.scored(
            metric_input, majority.score, _summary(majority, same, valid, results), results, same, **more
        )

    def _broken(self, results: Sequence[MetricResult], broken: Sequence[MetricResult]) -> MetricResult:
        first = broken[0].error
        message = (
            f"{len(broken)} of {len(results)} votes failed, the first with: {first.message if first else 'no reason'}"
        )
        fault = Fault(message, kind=first.kind if first else "crash", evidence=first.evidence if first else None)
        fault.blame = "judge"
        return self.failed(fault, usage=spent(results), fingerprint=self.fingerprint, extra=self.listed(results))


def majority_of(scores: Sequence[bool | float | str], config: MetricConfig) -> Majority:
    """Return the outcome of votes: the median of numbers, else the score with the most votes; of a tie the worst."""
    numbers = [score for score in scores if _is_number(score)]
    if len(numbers) == len(scores):
        middle = median(numbers)
        verdict = config.passes(middle)
        same = [score for score in numbers if config.passes(score) == verdict]
        return Majority(middle, None if verdict is None else len(same) / len(numbers))
    counts = Counter(scores)
    most = max(counts.values())
    tied = sorted((score for score, n in counts.items() if n == most), key=lambda score: _rank(score, config))
    return Majority(tied[0], most / len(scores), tied if len(tied) > 1 else ())


def _is_number(score: object) -> TypeIs[float]:
    return isinstance(score, int | float) and not isinstance(score, bool)


def _rank(score: bool | float | str, config: MetricConfig) -> tuple[bool, float, str]:
    return *config.goodness(score), str(score)


def _agrees(result: MetricResult, majority: Majority, config: MetricConfig) -> bool:
    if _is_number(majority.score):
        return result.score is not None and config.passes(result.score) == config.passes(majority.score)
    return result.score == majority.score


def _summary(
    majority: Majority, same: Sequence[MetricResult], valid: Sequence[MetricResult], results: Sequence[MetricResult]
) -> str:
    kind = "median" if _is_number(majority.score) else f"{len(same)} votes"
    failed = f", {len(results) - len(valid)} without a score" if len(valid) < len(results) else ""
    tie = f"; a tie of {' and '.join(map(str, majority.tied))} counts as the worst of them" if majority.tied else ""
    reason = f": {same[0].reasoning}" if same else ""
    return f"{majority.score} by {kind} of {len(valid)}{failed}{tie}{reason}"


def seat_of(metric: JudgedMetric, model: Model | None, trial: int) -> JudgedMetric:
    """Return a copy of a metric with another model and trial; it shares no mutable state and no cached values."""
    seat = copy_of(metric)
    for name, value in list(vars(seat).items()):
        if isinstance(value, list | dict | set):
            setattr(seat, name, copy(value))  # pyright: ignore[reportUnknownArgumentType]
    seat.model, seat.trial = model, trial
    return seat


def _check(name: str, votes: int, judges: Sequence[Model | None]) -> None:
    if votes < 1 or votes * len(judges) < 2:
        raise UsageError(f"a panel has at least 2 votes; {name} would have {max(votes, 0) * len(judges)}")
    for judge, times in Counter(identity_of(judge) for judge in judges if judge).items():
        if times > 1:
            raise UsageError(f"{judge} is on the panel {times} times; give it more votes with votes=")


VoteRule = Literal["majority", "all"]
"""When a failure stands: at least half of all opinions say fail, or all of them do; the first is one of them."""


class Confirmed(Composition):
    """Asks a judged metric and, if it does not pass, asks another model `votes` times.

    By the rule `majority` the failure stands unless more than half of the opinions, the first included, pass; by `all`
    it stands only if none passes. The score is the outcome of the opinions on the deciding side. A second opinion that
    is an error leaves no score only if it could change the verdict; one that is skipped does not
    count. What passes at first costs nothing more. `passing` is the value from 0 to 1 from which an opinion passes;
    with `by_threshold` it is the metric's threshold, and without either the metric's own verdict decides.

    The fingerprint covers the whole procedure, and so does a calibration. `opinions` in the details are
    all results, the first one first.
    """

    def __init__(
        self,
        metric: JudgedMetric,
        model: ModelLike,
        *,
        votes: int = 2,
        rule: VoteRule = "majority",
        passing: float | None = None,
        by_threshold: bool = False,
    ) -> None:
        if votes < 1:
            raise UsageError(f"{metric.name}: votes must be at least 1, got {votes}")
        judge = as_model(model)
        seats = [seat_of(metric, judge, trial) for trial in range(metric.trial + 1, metric.trial + 1 + votes)]
        super().__init__(metric.config, [metric, *seats])
        self.rule, self.passing, self.by_threshold = rule, passing, by_threshold

    @property
    def parameters(self) -> Mapping[str, object]:
        """The rule, which trial each vote is, and what passes."""
        return {
            "rule": self.rule,
            "votes": len(self.parts) - 1,
            "passing": self.passing,
            "by_threshold": self.by_threshold,
        }

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Ask the first judge, and the others where it says fail."""
        first_judge, *others = self.parts
        first = yield from first_judge.plan_for(reading)
        if first.state != "scored" or self._passes(first) is not False:
            return self._as_whole(first, [first], {})
        opinions = [first, *(yield Together([one.plan_for(reading) for one in others]))]
        return self._decided(opinions)

    def _passes(self, result: MetricResult) -> bool | None:
        if self.by_threshold and result.raw is not None:
            return self.config.passes(result.raw)
        if self.passing is None or result.value is None:
            return result.passed
        return reaches(result.value, self.passing)

    def _decided(self, opinions: Sequence[MetricResult]) -> MetricResult:
        passes = [opinion for opinion in opinions if opinion.state == "scored" and self._passes(opinion)]
        fails = [opinion for opinion in opinions if opinion.state == "scored" and self._passes(opinion) is False]
        broken = [opinion for opinion in opinions if opinion.state == "error"]
        at_best = self._stands(len(passes) + len(broken), len(fails))
        stands = self._stands(len(passes), len(fails) + len(broken))
        if at_best != stands:
            return self._broken(opinions, broken)
        side = fails if stands else passes
        majority = majority_of([one.raw for one in side if one.raw is not None], self.config)
        chosen = next((one for one in side if one.raw == majority.score), side[0])
        value, passed = self.config.scored(majority.score, None)
        counted = f"{len(fails)} of {len(passes) + len(fails)} opinions say fail"
        verdict = "the failure stands" if stands else "the failure does not stand"
        changes: dict[str, Any] = {
            "raw": majority.score,
            "value": chosen.value if value is None else value,
            "passed": chosen.passed if passed is None else passed,
            "reason": f"{verdict}, {counted}: {chosen.reason}" if chosen.reason else f"{verdict}, {counted}",
            "findings": (*map(part_finding, opinions), *chosen.findings),
        }
        return self._as_whole(chosen, opinions, changes)

    def _stands(self, passes: int, fails: int) -> bool:
        return passes == 0 if self.rule == "all" else passes <= fails

    def _as_whole(
        self, result: MetricResult, opinions: Sequence[MetricResult], changes: Mapping[str, Any]
    ) -> MetricResult:
        extra = {**result.extra, **(self.listed(opinions) if len(opinions) > 1 else {})}
        whole = {"extra": extra, "usage": spent(opinions), "fingerprint": self.fingerprint}
        return result.model_copy(update={**whole, **changes})

    def listed(self, results: Sequence[MetricResult]) -> dict[str, Any]:
        """Return every opinion with the model that gave it."""
        given = zip(self.parts, results, strict=True)
        return {"opinions": [plain(one, model=part.model and part.model.name) for part, one in given]}

    def _broken(self, opinions: Sequence[MetricResult], broken: Sequence[MetricResult]) -> MetricResult:
        first = broken[0].error
        message = f"{len(broken)} of {len(opinions) - 1} second opinions failed, the first with: " + (
            first.message if first else "no reason"
        )
        fault = Fault(message, kind=first.kind if first else "crash", evidence=first.evidence if first else None)
        fault.blame = "judge"
        return self.failed(fault, usage=spent(opinions), fingerprint=self.fingerprint, extra=self.listed(opinions))
