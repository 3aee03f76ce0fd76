"""A corrected rate in words, the same in every report: the judge's own rate always stands beside it."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.records.label import CorrectedRate
from vivavoce.report.best_target import target_names
from vivavoce.report.text import count
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe


def corrected_lines(summary: Summary, run_id: str) -> Iterator[str]:
    """Yield a sentence for each grader whose judge was calibrated."""
    several = len(target_names(summary)) > 1
    for one in summary.graders:
        if one.corrected is not None:
            name = f"{one.name} of {one.target}" if several else one.name
            yield safe(f"{name}: {corrected_text(one.corrected, run_id)}")


def corrected_text(rate: CorrectedRate, run_id: str) -> str:
    """Return what the labels of people make of a rate of the judge, or why they make nothing of it."""
    raw = "" if rate.raw is None else f"{rate.raw:.1%} pass by the judge, "
    if rate.value is None or rate.low is None or rate.high is None:
        return f"{raw}not corrected: {rate.why}"
    of = "of this run" if rate.labels_of == run_id else f"of run {rate.labels_of}"
    return (
        f"{raw}{rate.value:.1%} corrected [{rate.low:.1%}, {rate.high:.1%}] by {count(rate.labels, 'label')} {of} "
        f"({_METHODS[rate.method or 'rogan_gladen']})"
    )


_METHODS = {"prediction_powered": "prediction-powered", "rogan_gladen": "Rogan–Gladen"}
