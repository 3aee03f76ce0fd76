"""The list of runs: each with its verdict, its headline on one axis, and the history of its suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, cast

from fastapi import APIRouter, Query, Request, Response

from vivavoce.records.run import Status
from vivavoce.report.finding import headline_failed, listed_finding
from vivavoce.report.html.plots import Range, Scale, Spark, range_plot, spark
from vivavoce.report.html.wording import day
from vivavoce.server.pages.first_visit import first_visit
from vivavoce.server.pages.links import run_list, run_page
from vivavoce.server.pages.live import as_it_stands
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.pages.views import views_menu
from vivavoce.store.browse.listing import RunEntry
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

SHOWN = 30
"""Runs on one page."""
BEFORE = 10
"""Runs of a suite in its sparkline."""


@dataclass(frozen=True, slots=True)
class Row:
    """A run in the list."""

    entry: RunEntry
    link: str
    finding: str
    plot: Range | None
    spark: Spark | None


@router.get("/")
def runs(
    request: Request,
    text: Annotated[str, Query(alias="q")] = "",
    suite: str = "",
    status: str = "",
    after: str | None = None,
) -> Response:
    """Show the runs of the store, newest first."""
    store = cast("Store", request.app.state.store)
    state: Status | None = status if status in ("running", "finished", "interrupted") else None
    listed = store.browse.runs(after, SHOWN, suite=suite or None, status=state, text=text.strip() or None)
    query = {"q": text.strip() or None, "suite": suite or None, "status": state}
    entries = [as_it_stands(store, one) for one in listed.runs]
    suites = store.browse.suites()
    if not suites:
        return first_visit(request)
    scale = Scale.around(end for one in entries if (end := _lowest(one)) is not None)
    rows = _rows(store, entries, scale)
    values: dict[str, object] = {
        "section": "runs",
        "days": [(name, list(group)) for name, group in groupby(rows, lambda row: day(row.entry.started_at))],
        "scale": scale,
        "suites": suites,
        "query": query,
        "filtered": any(query.values()),
        "next_page": run_list(**query, after=listed.next) if listed.next else None,
        "first_page": run_list(**query) if after else None,
    }
    return page("runs.html", {**values, "menu": views_menu(request)})


def _rows(store: Store, entries: Sequence[RunEntry], scale: Scale) -> list[Row]:
    means = _means(store, entries)
    return [
        Row(
            entry,
            run_page(entry.id),
            listed_finding(entry),
            _plot(entry, scale),
            spark(means[entry.id]) if entry.id in means else None,
        )
        for entry in entries
    ]


def _plot(entry: RunEntry, scale: Scale) -> Range | None:
    head = entry.headline
    if head is None:
        return None
    bad, provisional = headline_failed(entry), entry.status == "running"
    return range_plot(scale, head.mean, head.low, head.high, bad=bad, provisional=provisional)


def _lowest(entry: RunEntry) -> float | None:
    head = entry.headline
    return None if head is None else head.mean if head.low is None else head.low


def _means(store: Store, entries: Sequence[RunEntry]) -> dict[str, list[float]]:
    """Return for each run the means of the same grader over the runs of its suite up to it, oldest first."""
    found: dict[str, list[float]] = {}
    for suite, before in store.browse.runs_before(entries, BEFORE).items():
        mine = [one for one in entries if one.suite == suite and one.partial_of is None]
        series = [*mine, *before]
        for number, entry in enumerate(mine):
            head = entry.headline
            if head is None or head.mean is None:
                continue
            alike = [
                one.headline.mean
                for one in series[number : number + BEFORE]
                if one.headline and one.headline.name == head.name
            ]
            found[entry.id] = [mean for mean in reversed(alike) if mean is not None]
    return found
