"""`Point`: one run in a trend, and the step to it from the run before."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict

from vivavoce.records.details import MeasurementSummary
from vivavoce.records.run import Status, Verdict
from vivavoce.report.changes import Change
from vivavoce.report.measurements import measured_text


class Step(BaseModel):
    """A mean minus that of the run `since`, with the 95% interval, None if one of the two has none."""

    model_config = ConfigDict(frozen=True)

    since: str
    difference: float
    low: float | None = None
    high: float | None = None

    @property
    def sure(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


class Point(BaseModel):
    """A run as a trend shows it; without a `mean` it has no score, of which `stopped` may say why.

    `low` and `high` are the 95% interval of the mean, `gate` the mean from which on the gate lets it pass, where the
    suite says so, and `failed` that the gate did not. `breaks` marks a run whose scores are not comparable with earlier
    ones: the grader changed, or that is unknown. `step` is that from the last run with a score. `changes` are those
    since the run before. `tester_errors`, the rates of passing and `population` are those of the summary.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    started_at: float
    status: Status
    version: str
    verdict: Verdict | None = None
    target: str | None = None
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    scored: int = 0
    errors: int = 0
    skipped: int = 0
    tester_errors: int = 0
    pass_rate: float | None = None
    raw_pass_rate: float | None = None
    highest_pass_rate: float | None = None
    population: int | None = None
    measured: MeasurementSummary | None = None
    stopped: str | None = None
    gate: float | None = None
    failed: bool = False
    breaks: bool = False
    step: Step | None = None
    changes: list[Change]

    @property
    def why_unscored(self) -> str:
        """Why it has no mean, in a word or two."""
        if self.status == "running":
            return "still running"
        if self.measured is not None:
            return f"measured {measured_text(self.measured.mean)}"
        if self.errors:
            return "error, no score"
        return "all skipped" if self.skipped else "not graded"


def step_between(before: Point, after: Point) -> Step | None:
    """Return the difference of two means, None if one of them is missing.

    The interval takes them for independent, which two runs of the same samples are not: matched sample by sample it is
    narrower, as `compare` has it.

    Source: G. Y. Zou and A. Donner, Construction of confidence limits about effect measures: a general approach,
    Statistics in Medicine 27 (2008): the limits from those of the two means.
    """
    if before.mean is None or after.mean is None:
        return None
    difference = after.mean - before.mean
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return Step(since=before.run, difference=difference)
    below = math.hypot(after.mean - after.low, before.high - before.mean)
    above = math.hypot(after.high - after.mean, before.mean - before.low)
    return Step(since=before.run, difference=difference, low=difference - below, high=difference + above)
