"""Metrics as graders: on the conversation, on extracted text, or on single turns."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.grading.extractors import Extract, build_extractor, last_assistant
from vivavoce.grading.function_grader import GraderMetric, extractor_parts
from vivavoce.grading.grader import Grader, Scope
from vivavoce.grading.graders import Case
from vivavoce.grading.standalone import graded
from vivavoce.messages import AIMessage, AnyMessage
from vivavoce.metrics.choice import Choice
from vivavoce.metrics.composition import Composition
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.rule import RuleMetric
from vivavoce.metrics.judges import asking
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.metric_input import metric_input
from vivavoce.metrics.reading import Reading
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.steps import Call, Plan
from vivavoce.records.failure import Failure, shorten
from vivavoce.records.score import PASSING, Score, failed
from vivavoce.records.visibility import recorded_calls
from vivavoce.samples.sample import Sample
from vivavoce.unchecked import changed


@dataclass(frozen=True, slots=True)
class MetricScore:
    """The score of a metric for a case; with `by_threshold`, only the metric's threshold decides whether it passes.

    With `answer`, the submission is everything the assistant says in the measured conversation. Without a threshold, a
    metric that has no highest score only measures: its scores have no value and neither pass nor fail.
    """

    metric: BaseMultiTurnMetric
    by_threshold: bool = False
    answer: bool = False

    def unmet(self, sample: Sample) -> str | None:
        """Return what the metric needs that the sample does not have."""
        return self.metric.unmet(metric_input(sample, ()))

    async def score(self, case: Case) -> Score:
        """Measure the conversation of a case.

        Raises:
            BudgetExhausted: the run may make no more calls.
        """
        view, messages = case.view, case.view.messages
        calls = None if view.test is None else recorded_calls(view.test.metadata)
        known = {"submission": case.submission, "state": view.state, "test": view.test, "trial": view.trial}
        known |= {"calls": calls}
        measured = with_answer(messages, case.submission) if self.answer else messages
        result = await self.metric.measured(metric_input(case.sample, measured, view.seconds, **known))
        if result.state == "scored" and result.value is None and result.measured is None:
            got = shorten(repr(result.raw), 80)
            message = f"{self.metric.name} gave {got}, which is not a score of the kind it states"
            return failed(Failure(blame="grader", kind="format", message=message), usage=result.usage)
        if self.by_threshold and result.raw is not None:
            return changed(result, {"passed": self.metric.config.passes(result.raw)})
        return result


def deciding_grader(name: str, metric: BaseMultiTurnMetric) -> Grader:
    """Return a metric as a grader whose scores pass or fail.

    Raises:
        UsageError: the metric only measures, so nothing says which of its scores pass.
    """
    grader = metric_grader(name, metric)
    if not grader.decides:
        raise UsageError(needs_threshold(name, metric.name))
    return grader


def needs_threshold(name: str, metric: str = "…") -> str:
    """Return why nothing can pass or fail by a grader of a metric that only measures."""
    how = f"{{metric: {metric}, threshold: …}}"
    return f"{name} has no highest score and needs a threshold, which decides what passes: {how}"


def with_answer(messages: Sequence[AnyMessage], text: str) -> list[AnyMessage]:
    """Return the messages of a conversation without those of the assistant and its tools, then a text as the answer."""
    return [*(one for one in messages if one.role not in ("assistant", "tool")), AIMessage(content=text)]


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a metric sees: the text of an `extract`, None for the whole conversation; `parts` identify the choice."""

    extract: Extract | None = None
    scope: Scope | None = None
    parts: Sequence[Any] = field(default_factory=tuple[Any, ...])


class ExtractedMetric(Composition):
    """A metric on extracted text or on single turns; the ground truth of a turn is then its reference."""

    def __init__(self, metric: BaseMultiTurnMetric, extraction: Extraction) -> None:
        super().__init__(metric.config, [metric])
        self.extraction = extraction

    @property
    def parameters(self) -> Mapping[str, object]:
        """What decides the scores apart from the metric."""
        return {"extraction": [self.extraction.scope, *self.extraction.parts]}

    def grader(self, name: str, *, by_threshold: bool = False) -> Grader:
        """Return it as a grader with a name."""
        (metric,) = self.parts
        shown = self.extraction
        measuring = MetricScore(metric, by_threshold, answer=shown.extract is not None)
        whole = replace(metric_grader(name, metric), score=measuring.score, fingerprint=self.fingerprint)
        mean = mean_that_passes(metric.config)
        return replace(
            whole, extract=shown.extract or last_assistant, truth="none", scope=shown.scope, mean_passes=mean
        )

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Measure the extracted part of a conversation."""
        return (yield Call(partial(graded, self.grader(self.name), reading.metric_input, self.name)))


def extracted(metric: BaseMultiTurnMetric, how: Choice, base: Path) -> ExtractedMetric:
    """Return a metric on extracted text or on single turns; the file of an extractor is relative to `base`.

    Raises:
        UsageError: there is no such extractor, or the scope is a window.
    """
    name, config, scope = how.get("extractor"), how.get("extractor_config", {}), how.get("scope")
    if scope == "window":
        raise UsageError("a metric on single turns or on extracted text cannot use windows; remove scope")
    extract = None if name is None else build_extractor(name, config, base)
    parts = () if name is None else extractor_parts(name, config, base)
    return ExtractedMetric(metric, Extraction(extract, scope, parts))


def mean_that_passes(config: MetricConfig) -> float:
    """Return the value, 0 to 1, from which a mean over turns passes: that of the lowest passing score."""
    if config.score_type == "categorical":
        passing = [config.normalised(one) for one in config.passing_categories]
        return min((value for value in passing if value is not None), default=PASSING)
    value = None if config.threshold is None else config.normalised(config.threshold)
    return PASSING if value is None else value


def metric_grader(
    name: str,
    metric: BaseMultiTurnMetric,
    label: str | None = None,
    written_in: str = "",
    *,
    by_threshold: bool = False,
) -> Grader:
    """Return a metric as a grader; `written_in` is the content of its file, if it has one.

    It grades whole conversations, unless it is itself a grader. A rule is a requirement. With `by_threshold`, only the
    threshold of the metric decides whether a score passes.
    """
    if isinstance(metric, GraderMetric):
        return replace(metric.grader, name=name, label=label)
    if isinstance(metric, ExtractedMetric):
        made = metric.grader(name, by_threshold=by_threshold)
        return replace(made, label=label, fingerprint=_fingerprint(metric, written_in))
    measuring = MetricScore(metric, by_threshold)
    judged_metrics = [one for one in asking(metric) if one.model is not None]
    each_turn = sum(_calls(one) for one in judged_metrics if not _is_whole(one))
    return Grader(
        name,
        last_assistant,
        measuring.score,
        "conversation",
        _fingerprint(metric, written_in),
        accepts_empty=True,
        unmet=measuring.unmet,
        label=label,
        judged=bool(judged_metrics),
        once=sum(_calls(one) for one in judged_metrics if _is_whole(one)),
        each_turn=each_turn,
        waits=metric.waits,
        severity="fail" if isinstance(metric, RuleMetric) else None,
        decides=not metric.needs_threshold,
    )


def _calls(metric: BaseMultiTurnMetric) -> int:
    return 1 if metric.manner is None else metric.manner.calls


def _is_whole(metric: BaseMultiTurnMetric) -> bool:
    return getattr(metric, "scope", "conversation") == "conversation"


def _fingerprint(metric: BaseMultiTurnMetric, written_in: str) -> str:
    if not written_in:
        return metric.fingerprint
    text = f"{metric.fingerprint}\0{written_in}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
