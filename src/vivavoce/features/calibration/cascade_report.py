"""A choice of thresholds in words and a table, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.features.calibration.calibration import Figure
from vivavoce.features.calibration.cascade import CascadeReport, CascadeRow
from vivavoce.features.calibration.report import decimal, interval
from vivavoce.report.text import FittingTable, count, figures_table
from vivavoce.safe_text import safe

_HEAD = ("on the held-out labels", "escalated")
_FIGURES = ("accuracy", "95% interval", "κ", "95% interval")
_RANKS = (0, 0, 0, 0, 1, 2, 2)


def cascade_lines(report: CascadeReport) -> Iterator[str | FittingTable]:
    """Yield what was chosen, the figures of the whole next to those of each judge, and the line for the suite."""
    halves = ""
    if report.labels:
        halves = f", {report.chosen_on:,} to choose thresholds and {report.reported_on:,} to report"
    yield safe(f"{report.first}, then {report.then} of run {report.run}: {count(report.labels, 'label')}{halves}")
    if report.rows:
        yield ""
        yield figures_table([*_HEAD, report.unit, *_FIGURES], [_row(row, report) for row in report.rows], _RANKS)
    yield ""
    yield safe(f"no thresholds chosen: {report.why}" if report.why else _describe_choice(report))
    yield from (safe(f"note: {line}") for line in report.notes)
    if report.why is None:
        yield ""
        yield from _suite(report)


def _row(row: CascadeRow, report: CascadeReport) -> list[str]:
    names = {"first": f"{report.first} alone", "then": f"{report.then} alone", "cascade": "the cascade"}
    share = "–" if row.name == "first" else f"{row.asked:.1%}"
    cost = "–" if row.cost is None else f"{row.cost:.1%}"
    return [safe(names[row.name]), share, cost, *_figure(row.accuracy), *_figure(row.kappa)]


def _figure(figure: Figure) -> tuple[str, str]:
    return decimal(figure.value), interval(figure.low, figure.high)


def _describe_choice(report: CascadeReport) -> str:
    low = "" if report.fails_below is None else f"fails below {report.fails_below:g}"
    high = "" if report.passes_from is None else f"passes from {report.passes_from:g}"
    decided = " and ".join(part for part in (low, high) if part)
    return f"{report.first}: {decided}; {report.then} decides the rest"


def _suite(report: CascadeReport) -> Iterator[str]:
    if report.line is None:
        yield safe(
            f"a suite cannot express this: {report.first} differs from {report.then} in more than a model or a metric"
        )
        return
    yield "replace both graders with this one, and calibrate it like any other judge:"
    yield safe(f"  {report.then}:")
    yield "    …"
    yield safe(f"    {report.line}")
