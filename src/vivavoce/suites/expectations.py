"""The assertions of rows: each is checked before anything runs, and one grader grades them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.grading.asked import Asked, Judged, Passes, procedures
from vivavoce.grading.call_mistakes import mistakes_in
from vivavoce.grading.expect import ExpectMetric
from vivavoce.grading.expected import Expected, written_in
from vivavoce.grading.graders import reads_no_rules, truth_problem
from vivavoce.metrics.evaluation import Named
from vivavoce.metrics.exact.rule import RuleMetric
from vivavoce.metrics.factory import metrics
from vivavoce.metrics.types import metric_input
from vivavoce.models.json_schema import ignored_keywords, unchecked_formats
from vivavoce.plugins import lazy
from vivavoce.records.run import Severity
from vivavoce.samples.rows import SampleCount, check_samples
from vivavoce.samples.sample import Sample
from vivavoce.suites.grading_spec import (
    AnyGraderSpec,
    FunctionGraderSpec,
    MetricGraderSpec,
    RecordingGraderSpec,
    RuleGraderSpec,
)
from vivavoce.suites.load import Suite

EXPECT = "expect"
"""The name of the grader of assertions, of its function, and of the field of a row."""
RULE = "rule"
"""The name of the metric of rules."""


@dataclass(frozen=True, slots=True)
class Assertions:
    """The assertions of rows: those of each row are checked, and what they ask of metrics is kept.

    `tools` are the names of all that the targets have, none where that is not known. `formats` are those of JSON
    schemas in rows that are not checked, `ignored_keywords` those that nothing knows.
    """

    metric_assertions: dict[str, Asked] = field(default_factory=dict[str, Asked])
    tools: Sequence[str] = ()
    formats: set[str] = field(default_factory=set[str])
    ignored_keywords: set[str] = field(default_factory=set[str])

    def check(self, sample: Sample) -> None:
        """Check the assertions of a row.

        Raises:
            UsageError: one is unknown, malformed, or cannot fail or hold, or is about a tool that nobody has.
        """
        if sample.expect is not None:
            every = written_in(sample)
            asking = [one for one in every if one.asked]
            if asking:
                self.metric_assertions.update(procedures(part for expected in asking for part in expected.asked))
            for schema in (schema for expected in every for schema in expected.schemas):
                self.formats.update(unchecked_formats(schema))
                self.ignored_keywords.update(ignored_keywords(schema))
            mistakes = [
                *self._unknown_tools(every),
                *self._wrong_calls(sample, asking),
                *_missing_inputs(sample, asking),
            ]
            if mistakes:
                raise UsageError(*mistakes)

    def _unknown_tools(self, every: Sequence[Expected]) -> Iterator[str]:
        for expected in every if self.tools else ():
            place = EXPECT if expected.turn is None else f"{EXPECT}.{expected.turn}"
            ruled = [name for part in expected.asked for name in self._unknown_of_rule(part)]
            for name in (*(name for name in expected.tools if name not in self.tools), *ruled):
                yield f"{place}: the target has no tool '{name}'{did_you_mean(name, self.tools)}"

    def _wrong_calls(self, sample: Sample, asking: Sequence[Expected]) -> Iterator[str]:
        """Yield what is wrong with the options by which metrics in assertions compare the calls of a row."""
        for expected in asking:
            place = EXPECT if expected.turn is None else f"{EXPECT}.{expected.turn}"
            for options in (options for part in expected.asked for options in part.compared_calls):
                for mistake in mistakes_in(options, lambda: [sample], self.tools):
                    option = f".config.{mistake.option}" if mistake.option else ".config"
                    yield f"{place}{option}: {mistake.message}"

    def _unknown_of_rule(self, part: Asked) -> Iterator[str]:
        metric = part.metric(None)
        if isinstance(metric, RuleMetric):
            yield from (name for _, name in metric.rule.unknown_calls(self.tools))


def _missing_inputs(sample: Sample, asking: Sequence[Expected]) -> Iterator[str]:
    """Yield what metrics in assertions need of a row and do not have, which only a run would find."""
    for expected in asking:
        place, known = EXPECT, sample.whole
        if expected.turn is not None:
            place, known = f"{EXPECT}.{expected.turn}", sample.turns[sample.history_turns + expected.turn]
        # a suite may have the policy of its rows
        inputs = metric_input(known, (), policy=known.policy or "…")
        for part in expected.asked:
            problem = part.metric(None).unmet(inputs)
            if problem is None and isinstance(part, Passes):
                problem = truth_problem(part.metric_name, known.ground_truth, part.config)
            if problem:
                yield f"{place}: {part.wording} cannot be checked: {problem}"


def asks_judge(metric_assertions: Mapping[str, Asked]) -> bool:
    """Return whether assertions ask a judge."""
    return any(assertion.asks for assertion in metric_assertions.values())


def questions(sample: Sample) -> int:
    """Return how many of the assertions of a row, which have been checked, ask a judge."""
    return sum(part.asks for expected in written_in(sample) for part in expected.asked)


def with_expect(suite: Suite, sample_count: SampleCount, metric_assertions: Mapping[str, Asked]) -> Suite:
    """Return a suite that grades the assertions of its rows: where there are any and it has no grader of that name.

    `metric_assertions` is what they ask of metrics.

    Raises:
        UsageError: nothing would be graded.
    """
    graders = suite.spec.graders
    if not graders and not sample_count.expecting:
        rule = "the key 'graders' is missing, and no row has an 'expect'"
        raise UsageError(suite.document.problem((), rule))
    if not sample_count.expecting or any(map(grades_assertions, graders.values())):
        return suite
    if EXPECT in graders:
        rule = (
            f"the rows have an {EXPECT!r}, and {EXPECT} is the grader of their assertions; give this one another name"
        )
        raise UsageError(suite.document.problem(("graders", EXPECT), rule))
    own: AnyGraderSpec = FunctionGraderSpec(kind="function", function=EXPECT)
    if asks_judge(metric_assertions):
        own = MetricGraderSpec(kind="metric", metric=EXPECT, model=suite.judge)
    return replace(suite, spec=suite.spec.model_copy(update={"graders": {**graders, EXPECT: own}}))


READ_RULES = ("contract", "goal_achievement")
"""The built-in metrics that read `must` and `must_not` of rows."""


def check_rules_of_rows(suite: Suite, sample_count: SampleCount, metric_assertions: Mapping[str, Asked]) -> None:
    """Refuse rows with rules that nothing would check.

    Raises:
        UsageError: rows have `must` or `must_not`, no tester leads their conversations, and no grader reads them.
    """
    checked = any(map(_may_read_rules, suite.spec.graders.values()))
    checked = checked or any(
        getattr(assertion, "metric_name", None) in READ_RULES for assertion in metric_assertions.values()
    )
    if sample_count.ruled and suite.spec.driver != "penelope" and not checked:
        rows = f"{sample_count.ruled} row{'s have' if sample_count.ruled > 1 else ' has'}"
        rule = f"{rows} 'must' or 'must_not', and no grader reads them; add one with metric: contract"
        raise UsageError(suite.document.problem(("graders",), rule))


def _may_read_rules(grader: AnyGraderSpec) -> bool:
    """Return whether a grader may read the rules of rows; what users write may read anything of a row."""
    if isinstance(grader, FunctionGraderSpec):
        return grader.function != EXPECT and not reads_no_rules(grader.function)
    if isinstance(grader, MetricGraderSpec):
        return grader.metric in READ_RULES or not metrics.is_built_in(grader.metric)
    return not isinstance(grader, RuleGraderSpec | RecordingGraderSpec)


def requirements_of(spec: Mapping[str, Any]) -> dict[str, Severity]:
    """Return the graders of a suite, as it is stored, that every conversation must pass, with what a miss does."""
    known = TypeAdapter(dict[str, AnyGraderSpec]).validate_python(spec.get("graders") or {})
    return {
        name: grader.severity or "fail"
        for name, grader in known.items()
        if isinstance(grader, RuleGraderSpec | FunctionGraderSpec | MetricGraderSpec) and states_requirement(grader)
    }


def states_requirement(grader: AnyGraderSpec) -> bool:
    """Return whether a grader is one that every conversation must pass: the rows' own assertions, or a rule."""
    named_rule = isinstance(grader, MetricGraderSpec) and grader.metric == RULE
    return isinstance(grader, RuleGraderSpec) or named_rule or grades_assertions(grader)


def grades_assertions(grader: AnyGraderSpec) -> bool:
    """Return whether a grader is that of the rows' own assertions."""
    function = grader.function if isinstance(grader, FunctionGraderSpec) else None
    return EXPECT in (function, grader.metric if isinstance(grader, MetricGraderSpec) else None)


@dataclass(frozen=True, slots=True)
class Expectations:
    """Whether rows have assertions, and what these ask of metrics."""

    has_any: bool = False
    metric_assertions: Mapping[str, Asked] = field(default_factory=dict[str, Asked])


def expectations_of(data: object, *, judged: bool) -> Expectations:
    """Return what rows expect; those of a stream are not known yet, and may ask a judge if there is one (`judged`).

    Raises:
        UsageError: an assertion is unknown, malformed, or cannot fail or hold, or a row next to it is wrong.
    """
    assertions = Assertions()
    if isinstance(data, str | Path):
        return Expectations(
            check_samples(data, check=assertions.check, log=True).expecting > 0, assertions.metric_assertions
        )
    if not isinstance(data, Sequence):
        return Expectations(metric_assertions=procedures([Judged(judged="…")]) if judged else {})
    rows = cast("Sequence[Any]", data)
    if not any(map(_expects, rows)):
        return Expectations()
    for _ in lazy("vivavoce.samples.conversations:given_samples")(rows, assertions.check):
        pass
    return Expectations(True, assertions.metric_assertions)


def with_assertions(metrics: Sequence[Named], expectations: Expectations) -> Sequence[Named]:
    """Return metrics with that of assertions, where rows have some and nobody names it."""
    return [*metrics, EXPECT] if expectations.has_any and not any(map(_names_expect, metrics)) else metrics


def _names_expect(metric: Named) -> bool:
    if isinstance(metric, Mapping):
        metric = metric["metric"]
    return isinstance(metric, ExpectMetric) or metric == EXPECT


def without_expect(sample: Sample) -> None:
    """Refuse a row with assertions that nothing would check.

    Raises:
        UsageError: it has some.
    """
    if sample.expect is not None:
        raise UsageError("the row has 'expect', which a stream cannot know in advance; name the metric 'expect', too")


def _expects(row: object) -> bool:
    expect: object = cast("Any", row).get(EXPECT) if isinstance(row, Mapping) else getattr(row, EXPECT, None)
    return expect is not None
