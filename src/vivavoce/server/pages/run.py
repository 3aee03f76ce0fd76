"""The page of a run: its results, its samples by a filter and an order, and what plugins add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from vivavoce.errors import UsageError
from vivavoce.extensions import Page, PageLine, PagePart, PageSection, answers, answers_of
from vivavoce.records.run import Grading, Run
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.run import MAX_CONVERSATIONS, by_target, draw_bars, head
from vivavoce.report.html.samples import Column, Line, all_columns, chosen_columns, line, usual_columns
from vivavoce.report.verdict import error_groups
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe
from vivavoce.server.pages.forms import form_key
from vivavoce.server.pages.links import Value, run_data, run_page, sample_page
from vivavoce.server.pages.live import job_link
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.pages.views import views_menu
from vivavoce.server.requested_metrics import check_graders
from vivavoce.server.state import server_of, store_of
from vivavoce.server.statuses import answered
from vivavoce.server.users import user_of
from vivavoce.store.browse.filter import parse_filter
from vivavoce.store.runs.rows import RANK, SampleStatus
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

SHOWN = 50
"""Samples on one page."""
DRAWN = 5000
"""Conversations of a run up to which histograms are drawn at once."""
GRADERS_DRAWN = 12
"""Graders that have a histogram."""
CAUSES = 10
"""Causes of errors that are listed."""


class Asked(BaseModel):
    """What an address asks of the page of a run; `n` is the number of the first sample on it."""

    model_config = ConfigDict(frozen=True)

    grading: str | None = None
    filter: str = ""
    sort: str = "worst"
    columns: list[str] = Field(default_factory=list[str], max_length=100)
    histograms: bool = False
    after: str | None = None
    before: str | None = None
    n: int = Field(1, ge=1, lt=2**31)


@router.get("/runs/{run}")
def run(request: Request, run: str, asked: Annotated[Asked, Query()]) -> Response:
    """Show one run."""
    store = store_of(request)
    stored_run = store.run(run)
    sets = store.gradings(stored_run.id)
    if not sets:
        return page("unscored.html", {"section": "runs", "run": stored_run})
    scores = store.grading(stored_run.id, asked.grading)
    summary = server_of(request).live_summary.summary(GradedRun(store, stored_run, scores))
    place = Place(asked.after, asked.before, asked.n)
    of_plugins = {name: text for name in answers("run_list_parameters") if (text := request.query_params.get(name))}
    listing = Listing(asked.filter.strip(), asked.sort, tuple(asked.columns), of_plugins, place)
    known = all_columns(summary, scores)
    shown = chosen_columns(asked.columns, known) or usual_columns(summary, scores)
    view = RunView(store, stored_run, scores, asked.grading is not None, listing, shown)
    user = user_of(request)
    form = {"form_key": form_key(request) if user.may("write") else None}
    drawings = _histograms(view, summary, known, asked=asked.histograms)
    live = {"histograms_link": f"{run_page(stored_run.id, grading=view.chosen, histograms='1')}#histograms", **drawings}
    live |= {"menu": views_menu(request), "job_link": job_link(server_of(request).jobs, stored_run)}
    samples = _load_samples(view)
    table = {"by_target": by_target(GradedRun(store, stored_run, view.grading), summary, view.conversation)}
    parts = list(answers_of(PagePart, "run_list_parts", view=view, readable=not samples.problem))
    values = {**_head(view, summary, sets), **_list(view, summary, samples, known), **live, **table, **form}
    return page("run.html", {**values, "list_parts": parts}, max([samples.status, *(part.status for part in parts)]))


@dataclass(frozen=True, slots=True)
class Place:
    """Which page of the list: that after a cursor, or right before one; `first` is the number of its first sample."""

    after: str | None
    before: str | None
    first: int

    @property
    def start(self) -> int:
        """The number of the first sample in the list, from 1."""
        return self.first if self.after or self.before else 1


@dataclass(frozen=True, slots=True)
class Listing:
    """What the address says of the list of samples; `of_plugins` has the parameters that plugins read."""

    filter_text: str
    sort: str
    columns: tuple[str, ...]
    of_plugins: Mapping[str, str]
    place: Place

    @property
    def kept(self) -> dict[str, Value]:
        """What links to other pages of the list repeat: what is not as usual."""
        sort = None if self.sort == "worst" else self.sort
        return {"filter": self.filter_text or None, "sort": sort, "columns": self.columns or None, **self.of_plugins}


@dataclass(frozen=True, slots=True)
class RunView:
    """The request; `named` means that the address names the set of scores."""

    store: Store
    run: Run
    grading: Grading
    named: bool
    listing: Listing
    columns: Sequence[Column]

    @property
    def chosen(self) -> str | None:
        """The set of scores, if the address names it."""
        return self.grading.id if self.named else None

    def conversation(self, sample: str, target: str) -> str:
        """Return the address of the conversation of a sample with a target."""
        return sample_page(self.run.id, sample, target=target, grading=self.chosen)

    def link(self, **changed: Value) -> str:
        """Return the address of the list with changed parameters, from its first page."""
        return f"{run_page(self.run.id, grading=self.chosen, **{**self.listing.kept, **changed})}#samples"

    def column(self, name: str | None, *, highest_first: bool = False) -> SortLink | None:
        """Return the head of a column: a click sorts by it, and one more in the other direction."""
        if name is None:
            return None
        ways, sort = (f"-{name}", name) if highest_first else (name, f"-{name}"), self.listing.sort
        now = ways[1] if sort == ways[0] else ways[0]
        shown = sort if sort in ways else None
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
    preceding: str | None = None
    count: int = 0
    problem: str = ""
    status: int = 200


def _lines(view: RunView) -> list[PageLine]:
    return list(answers_of(PageLine, "run_page_lines", store=view.store, grading=view.grading))


def _head(view: RunView, summary: Summary, sets: Sequence[Grading]) -> dict[str, object]:
    return {
        **head(view.run, view.grading, summary),
        "section": "runs",
        "sets": [(one, run_page(view.run.id, grading=one.id)) for one in sets] if len(sets) > 1 else [],
        "json_link": run_data(view.run.id),
        "more_lines": _lines(view) if summary.attempts <= MAX_CONVERSATIONS else [],
        "suite_links": list(answers_of(Page, "suite_links", suite=view.run.suite)),
        "feature_links": list(answers_of(Page, "run_page_links", store=view.store, run=view.run, grading=view.chosen)),
        "sections": list(
            answers_of(PageSection, "run_page_sections", store=view.store, run=view.run, grading=view.chosen)
        ),
    }


def _list(view: RunView, summary: Summary, found: _Found, known: Sequence[Column]) -> dict[str, object]:
    listing, total = view.listing, summary.attempts
    errors = error_groups(view.store, view.grading, CAUSES)
    return {
        "filter_text": listing.filter_text,
        "sort": listing.sort,
        "asked_columns": listing.columns,
        "known_columns": known,
        "first_grader": next((one.name for one in known if one.fact is None), ""),
        "usual_columns_link": view.link(columns=None),
        "shown_columns": [column.key for column in view.columns],
        "plain_columns": not listing.columns,
        "orders": _orders(view),
        "kept_parameters": listing.of_plugins,
        "chosen": view.chosen,
        "found": found,
        "total": total,
        "heads": [(column, view.column(column.sort, highest_first=column.highest_first)) for column in view.columns],
        "by_place": view.column("position"),
        "by_worst": SortLink(view.link(sort=None), "up" if listing.sort == "worst" else None),
        "states": _states(view, total),
        "errors": [(one, view.link(filter=one.filter)) for one in errors.groups],
        "more_errors": errors.more,
        "all_errors": view.link(filter="state:error"),
        "first": listing.place.start,
        "without_filter": view.link(filter=None),
        "next_page": _next_page(view, found),
        "previous_page": _previous_page(view, found),
        "first_page": view.link() if listing.place.after or listing.place.before else None,
        "here": run_page(view.run.id),
    }


def _histograms(view: RunView, summary: Summary, known: Sequence[Column], *, asked: bool) -> dict[str, object]:
    """Return the histograms: those of a larger run are drawn where the address asks for them."""
    if summary.attempts < 2 or (summary.attempts > DRAWN and not asked):
        return {"histograms": [], "asks_histograms": summary.attempts > DRAWN}
    graders = [one.name for one in known if one.fact is None][:GRADERS_DRAWN]
    return {
        "histograms": draw_bars(view.store.browse.histograms(view.grading.id, graders), len(graders)),
        "asks_histograms": False,
    }


def _orders(view: RunView) -> list[tuple[str, str]]:
    """Return the orders of the list and their names, for a form where the heads of columns have no room."""
    found = [("worst", "worst first"), ("position", "as in the dataset")]
    for column in view.columns:
        if column.sort is not None:
            found += [
                (column.sort, f"{column.head}, lowest first"),
                (f"-{column.sort}", f"{column.head}, highest first"),
            ]
    return found


def _next_page(view: RunView, found: _Found) -> str | None:
    if found.following is None:
        return None
    return view.link(after=found.following, n=str(view.listing.place.start + len(found.lines)))


def _previous_page(view: RunView, found: _Found) -> str | None:
    if found.preceding is None:
        return None
    return view.link(before=found.preceding, n=str(max(1, view.listing.place.start - SHOWN)))


def _states(view: RunView, total: int) -> list[StateCount]:
    """Return the states of samples, whatever the filter lets through; those of a large run are not counted."""
    counts = dict.fromkeys(RANK) if total > MAX_CONVERSATIONS else view.store.browse.states(view.grading.id)
    return [
        StateCount(state, number, view.link(filter=f"state:{state}"), view.listing.filter_text == f"state:{state}")
        for state, number in counts.items()
    ]


def _load_samples(view: RunView) -> _Found:
    """Return a page of samples; an invalid filter is reported next to the input field."""
    try:
        terms = parse_filter(view.listing.filter_text)
        check_graders(view.grading, terms, view.listing.sort)
        at, listing = view.listing.place, view.store.browse.samples
        listed = listing(view.grading.id, terms, sort=view.listing.sort, after=at.after, before=at.before, limit=SHOWN)
        count = view.store.browse.count_samples(view.grading.id, terms)
    except UsageError as error:
        return _Found(problem=safe("; ".join(map(str, error.problems))), status=answered(error).status)
    lines = [
        line(
            sample,
            sample_page(
                view.run.id,
                sample.sample_id,
                trial=sample.trial,
                target=sample.target,
                grading=view.chosen,
                filter=view.listing.kept["filter"],
                sort=view.listing.kept["sort"],
            ),
            view.columns,
        )
        for sample in listed.samples
    ]
    return _Found(lines, listed.next, listed.previous, count)
