"""Grading functions as graders of a suite, and as metrics that work wherever a metric is named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from vivavoce.errors import UsageError
from vivavoce.foreign_code import check_callable
from vivavoce.grading.calling import TIME_LIMIT
from vivavoce.grading.extractors import Extract, build_extractor
from vivavoce.grading.fingerprint import fingerprint
from vivavoce.grading.grader import Grader, Scope, ScoreCase, in_spite_of_errors, user_score
from vivavoce.grading.graders import Grade, of_tests, truth_of, version_of
from vivavoce.grading.options import read_options
from vivavoce.grading.standalone import graded
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.arguments import ArgumentRule
from vivavoce.metrics.factory import metrics
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.pacing.waiting import wait_for
from vivavoce.plugins import is_file_reference, load_object
from vivavoce.records.score import PASSING
from vivavoce.user_code import source_of


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
        self, name: str, base: Path, *, extract: Extract | None = None, tester: Callable[[], Sequence[Any]] = tuple
    ) -> Grader:
        """Return the grader; `tester` returns what else a grader of tests depends on.

        Raises:
            UsageError: there is no such function or extractor, or an option is wrong.
        """
        function = named_function(self.function, base)
        truth = truth_of(function)
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise UsageError(f"scores of '{self.function}' are from 0 to 1; got threshold: {self.threshold:g}")
        if self.threshold == 0:
            raise UsageError(f"every score of '{self.function}' passes with threshold: 0; write a number above 0")
        if extract is None:
            extract = build_extractor(self.extractor, self.extractor_config, base)
        score: ScoreCase
        arguments: ArgumentRule | None = None
        if truth is None:
            accepts_empty = "trajectory" in inspect.signature(function).parameters
            score, version = user_score(function, self.config, self.timeout), source_of(function)
        else:
            accepts_empty = truth in ("reference_tool_calls", "conversation")
            options = read_options(function, self.config)
            arguments = options.get("arguments")
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
            arguments=arguments,
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
        super().__init__(how.grader(name or self.registered, Path()), summary)


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
    version = source_of(load_object(extractor, base)) if is_file_reference(extractor) else "2"
    return [extractor, version, config]


def threshold_parts(threshold: float | None) -> list[float]:
    """Return what a threshold adds to a fingerprint: nothing if there is none."""
    return [] if threshold is None else [threshold]


def _bound(function: Grade, options: dict[str, Any]) -> ScoreCase:
    return lambda case: function(case, **options)
