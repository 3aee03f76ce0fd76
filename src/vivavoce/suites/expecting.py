"""The assertions of rows in a suite: each is checked before anything runs, and one grader grades them all."""

from __future__ import annotations

from dataclasses import replace

from vivavoce.errors import UsageError
from vivavoce.grading.expected import read_expect
from vivavoce.samples.rows import SampleCount
from vivavoce.samples.sample import Sample
from vivavoce.suites.grader_spec import AnyGraderSpec, FunctionGraderSpec, MetricGraderSpec
from vivavoce.suites.load import Suite

EXPECT = "expect"
"""The name of the grader of assertions, of its function, and of the field of a row."""


def check_expect(sample: Sample) -> None:
    """Check the assertions of a row.

    Raises:
        UsageError: one is unknown, malformed, or cannot fail or hold.
    """
    if sample.expect is not None:
        read_expect(sample.expect)


def with_expect(suite: Suite, found: SampleCount) -> Suite:
    """Return a suite that grades the assertions of its rows: where there are any and it has no grader of that name.

    Raises:
        UsageError: nothing would be graded.
    """
    graders = suite.spec.graders
    if not graders and not found.expecting:
        rule = "the key 'graders' is missing, and no row has an 'expect'"
        raise UsageError(suite.document.problem((), rule))
    if not found.expecting or EXPECT in graders:
        return suite
    own = FunctionGraderSpec(kind="function", function=EXPECT)
    return replace(suite, spec=suite.spec.model_copy(update={"graders": {**graders, EXPECT: own}}))


def grades_assertions(grader: AnyGraderSpec) -> bool:
    """Return whether a grader is that of the rows' own assertions."""
    named = grader.function if isinstance(grader, FunctionGraderSpec) else None
    return EXPECT in (named, grader.metric if isinstance(grader, MetricGraderSpec) else None)
