"""The run page: the verdict and its conditions, the metrics, and the samples, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import APIRouter, Query, Request, Response

from vivavoce.errors import UsageError
from vivavoce.records.run import Grading, Run
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.by_target import by_target
from vivavoce.report.html.run import columns, head
from vivavoce.report.html.samples import Line, line
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe
from vivavoce.server.grader_names import check_graders
from vivavoce.server.pages.choosing import compare_with_before
from vivavoce.server.pages.links import clusters_page, run_data, run_page, sample_page, trends_page
from vivavoce.server.pages.live import as_it_stands, job_link
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.statuses import answered
from vivavoce.store.browse.filter import parse_filter
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

SHOWN = 50
"""Samples on one page."""


@router.get("/runs/{run}")
def run(
    request: Request,
    run: str,
    grading: str | None = None,
    filter_text: Annotated[str, Query(alias="filter")] = "",
    sort: str = "worst",
    after: str | None = None,
) -> Response:
    """Show one run."""
    store = cast("Store", request.app.state.store)
    held = as_it_stands(store, store.run(run))
    sets = store.gradings(held.id)
    if not sets:
        return page("unscored.html", {"section": "runs", "run": held})
    view = RunView(store, held, store.grading(held.id, grading), grading is not None, filter_text.strip(), sort, after)
    summary = request.app.state.live_summary.summary(GradedRun(store, held, view.grading))
    live = {"job_link": job_link(request.app.state.jobs, held)}
    found = _found(view, columns(summary, view.grading))
    table = {"by_target": by_target(GradedRun(store, held, view.grading), summary, view.conversation)}
    values = {**_head(view, summary, sets), **_list(view, summary, found), **live, **table}
    return page("run.html", values, found.status)


@dataclass(frozen=True, slots=True)
class RunView:
    """The request; `named` means that the address names the set of scores."""

    store: Store
    run: Run
    grading: Grading
    named: bool
    filter_text: str
    sort: str
    after: str | None

    @property
    def chosen(self) -> str | None:
        """The set of scores, if the address names it."""
        return self.grading.id if self.named else None

    def conversation(self, sample: str, target: str) -> str:
        """Return the address of the conversation of a sample with a target."""
        return sample_page(self.run.id, sample, target=target, grading=self.chosen)

    def link(self, **changed: str | None) -> str:
        """Return the address of the list with changed parameters, from its first page."""
        kept = {"filter": self.filter_text or None, "sort": None if self.sort == "worst" else self.sort}
        return run_page(self.run.id, grading=self.chosen, **{**kept, **changed})


@dataclass(frozen=True, slots=True)
class _Found:
    """Some samples; `problem` says what is wrong with the request."""

    lines: list[Line] = field(default_factory=list[Line])
    following: str | None = None
    count: int = 0
    problem: str = ""
    status: int = 200


def _head(view: RunView, summary: Summary, sets: Sequence[Grading]) -> dict[str, object]:
    return {
        **head(view.run, view.grading, summary),
        "section": "runs",
        "sets": [(one, run_page(view.run.id, grading=one.id)) for one in sets] if len(sets) > 1 else [],
        "json_link": run_data(view.run.id),
        "clusters_link": clusters_page(view.run.id, grading=view.chosen),
        "trends_link": trends_page(suite=view.run.suite),
        "compare_link": compare_with_before(view.store, view.run),
    }


def _list(view: RunView, summary: Summary, found: _Found) -> dict[str, object]:
    names = columns(summary, view.grading)
    total = summary.attempts
    heads = [(name, view.link(sort=name if view.sort != name else f"-{name}")) for name in names]
    return {
        "filter_text": view.filter_text,
        "sort": view.sort,
        "chosen": view.chosen,
        "found": found,
        "total": total,
        "heads": heads,
        "by_place": view.link(sort="position"),
        "by_worst": view.link(sort=None),
        "by_turns": view.link(sort="-turns" if view.sort != "-turns" else "turns"),
        "by_seconds": view.link(sort="-seconds" if view.sort != "-seconds" else "seconds"),
        "without_filter": view.link(filter=None),
        "next_page": view.link(after=found.following) if found.following else None,
        "first_page": view.link() if view.after else None,
        "here": run_page(view.run.id),
    }


def _found(view: RunView, names: Sequence[str]) -> _Found:
    """Return a page of samples; an invalid filter is reported beside the input field."""
    try:
        terms = parse_filter(view.filter_text)
        check_graders(view.grading, terms, view.sort)
        listed = view.store.browse.samples(view.grading.id, terms, sort=view.sort, after=view.after, limit=SHOWN)
        count = view.store.browse.count_samples(view.grading.id, terms)
    except UsageError as error:
        return _Found(problem=safe("; ".join(map(str, error.problems))), status=answered(error).status)
    lines = [
        line(
            one,
            sample_page(view.run.id, one.sample_id, trial=one.trial, target=one.target, grading=view.chosen),
            names,
        )
        for one in listed.samples
    ]
    return _Found(lines, listed.next, count)
