"""The run page: the verdict and what it rests on, the metrics, and the samples, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import APIRouter, Query, Request, Response

from vivavoce.errors import UsageError
from vivavoce.records.run import Grading, Run
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.run import columns, head
from vivavoce.report.html.samples import Line, line
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe
from vivavoce.server.grader_names import check_graders
from vivavoce.server.pages.choosing import compare_with_before
from vivavoce.server.pages.links import run_data, run_page, sample_page, trends_page
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
    wanted: Annotated[str, Query(alias="filter")] = "",
    sort: str = "worst",
    after: str | None = None,
) -> Response:
    """Show one run."""
    store = cast("Store", request.app.state.store)
    held = as_it_stands(store, store.run(run))
    sets = store.gradings(held.id)
    if not sets:
        return page("unscored.html", {"section": "runs", "run": held})
    asked = Asked(store, held, store.grading(held.id, grading), grading is not None, wanted.strip(), sort, after)
    summary = request.app.state.live_summary.summary(GradedRun(store, held, asked.grading))
    live = {"job_link": job_link(request.app.state.jobs, held)}
    found = _found(asked, columns(summary, asked.grading))
    values = {**_head(asked, summary, sets), **_list(asked, summary, found), **live}
    return page("run.html", values, found.status)


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
    status: int = 200


def _head(asked: Asked, summary: Summary, sets: Sequence[Grading]) -> dict[str, object]:
    return {
        **head(asked.run, asked.grading, summary),
        "section": "runs",
        "sets": [(one, run_page(asked.run.id, grading=one.id)) for one in sets] if len(sets) > 1 else [],
        "json_link": run_data(asked.run.id),
        "trends_link": trends_page(suite=asked.run.suite),
        "compare_link": compare_with_before(asked.store, asked.run),
    }


def _list(asked: Asked, summary: Summary, found: _Found) -> dict[str, object]:
    names = columns(summary, asked.grading)
    total = summary.attempts
    heads = [(name, asked.link(sort=name if asked.sort != name else f"-{name}")) for name in names]
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


def _found(asked: Asked, names: Sequence[str]) -> _Found:
    """Return a page of samples; a filter that cannot be read is told where it was typed."""
    try:
        terms = parse_filter(asked.wanted)
        check_graders(asked.grading, terms, asked.sort)
        listed = asked.store.browse.samples(asked.grading.id, terms, sort=asked.sort, after=asked.after, limit=SHOWN)
        count = asked.store.browse.count_samples(asked.grading.id, terms)
    except UsageError as error:
        return _Found(problem=safe("; ".join(map(str, error.problems))), status=answered(error).status)
    lines = [
        line(
            one,
            sample_page(asked.run.id, one.sample_id, trial=one.trial, target=one.target, grading=asked.chosen),
            names,
        )
        for one in listed.samples
    ]
    return _Found(lines, listed.next, count)
