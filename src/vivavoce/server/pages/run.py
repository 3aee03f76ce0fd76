"""The run page: the verdict and its conditions, the metrics, and the samples, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, cast

from fastapi import APIRouter, Query, Request, Response

from vivavoce.errors import UsageError
from vivavoce.records.run import Grading, Run
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.by_target import LARGEST, by_target
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
from vivavoce.server.pages.views import views_menu
from vivavoce.server.statuses import answered
from vivavoce.store.browse.filter import parse_filter
from vivavoce.store.browse.status import RANK, SampleStatus
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
    first: Annotated[int, Query(alias="n", ge=1, lt=2**31)] = 1,
) -> Response:
    """Show one run."""
    store = cast("Store", request.app.state.store)
    held = as_it_stands(store, store.run(run))
    sets = store.gradings(held.id)
    if not sets:
        return page("unscored.html", {"section": "runs", "run": held})
    view = RunView(
        store, held, store.grading(held.id, grading), grading is not None, filter_text.strip(), sort, after, first
    )
    summary = request.app.state.live_summary.summary(GradedRun(store, held, view.grading))
    live = {"menu": views_menu(request), "job_link": job_link(request.app.state.jobs, held)}
    found = _found(view, columns(summary, view.grading))
    table = {"by_target": by_target(GradedRun(store, held, view.grading), summary, view.conversation)}
    values = {**_head(view, summary, sets), **_list(view, summary, found), **live, **table}
    return page("run.html", values, found.status)


@dataclass(frozen=True, slots=True)
class RunView:
    """The request; `named` means that the address names the set of scores.

    `first` is the number of the first sample of the page in the list, from 1.
    """

    store: Store
    run: Run
    grading: Grading
    named: bool
    filter_text: str
    sort: str
    after: str | None
    first: int = 1

    @property
    def chosen(self) -> str | None:
        """The set of scores, if the address names it."""
        return self.grading.id if self.named else None

    @property
    def kept(self) -> dict[str, str | None]:
        """The filter and the order, where they are not the usual ones."""
        return {"filter": self.filter_text or None, "sort": None if self.sort == "worst" else self.sort}

    def conversation(self, sample: str, target: str) -> str:
        """Return the address of the conversation of a sample with a target."""
        return sample_page(self.run.id, sample, target=target, grading=self.chosen)

    def link(self, **changed: str | None) -> str:
        """Return the address of the list with changed parameters, from its first page."""
        return f"{run_page(self.run.id, grading=self.chosen, **{**self.kept, **changed})}#samples"

    def column(self, name: str, *, highest_first: bool = False) -> SortLink:
        """Return the head of a column: a click sorts by it, and one more in the other direction."""
        ways = (f"-{name}", name) if highest_first else (name, f"-{name}")
        now = ways[1] if self.sort == ways[0] else ways[0]
        shown = self.sort if self.sort in ways else None
        return SortLink(self.link(sort=now), None if shown is None else "down" if shown.startswith("-") else "up")


@dataclass(frozen=True, slots=True)
class SortLink:
    """The head of a column: where a click leads, and which way the list is sorted by it now, if it is."""

    href: str
    way: Literal["up", "down"] | None


@dataclass(frozen=True, slots=True)
class StateCount:
    """How many samples are in a state, None if that is not counted; `here` where their list is the one shown."""

    state: SampleStatus
    number: int | None
    link: str
    here: bool


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
    heads = [(name, view.column(name)) for name in names]
    return {
        "filter_text": view.filter_text,
        "sort": view.sort,
        "chosen": view.chosen,
        "found": found,
        "total": total,
        "heads": heads,
        "by_place": view.column("position"),
        "by_worst": SortLink(view.link(sort=None), "up" if view.sort == "worst" else None),
        "by_turns": view.column("turns", highest_first=True),
        "by_seconds": view.column("seconds", highest_first=True),
        "states": _states(view, total),
        "first": view.first if view.after else 1,
        "without_filter": view.link(filter=None),
        "next_page": _next_page(view, found),
        "first_page": view.link() if view.after else None,
        "here": run_page(view.run.id),
    }


def _next_page(view: RunView, found: _Found) -> str | None:
    if found.following is None:
        return None
    start = view.first if view.after else 1
    return view.link(after=found.following, n=str(start + len(found.lines)))


def _states(view: RunView, total: int) -> list[StateCount]:
    """Return the states of samples, whatever the filter lets through; those of a large run are not counted."""
    counts = dict.fromkeys(RANK) if total > LARGEST else view.store.browse.states(view.grading.id)
    return [
        StateCount(state, number, view.link(filter=f"state:{state}"), view.filter_text == f"state:{state}")
        for state, number in counts.items()
    ]


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
            sample_page(
                view.run.id,
                one.sample_id,
                trial=one.trial,
                target=one.target,
                grading=view.chosen,
                filter=view.kept["filter"],
                sort=view.kept["sort"],
            ),
            names,
        )
        for one in listed.samples
    ]
    return _Found(lines, listed.next, count)
