"""A choice of thresholds in words and a table, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.features.calibration.calibration import Figure
from vivavoce.features.calibration.cascade import CascadeReport, CascadeRow
from vivavoce.features.calibration.report import decimal, interval
from vivavoce.report.text import FittingTable, count, figures_table
from vivavoce.safe_text import safe

_HEAD = ("on the labels to report", "goes on")
_FIGURES = ("accuracy", "95% interval", "κ", "95% interval")
_RANKS = (0, 0, 0, 0, 1, 2, 2)


def cascade_lines(found: CascadeReport) -> Iterator[str | FittingTable]:
    """Yield what was chosen, the figures of the whole next to those of each judge, and the line for the suite."""
    halves = f", {found.chosen_on:,} to choose by and {found.reported_on:,} to report" if found.labels else ""
    yield safe(f"{found.first}, then {found.then} of run {found.run}: {count(found.labels, 'label')}{halves}")
    if found.rows:
        yield ""
        yield figures_table([*_HEAD, found.unit, *_FIGURES], [_row(row, found) for row in found.rows], _RANKS)
    yield ""
    yield safe(f"nothing is chosen: {found.why}" if found.why else _chosen(found))
    yield from (safe(f"note: {line}") for line in found.notes)
    if found.why is None:
        yield ""
        yield from _suite(found)


def _row(one: CascadeRow, found: CascadeReport) -> list[str]:
    names = {"first": f"{found.first} alone", "then": f"{found.then} alone", "cascade": "the cascade"}
    asked = "–" if one.name == "first" else f"{one.asked:.1%}"
    cost = "–" if one.cost is None else f"{one.cost:.1%}"
    return [safe(names[one.name]), asked, cost, *_figure(one.accuracy), *_figure(one.kappa)]


def _figure(one: Figure) -> tuple[str, str]:
    return decimal(one.value), interval(one.low, one.high)


def _chosen(found: CascadeReport) -> str:
    low = "" if found.fails_below is None else f"below {found.fails_below:g} it fails"
    high = "" if found.passes_from is None else f"from {found.passes_from:g} it passes"
    decided = " and ".join(part for part in (low, high) if part)
    return f"{decided} by {found.first}; of the rest {found.then} decides"


def _suite(found: CascadeReport) -> Iterator[str]:
    if found.line is None:
        yield safe(
            f"a suite cannot express this: {found.first} differs from {found.then} in more than a model or a metric"
        )
        return
    yield "write under graders, instead of both, and calibrate the whole as any other judge:"
    yield safe(f"  {found.then}:")
    yield "    …"
    yield safe(f"    {found.line}")
