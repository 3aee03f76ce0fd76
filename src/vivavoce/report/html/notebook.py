"""A run as a notebook shows it: the verdict, the metrics with their intervals, and the worst samples with why."""

from __future__ import annotations

from contextlib import closing

from markupsafe import Markup

from vivavoce.errors import VivavoceError
from vivavoce.records.run import Grading, Run
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.rendering import STATIC, rendered
from vivavoce.report.html.run import head
from vivavoce.report.html.samples import Line, line
from vivavoce.run.result import RunResult
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe
from vivavoce.store.store import Store

SHOWN = 5
"""Samples that are shown."""


def result_html(result: RunResult) -> str:
    """Return a result as a piece of HTML; if its store cannot be read any more, it says so."""
    try:
        with closing(Store.open(result.place, create=False)) as store:
            return _html(result.run, result.grading, result.summary, _worst(store, result.grading))
    except VivavoceError as error:
        return _html(result.run, result.grading, result.summary, [], safe(str(error)))


def graded_html(graded: GradedRun) -> str:
    """Return a graded run as a piece of HTML."""
    return _html(graded.run, graded.grading, graded.summary(), _worst(graded.store, graded.grading))


def _worst(store: Store, grading: Grading) -> list[Line]:
    found = [line(one, "", ()) for one in store.browse.samples(grading.id, sort="worst", limit=SHOWN).samples]
    return [one for one in found if one.state not in ("pass", "measured", "skip")]


def _html(run: Run, grading: Grading, summary: Summary, worst: list[Line], problem: str = "") -> str:
    values = {
        **head(run, grading, summary),
        "worst": worst,
        "problem": problem,
        "style": Markup((STATIC / "notebook.css").read_text("utf-8")),
    }
    return rendered("notebook.html", values).decode()
