"""A calibration in words and tables, for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.features.calibration.calibration import Bin, CalibrationReport, Figure, Measure
from vivavoce.report.label_agreement import people_lines
from vivavoce.report.markdown import code, table
from vivavoce.report.text import FittingTable, count, figures_table
from vivavoce.report.verdict import corrected_text
from vivavoce.safe_text import safe

NAMES: dict[Measure, str] = {
    "sensitivity": "sensitivity (passes the good)",
    "specificity": "specificity (fails the bad)",
    "accuracy": "accuracy",
    "kappa": "κ",
    "auroc": "AUROC",
    "brier": "Brier score of confidence",
}


_FIGURES = ["measure", "n", "value", "95% interval"]


def heading(report: CalibrationReport) -> str:
    """Return what was compared."""
    if not report.labels:
        return safe(f"{report.grader} of run {report.run} has no label that can be compared with a score")
    sample = "all drawn at random" if report.drawn == report.labels else f"{report.drawn:,} of them drawn at random"
    return safe(f"{report.grader} of run {report.run}: {count(report.labels, 'label')}, {sample}")


def closing(report: CalibrationReport) -> Iterator[str]:
    """Yield the corrected rates, what cannot be stated, and how many more labels would narrow the interval."""
    for rate in report.rates:
        if rate.rate.value is not None:
            name = f"{rate.target}: " if len(report.rates) > 1 else ""
            yield safe(f"{name}{corrected_text(rate.rate, report.run)}")
    yield from (safe(f"note: {line}") for line in report.notes)
    yield needed_line(report)


def needed_line(report: CalibrationReport) -> str:
    """Return how many more labels a wanted interval takes."""
    need = report.needed
    target = f"a 95% rate interval {need.width:.1%} wide"
    now = "" if need.now is None else f"; it is {need.now:.1%} wide now"
    if need.labels is None:
        rest = f"labelling all {need.unlabelled:,} others would not be enough" if need.unlabelled else "all labelled"
        return f"{target} needs more conversations, not only more labels: {rest}{now}"
    if not need.labels:
        return f"the labels are enough for {target}{now}"
    more = "more label" if report.drawn else "label"
    return f"{target} needs about {count(need.labels, more)} of randomly sampled conversations{now}"


def terminal_lines(report: CalibrationReport) -> Iterator[str | FittingTable]:
    """Yield a calibration as lines of text and tables."""
    yield heading(report)
    if report.drawn:
        yield ""
        yield figures_table(["", "people pass", "people fail"], _verdicts(report))
        yield ""
        yield figures_table(_FIGURES, [*map(_figure, report.figures)])
    if report.bins:
        yield ""
        yield figures_table(["confidence", "n", "said", "right", "95% interval"], [*map(_bin, report.bins)])
    for section in report.slices:
        yield ""
        yield safe(f"{section.kind} {section.name}: {count(section.labels, 'label')}")
        yield figures_table(_FIGURES, [*map(_figure, section.figures)])
    yield ""
    yield from people_lines(report.people)
    yield from closing(report)


def markdown_lines(report: CalibrationReport) -> Iterator[str]:
    """Yield a calibration as Markdown."""
    yield f"**{code(heading(report), 400)}**"
    yield ""
    if report.drawn:
        yield from table(["", "people pass", "people fail"], "lrr", _verdicts(report))
        yield ""
        yield from table(_FIGURES, "lrrr", map(_figure, report.figures))
        yield ""
    if report.bins:
        yield from table(["confidence", "n", "said", "right", "95% interval"], "lrrrr", map(_bin, report.bins))
        yield ""
    for section in report.slices:
        yield f"{section.kind} {code(section.name)}: {count(section.labels, 'label')}"
        yield ""
        yield from table(_FIGURES, "lrrr", map(_figure, section.figures))
        yield ""
    for line in (*people_lines(report.people), *closing(report)):
        yield f"- {code(line, 400)}"


def _verdicts(report: CalibrationReport) -> list[list[str]]:
    return [
        ["judge passes", f"{report.both_pass:,}", f"{report.too_lenient:,}"],
        ["judge fails", f"{report.too_strict:,}", f"{report.both_fail:,}"],
    ]


def _figure(figure: Figure) -> list[str]:
    return [NAMES[figure.name], f"{figure.n:,}", decimal(figure.value), interval(figure.low, figure.high)]


def _bin(row: Bin) -> list[str]:
    ends = f"{row.low_end:.0%} … {row.high_end:.0%}"
    return [ends, f"{row.n:,}", f"{row.said:.3f}", f"{row.right:.3f}", interval(row.low, row.high)]


def decimal(value: float | None) -> str:
    """Return a figure with three decimals and no minus before a zero, a dash where there is none."""
    return "–" if value is None else f"{round(value, 3) + 0.0:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """Return the ends of an interval, a dash where there is none."""
    return "–" if low is None or high is None else f"{low:.3f} … {high:.3f}"
