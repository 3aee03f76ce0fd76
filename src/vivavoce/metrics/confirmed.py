"""`Confirmed`: second opinions of another model, asked for only where the first judge says fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from vivavoce.comparing.thresholds import reaches
from vivavoce.errors import Fault, UsageError
from vivavoce.metrics.composition import Composition, part_finding, plain
from vivavoce.metrics.evaluation import spent
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.panel import majority_of, seat_of
from vivavoce.metrics.reading import Reading
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.steps import Plan, Together
from vivavoce.models.custom import ModelLike, as_model

Rule = Literal["majority", "all"]
"""When a failure stands: at least half of all opinions say fail, or all of them do; the first is one of them."""


class Confirmed(Composition):
    """Asks a judged metric, and where it does not pass, `votes` times more under another model.

    By the rule `majority` the failure stands unless more than half of the opinions, the first included, pass; by `all`
    it stands only if none passes. The score is the outcome of the opinions on the deciding side. A second opinion that
    is an error leaves the whole without a score only where it could change the verdict; one that is skipped does not
    count. What passes at first costs nothing more. `passing` is the value from 0 to 1 from which an opinion passes;
    with `by_threshold` it is the metric's threshold, and without either the metric's own verdict decides.

    The fingerprint is that of the whole procedure, and so a calibration is one of it. `opinions` in the details are
    all results, the first one first.
    """

    def __init__(
        self,
        metric: JudgedMetric,
        model: ModelLike,
        *,
        votes: int = 2,
        rule: Rule = "majority",
        passing: float | None = None,
        by_threshold: bool = False,
    ) -> None:
        if votes < 1:
            raise UsageError(f"{metric.name} is confirmed by at least 1 vote, got {votes}")
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
        passes = [one for one in opinions if one.state == "scored" and self._passes(one)]
        fails = [one for one in opinions if one.state == "scored" and self._passes(one) is False]
        broken = [one for one in opinions if one.state == "error"]
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
