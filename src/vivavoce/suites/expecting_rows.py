"""What the rows of an evaluation in Python expect: found out before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.grading.asked import Asked, Judged, procedures
from vivavoce.grading.expect_metric import ExpectMetric
from vivavoce.metrics.evaluation import Named
from vivavoce.samples.given import given_samples
from vivavoce.samples.rows import check_samples
from vivavoce.samples.sample import Sample
from vivavoce.suites.expecting import EXPECT, Assertions


@dataclass(frozen=True, slots=True)
class Expectations:
    """Whether rows have assertions, and what these ask of metrics."""

    found: bool = False
    asked: Mapping[str, Asked] = field(default_factory=dict[str, Asked])


def expectations_of(data: object, *, judged: bool) -> Expectations:
    """Return what rows expect; those of a stream are not known yet, and may ask a judge if there is one (`judged`).

    Raises:
        UsageError: an assertion is unknown, malformed, or cannot fail or hold, or a row beside it is wrong.
    """
    assertions = Assertions()
    if isinstance(data, str | Path):
        return Expectations(check_samples(data, check=assertions.check, log=True).expecting > 0, assertions.asked)
    if not isinstance(data, Sequence):
        return Expectations(asked=procedures([Judged(judged="…")]) if judged else {})
    rows = cast("Sequence[Any]", data)
    if not any(map(_expects, rows)):
        return Expectations()
    for _ in cast("Any", given_samples(rows, assertions.check)):
        pass
    return Expectations(True, assertions.asked)


def with_assertions(metrics: Sequence[Named], expectations: Expectations) -> Sequence[Named]:
    """Return metrics with that of assertions, where rows have some and nobody names it."""
    return [*metrics, EXPECT] if expectations.found and not any(map(_names_expect, metrics)) else metrics


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
        raise UsageError("the row has 'expect', which a stream does not say beforehand; name the metric 'expect', too")


def _expects(row: object) -> bool:
    found: object = cast("Any", row).get(EXPECT) if isinstance(row, Mapping) else getattr(row, EXPECT, None)
    return found is not None
