"""Measurements in words: the numbers of metrics that have no best score and no threshold, in their own unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from vivavoce.comparing.thresholds import score_text
from vivavoce.records.details import MeasurementSummary
from vivavoce.report.best_target import target_names
from vivavoce.report.text import count
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe


class Numbered(Protocol):
    """A score of any kind: `value` is from 0 to 1, `measured` the number of a measurement."""

    @property
    def value(self) -> float | None:
        """Its value."""
        ...

    @property
    def measured(self) -> float | None:
        """Its number."""
        ...


class Averaged(Protocol):
    """The scores of a grader: the `mean` of the values, and the measurements."""

    @property
    def mean(self) -> float | None:
        """Their mean."""
        ...

    @property
    def measured(self) -> MeasurementSummary | None:
        """Their summary."""
        ...


def measured_text(number: float) -> str:
    """Return the number of a measurement: `5`, `4.5`, `0.0123`, `12,345`."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def score_number(score: Numbered, digits: int = 2) -> str:
    """Return the value of a score, or the number of a measurement; empty without either."""
    if score.value is not None:
        return score_text(score.value, digits)
    return "" if score.measured is None else measured_text(score.measured)


def mean_text(grader: Averaged, digits: int = 3) -> str:
    """Return the mean of a grader: of its values, else of its measurements; a dash if there is neither."""
    if grader.mean is not None:
        return score_text(grader.mean, digits)
    return "–" if grader.measured is None else measured_text(grader.measured.mean)


def range_text(measured: MeasurementSummary) -> str:
    """Return the lowest and the highest measurement."""
    return f"{measured_text(measured.min)} to {measured_text(measured.max)}"


def measured_lines(summary: Summary) -> Iterator[str]:
    """Yield a sentence for each grader that measures: the mean, the lowest and the highest number."""
    several = len(target_names(summary)) > 1
    for one in summary.graders:
        if one.measured is not None:
            name = safe(f"{one.name} of {one.target}" if several else one.name)
            yield (
                f"{name} measures: mean {measured_text(one.measured.mean)}, from {range_text(one.measured)}, over "
                f"{count(one.measured.n, 'conversation')}; without a threshold nothing passes or fails by it"
            )
