"""Metrics as graders."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from vivavoce.errors import UsageError
from vivavoce.grading.extractors import last_assistant
from vivavoce.grading.grader import Grader
from vivavoce.grading.graders import Case
from vivavoce.metrics.judges import asking
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.metric_input import metric_input
from vivavoce.records.failure import Failure, shorten
from vivavoce.records.score import Score, failed
from vivavoce.samples.sample import Sample


@dataclass(frozen=True, slots=True)
class MetricScore:
    """The score of a metric for a case; `by_threshold` it passes by the metric's threshold, whatever else it says.

    Raises:
        UsageError: the scores of the metric have no highest value, and nothing says which ones pass.
    """

    metric: BaseMultiTurnMetric
    by_threshold: bool = False

    def __post_init__(self) -> None:
        config = self.metric.config
        if config.score_type == "numeric" and config.maximum is None and config.threshold is None:
            raise UsageError(
                f"{self.metric.name} has no highest score and needs a threshold, which says which ones pass"
            )

    def unmet(self, sample: Sample) -> str | None:
        """Say what the metric needs that the sample does not give."""
        return self.metric.unmet(metric_input(sample, ()))

    async def score(self, case: Case) -> Score:
        """Measure the conversation of a case.

        Raises:
            BudgetExhausted: the run may make no more calls.
        """
        messages = case.view.messages
        result = await self.metric.measured(metric_input(case.sample, messages, case.view.seconds))
        if result.state == "scored" and result.value is None:
            got = shorten(repr(result.raw), 80)
            message = f"{self.metric.name} gave {got}, which is not a score of the kind it states"
            return failed(Failure(blame="grader", kind="format", message=message), usage=result.usage)
        if self.by_threshold and result.raw is not None:
            return result.model_copy(update={"passed": self.metric.config.passes(result.raw)})
        return result


def metric_grader(
    name: str,
    metric: BaseMultiTurnMetric,
    label: str | None = None,
    written_in: str = "",
    *,
    by_threshold: bool = False,
) -> Grader:
    """Return a metric as a grader of whole conversations; `written_in` is all that its file says, if it has one.

    With `by_threshold` a score passes by the threshold of the metric, whatever else the metric says of passing.

    Raises:
        UsageError: nothing says which of its scores pass.
    """
    measuring = MetricScore(metric, by_threshold)
    asked = [one for one in asking(metric) if one.model is not None]
    each_turn = sum(_calls(one) for one in asked if not _is_whole(one))
    return Grader(
        name,
        last_assistant,
        measuring.score,
        "conversation",
        _fingerprint(metric, written_in),
        accepts_empty=True,
        unmet=measuring.unmet,
        label=label,
        judged=bool(asked),
        once=sum(_calls(one) for one in asked if _is_whole(one)),
        each_turn=each_turn,
        waits=metric.waits,
    )


def _calls(metric: BaseMultiTurnMetric) -> int:
    return 1 if metric.manner is None else metric.manner.calls


def _is_whole(metric: BaseMultiTurnMetric) -> bool:
    return getattr(metric, "scope", "conversation") == "conversation"


def _fingerprint(metric: BaseMultiTurnMetric, written_in: str) -> str:
    if not written_in:
        return metric.fingerprint
    spelled = f"{metric.fingerprint}\0{written_in}"
    return hashlib.blake2b(spelled.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
