"""The run page: the verdict and what it rests on, the metrics, and the samples, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import APIRouter, Query, Request, Response

from vivavoce.errors import UsageError
from vivavoce.records.run import Grading, Run
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.metrics import conditions, gate_of, gates_of, metrics, scale_of
from vivavoce.report.html.samples import Line, line
from vivavoce.report.terminal import agreement_line, tester_lines
from vivavoce.report.text import safe
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.server.pages.links import run_data, run_page, sample_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.store.browsing import count_samples, list_samples
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

SHOWN = 50
"""Samples on one page."""
COLUMNS = 3
"""Graders that have a column of their own in the list of samples."""


@router.get("/runs/{run}")
def run(
    request: Request,
    run: str,
    grading: str | None = None,
    wanted: Annotated[str, Query(alias="filter")] = "",
    sort: str = "worst",
    after: str | None = None,
) -> Response:
    """Show one run."""
    store = cast("Store", request.app.state.store)
    found = store.run(run)
    sets = store.gradings(found.id)
    if not sets:
        return page("unscored.html", {"section": "runs", "run": found})
    asked = Asked(store, found, store.grading(found.id, grading), grading is not None, wanted.strip(), sort, after)
    summary = GradedRun(store, found, asked.grading).summary()
    return page("run.html", {**_head(asked, summary, sets), **_list(asked, summary)})


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for; `named` says that the address names the set of scores."""

    store: Store
    run: Run
    grading: Grading
    named: bool
    wanted: str
    sort: str
    after: str | None

    @property
    def chosen(self) -> str | None:
        """The set of scores, where the address names it."""
        return self.grading.id if self.named else None

    def link(self, **changed: str | None) -> str:
        """Return the address of the list with something changed; a change begins it again."""
        kept = {"filter": self.wanted or None, "sort": None if self.sort == "worst" else self.sort}
        return run_page(self.run.id, grading=self.chosen, **{**kept, **changed})


@dataclass(frozen=True, slots=True)
class _Found:
    """Some samples; `problem` says what is wrong with what was asked for."""

    lines: list[Line] = field(default_factory=list[Line])
    following: str | None = None
    count: int = 0
    problem: str = ""


def _head(asked: Asked, summary: Summary, sets: Sequence[Grading]) -> dict[str, object]:
    gates = gates_of(asked.grading)
    scale = scale_of(summary, gates)
    running = asked.run.status == "running"
    lines = [*tester_lines(summary), *map(agreement_line, summary.agreement)]
    return {
        "section": "runs",
        "run": asked.run,
        "grading": asked.grading,
        "sets": [(one, run_page(asked.run.id, grading=one.id)) for one in sets] if len(sets) > 1 else [],
        "summary": summary,
        "verdict_word": "inconclusive" if summary.stopped and not running else summary.verdict,
        "headline": headline(summary, asked.grading),
        "conditions": conditions(summary),
        "scale": scale,
        "metrics": metrics(summary, scale, gates, provisional=running),
        "several": len({one.target for one in summary.graders}) > 1,
        "targets": sorted({safe(one.target) for one in summary.graders}),
        "lines": [one.plain for one in lines],
        "trials": [one for one in summary.graders if one.pass_hat],
        "most_trials": max((max(one.pass_hat) for one in summary.graders if one.pass_hat), default=0),
        "description": asked.run.spec.get("description"),
        "json_link": run_data(asked.run.id),
    }


def headline(summary: Summary, grading: Grading) -> GraderSummary | None:
    """Return the grader that a run is known by: that of its gate, else the reward, else the first."""
    for key in (gate_of(grading).get("metric_key"), "reward"):
        if found := next((one for one in summary.graders if one.name == key), None):
            return found
    return next(iter(summary.graders), None)


def _list(asked: Asked, summary: Summary) -> dict[str, object]:
    columns = _columns(asked, summary)
    found = _found(asked, columns)
    total = summary.attempts
    heads = [(name, asked.link(sort=name if asked.sort != name else f"-{name}")) for name in columns]
    return {
        "wanted": asked.wanted,
        "sort": asked.sort,
        "chosen": asked.chosen,
        "found": found,
        "total": total,
        "heads": heads,
        "by_place": asked.link(sort="position"),
        "by_worst": asked.link(sort=None),
        "by_turns": asked.link(sort="-turns" if asked.sort != "-turns" else "turns"),
        "by_seconds": asked.link(sort="-seconds" if asked.sort != "-seconds" else "seconds"),
        "without_filter": asked.link(filter=None),
        "next_page": asked.link(after=found.following) if found.following else None,
        "first_page": asked.link() if asked.after else None,
        "here": run_page(asked.run.id),
    }


def _columns(asked: Asked, summary: Summary) -> list[str]:
    first = headline(summary, asked.grading)
    names = [*([first.name] if first else []), *(one.name for one in summary.graders)]
    return list(dict.fromkeys(names))[:COLUMNS]


def _found(asked: Asked, columns: Sequence[str]) -> _Found:
    """Return a page of samples; a filter that cannot be read is told where it was typed."""
    try:
        listed = list_samples(
            asked.store, asked.grading.id, asked.wanted, sort=asked.sort, after=asked.after, limit=SHOWN
        )
        count = count_samples(asked.store, asked.grading.id, asked.wanted)
    except UsageError as error:
        return _Found(problem=safe("; ".join(map(str, error.problems))))
    lines = [
        line(
            one,
            sample_page(asked.run.id, one.sample_id, trial=one.trial, target=one.target, grading=asked.chosen),
            columns,
        )
        for one in listed.samples
    ]
    return _Found(lines, listed.next, count)
