"""The list of runs: each with its verdict, its headline on one axis, and the history of its suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import groupby
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from vivavoce.errors import UsageError
from vivavoce.records.run import Status
from vivavoce.report.html.plots import Range, Scale, Spark, range_plot, spark
from vivavoce.report.text import day
from vivavoce.report.verdict import headline_failed, listed_finding
from vivavoce.server.pages.first_visit import first_visit
from vivavoce.server.pages.links import run_list, run_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.pages.views import views_menu
from vivavoce.server.state import store_of
from vivavoce.store.browse.filter import ListedVerdict, RunFilter
from vivavoce.store.browse.listing import Headline, RunEntry
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

SHOWN = 30
"""Runs on one page."""
VERDICTS = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive", "none": "no gate"}
"""The verdicts that the list can be filtered by, in words."""
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


class Wanted(BaseModel):
    """Which runs an address asks for; a value that a list does not know counts as none."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    q: str = ""
    suite: str = ""
    status: str = ""
    verdict: str = ""
    target: str = ""
    tag: str = ""
    since: str = Field("", alias="from")
    until: str = Field("", alias="to")
    after: str | None = None
    before: str | None = None

    def query(self) -> dict[str, str | None]:
        """Return what is asked for, as an address says it."""
        status = self.status if self.status in get_args(Status) else ""
        verdict = self.verdict if self.verdict in get_args(ListedVerdict) else ""
        named = {"q": self.q, "suite": self.suite, "status": status, "verdict": verdict, "target": self.target}
        named |= {"tag": self.tag, "from": self.since, "to": self.until}
        return {name: value.strip() or None for name, value in named.items()}


@router.get("/")
def runs(request: Request, wanted: Annotated[Wanted, Query()]) -> Response:
    """Show the runs of the store, newest first."""
    store = store_of(request)
    query = wanted.query()
    listed = store.browse.runs(wanted.after, SHOWN, before=wanted.before, **_which(query))
    suites = store.browse.suites()
    if not suites:
        return first_visit(request)
    entries = [_so_far(store, run) for run in listed.runs]
    scale = Scale.around(end for entry in entries if (end := _lowest(entry)) is not None)
    rows = _rows(store, entries, scale)
    values: dict[str, object] = {
        "section": "runs",
        "days": [(name, list(group)) for name, group in groupby(rows, lambda row: day(row.entry.started_at))],
        "scale": scale,
        "suites": suites,
        "query": query,
        "verdicts": VERDICTS,
        "filtered": any(query.values()),
        "more_filters": any(query[name] for name in ("target", "tag", "from", "to")),
        "next_page": run_list(**query, after=listed.next) if listed.next else None,
        "previous_page": run_list(**query, before=listed.previous) if listed.previous else None,
        "first_page": run_list(**query) if wanted.after or wanted.before else None,
    }
    return page("runs.html", {**values, "menu": views_menu(request)})


def _which(query: dict[str, str | None]) -> RunFilter:
    until = _midnight(query["to"])
    return {
        "suite": query["suite"],
        "status": cast("Status | None", query["status"]),
        "verdict": cast("ListedVerdict | None", query["verdict"]),
        "target": query["target"],
        "tag": query["tag"],
        "text": query["q"],
        "since": None if (since := _midnight(query["from"])) is None else since.timestamp(),
        "until": None if until is None else (until + timedelta(days=1)).timestamp(),
    }


def _midnight(written: str | None) -> datetime | None:
    """Return the beginning of a day, of the time where the server is.

    Raises:
        UsageError: it is not a day.
    """
    if written is None:
        return None
    try:
        return datetime.combine(date.fromisoformat(written), time())
    except ValueError as error:
        raise UsageError(f"'{written[:20]}' is not a date; write it as 2026-11-30") from error


def _so_far(store: Store, entry: RunEntry) -> RunEntry:
    """Return a run that is not over with how many of its conversations are stored."""
    if entry.status == "finished":
        return entry
    return entry.model_copy(update={"attempts": store.browse.held(entry.id)})


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
            alike = [_mean_of(sery, head) for sery in series[number : number + BEFORE]]
            found[entry.id] = [mean for mean in reversed(alike) if mean is not None]
    return found


def _mean_of(entry: RunEntry, head: Headline) -> float | None:
    """Return the mean that a run has of the headline grader of another."""
    graders: list[dict[str, Any]] = (entry.summary or {}).get("graders") or []
    same = (grader for grader in graders if grader["name"] == head.name)
    return next((one.get("mean") for one in same), None)
