"""The assertions of rows in a suite: each is checked before anything runs, and one grader grades them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from vivavoce.errors import UsageError
from vivavoce.grading.asked import Asked, procedures
from vivavoce.grading.expected import read_expect
from vivavoce.samples.rows import SampleCount
from vivavoce.samples.sample import Sample
from vivavoce.suites.grader_spec import AnyGraderSpec, FunctionGraderSpec, MetricGraderSpec
from vivavoce.suites.load import Suite

EXPECT = "expect"
"""The name of the grader of assertions, of its function, and of the field of a row."""


@dataclass(frozen=True, slots=True)
class Assertions:
    """The assertions of rows: those of each row are checked, and what they ask of metrics is kept."""

    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])

    def check(self, sample: Sample) -> None:
        """Check the assertions of a row.

        Raises:
            UsageError: one is unknown, malformed, or cannot fail or hold.
        """
        if sample.expect is not None:
            self.asked.update(procedures(part for one in read_expect(sample.expect) for part in one.asked))


def asks_judge(asked: Mapping[str, Asked]) -> bool:
    """Return whether assertions ask a judge."""
    return any(one.asks for one in asked.values())


def questions(sample: Sample) -> int:
    """Return how many of the assertions of a row, which have been checked, ask a judge."""
    if sample.expect is None:
        return 0
    return sum(part.asks for one in read_expect(sample.expect) for part in one.asked)


def with_expect(suite: Suite, found: SampleCount, asked: Mapping[str, Asked]) -> Suite:
    """Return a suite that grades the assertions of its rows: where there are any and it has no grader of that name.

    `asked` is what they ask of metrics.

    Raises:
        UsageError: nothing would be graded.
    """
    graders = suite.spec.graders
    if not graders and not found.expecting:
        rule = "the key 'graders' is missing, and no row has an 'expect'"
        raise UsageError(suite.document.problem((), rule))
    if not found.expecting or any(map(grades_assertions, graders.values())):
        return suite
    if EXPECT in graders:
        rule = (
            f"the rows have an {EXPECT!r}, and {EXPECT} is the grader of their assertions; give this one another name"
        )
        raise UsageError(suite.document.problem(("graders", EXPECT), rule))
    own: AnyGraderSpec = FunctionGraderSpec(kind="function", function=EXPECT)
    if asks_judge(asked):
        own = MetricGraderSpec(kind="metric", metric=EXPECT, model=suite.judge)
    return replace(suite, spec=suite.spec.model_copy(update={"graders": {**graders, EXPECT: own}}))


def grades_assertions(grader: AnyGraderSpec) -> bool:
    """Return whether a grader is that of the rows' own assertions."""
    named = grader.function if isinstance(grader, FunctionGraderSpec) else None
    return EXPECT in (named, grader.metric if isinstance(grader, MetricGraderSpec) else None)
