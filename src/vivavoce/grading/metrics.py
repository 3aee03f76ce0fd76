"""Metrics and grading functions as graders of a suite."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from vivavoce.errors import UsageError
from vivavoce.grading.extractors import Extract, build_extractor, last_assistant
from vivavoce.grading.functions import TIME_LIMIT, read_options
from vivavoce.grading.grader import Grader, Scope, ScoreCase, fingerprint, graded, in_spite_of_errors, user_score
from vivavoce.grading.graders import Case, Grade, call_options, of_tests, truth_of, version_of
from vivavoce.messages import AIMessage, AnyMessage
from vivavoce.metrics.composition import Composition
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.counts import ToolCallCountMetric
from vivavoce.metrics.exact.rule import RuleMetric
from vivavoce.metrics.exact.tool_calls import CallOptions
from vivavoce.metrics.factory import Choice, metrics
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.panel import asking
from vivavoce.metrics.question import Call, Plan
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading, metric_input
from vivavoce.pacing.loops import wait_for
from vivavoce.plugins import is_file_reference, load_object
from vivavoce.records.score import PASSING, Failure, Score, failed, shorten
from vivavoce.records.trajectory import recorded_calls
from vivavoce.samples.sample import Sample
from vivavoce.user_code import check_callable, source_of
from vivavoce.validation import copy_with


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionGrading:
    """How a grading function grades: its name or `file.py:name`, its options, what it looks at and what passes."""

    function: str
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timeout: float = TIME_LIMIT
    extractor: str = "last_assistant"
    extractor_config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    scope: Scope | None = None
    threshold: float | None = None
    scores_errors: bool = False
    display_name: str | None = None

    def grader(
        self,
        name: str,
        base: Path,
        *,
        extract: Extract | None = None,
        tester: Callable[[], Sequence[Any]] = tuple,
        loaded: Grade | None = None,
    ) -> Grader:
        """Return the grader; `tester` returns what else a grader of tests depends on.

        `loaded` is its function, where the name need not be looked up.

        Raises:
            UsageError: there is no such function or extractor, or an option is wrong.
        """
        function = named_function(self.function, base) if loaded is None else loaded
        truth = truth_of(function)
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise UsageError(f"scores of '{self.function}' are from 0 to 1; got threshold: {self.threshold:g}")
        if self.threshold == 0:
            raise UsageError(f"every score of '{self.function}' passes with threshold: 0; write a number above 0")
        if extract is None:
            extract = build_extractor(self.extractor, self.extractor_config, base)
        score: ScoreCase
        calls: CallOptions | None = None
        if truth is None:
            accepts_empty = "trajectory" in inspect.signature(function).parameters
            score, version = user_score(function, self.config, self.timeout), source_of(function)
        else:
            accepts_empty = truth in ("reference_tool_calls", "conversation")
            options = read_options(function, self.config)
            calls = call_options(function, options)
            score, version = _bound(function, options), version_of(function)
        shown = [*extractor_parts(self.extractor, self.extractor_config, base), self.scope]
        parts = [self.function, version, self.config, shown]
        parts += tester() if of_tests(function) else ()
        grader = Grader(
            name,
            extract,
            score,
            truth or "none",
            fingerprint([*parts, *threshold_parts(self.threshold)]),
            accepts_empty,
            self.scope,
            self.display_name,
            threshold=self.threshold,
            waits=truth is None or is_file_reference(self.extractor),
            calls=() if calls is None else (calls,),
        )
        return in_spite_of_errors(grader) if self.scores_errors else grader


class GraderMetric(BaseMultiTurnMetric):
    """A grader as a metric, with the same scores as the grader in a suite.

    It grades turn by turn if the sample has a ground truth for each turn, and does not apply to a sample without one.
    """

    def __init__(self, grader: Grader, description: str = "") -> None:
        super().__init__(
            MetricConfig(
                class_name=type(self).__name__,
                name=grader.name,
                description=description,
                requires_ground_truth=grader.truth == "ground_truth",
                threshold=PASSING if grader.threshold is None else grader.threshold,
            )
        )
        self._grader = grader

    @property
    def grader(self) -> Grader:
        """The grader."""
        return self._grader

    @property
    def fingerprint(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A hash of everything that decides the scores."""
        return self.grader.fingerprint

    def unmet(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Return why it does not apply to a sample."""
        return None if metric_input.sample is None else self.grader.inapplicable(metric_input.sample)

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Score a conversation."""
        return wait_for(self.aevaluate_conversation(evaluation_input))

    async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Score a conversation."""
        return await graded(self.grader, evaluation_input, self.name)


class FunctionGrader(GraderMetric):
    """A grading function as a metric: it scores the extracted text against the ground truth of the sample.

    `config` are the options of the function.
    """

    function: ClassVar[Grade]
    registered: ClassVar[str]

    def __init__(
        self,
        *,
        name: str = "",
        threshold: float | None = None,
        scope: Scope | None = None,
        extractor: str = "last_assistant",
        extractor_config: Mapping[str, Any] | None = None,
        **config: Any,
    ) -> None:
        how = FunctionGrading(
            function=self.registered,
            config=config,
            extractor=extractor,
            extractor_config=extractor_config or {},
            scope=scope,
            threshold=threshold,
        )
        summary = (inspect.getdoc(self.function) or "").partition("\n")[0]
        super().__init__(how.grader(name or self.registered, Path(), loaded=self.function), summary)


def grading_metric(name: str, function: Grade) -> type[FunctionGrader]:
    """Return the metric class of a grading function under a name."""
    own = {
        "function": staticmethod(function),
        "registered": name,
        "__doc__": function.__doc__ or "A user-defined grading function.",
        "__module__": function.__module__,
    }
    return type(name, (FunctionGrader,), own)


def named_function(name: str, base: Path) -> Grade:
    """Return the grading function of that name, or of a `file.py:name`.

    Raises:
        UsageError: there is no such function, or the name is that of a metric.
    """
    if is_file_reference(name):
        return check_callable(load_object(name, base), name, "a grader")
    kind = metrics.get(name, "grader")
    if not issubclass(kind, FunctionGrader):
        raise UsageError(f"'{name}' is a metric; write kind: metric, metric: {name}")
    return kind.function


def is_grading_function(function: Grade) -> bool:
    """Return whether a user-defined function takes a sample and a submission, as grading functions do."""
    try:
        return {"sample", "submission"} <= inspect.signature(function).parameters.keys()
    except ValueError:  # a built-in function that does not say what it takes
        return False


def extractor_parts(extractor: str, config: Mapping[str, Any], base: Path) -> list[Any]:
    """Return the parts of an extractor that decide the scores of a grader."""
    version = source_of(load_object(extractor, base)) if is_file_reference(extractor) else "3"
    return [extractor, version, config]


def threshold_parts(threshold: float | None) -> list[float]:
    """Return what a threshold adds to a fingerprint: nothing if there is none."""
    return [] if threshold is None else [threshold]


def _bound(function: Grade, options: dict[str, Any]) -> ScoreCase:
    return lambda case: function(case, **options)


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
            message = f"{self.metric.name} returned {got}, which does not match its score_type"
            return failed(Failure(blame="grader", kind="format", message=message), usage=result.usage)
        if self.by_threshold and result.raw is not None:
            return copy_with(result, {"passed": self.metric.config.passes(result.raw)})
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
    return [*(message for message in messages if message.role not in ("assistant", "tool")), AIMessage(content=text)]


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
        passing = [config.normalised(passing_category) for passing_category in config.passing_categories]
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
    each_turn = sum(_calls(judged_metric) for judged_metric in judged_metrics if not _is_whole(judged_metric))
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
        once=sum(_calls(judged_metric) for judged_metric in judged_metrics if _is_whole(judged_metric)),
        each_turn=each_turn,
        waits=metric.waits,
        severity="fail" if isinstance(metric, RuleMetric) else None,
        decides=not metric.needs_threshold,
        calls=tuple(_compared_calls(metric)),
    )


def _compared_calls(metric: BaseMultiTurnMetric) -> Iterator[CallOptions]:
    """Yield which tool calls count for a metric and for each of its parts."""
    if isinstance(metric, GraderMetric):
        yield from metric.grader.calls
    elif isinstance(metric, ToolCallCountMetric):
        yield metric.calls
    for part in metric.inner_metrics:
        yield from _compared_calls(part)


def _calls(metric: BaseMultiTurnMetric) -> int:
    return 1 if metric.manner is None else metric.manner.calls


def _is_whole(metric: BaseMultiTurnMetric) -> bool:
    return getattr(metric, "scope", "conversation") == "conversation"


def _fingerprint(metric: BaseMultiTurnMetric, written_in: str) -> str:
    if not written_in:
        return metric.fingerprint
    text = f"{metric.fingerprint}\0{written_in}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
