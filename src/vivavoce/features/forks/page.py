"""The page of a fork: the curve of its continuations, next to the conversation that it goes on from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter, Request, Response

from vivavoce.extensions import Page, PageSection
from vivavoce.features.forks.records import fork_of, forks_of
from vivavoce.features.forks.report import Forked, Place, forked, places_table, ratio
from vivavoce.features.forks.search import held_outcome
from vivavoce.records.run import AttemptKey, Outcome, Run
from vivavoce.records.score import to_index, to_number, turn_label
from vivavoce.report.html.conversation import conversation
from vivavoce.report.html.plots import BOTTOM, TOP, Axis, Point, TrendPlot, trend_plot
from vivavoce.server.pages.content import showing
from vivavoce.server.pages.links import FirstTurn, run_data, run_page, sample_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/runs/{run}/fork")
def fork(request: Request, run: str, first: FirstTurn = 1) -> Response:
    """Show where a conversation broke; its turns are shown from `from`."""
    store = store_of(request)
    stored_run = store.run(run)
    found = forked(store, stored_run)
    return page("fork.html", _values(stored_run, found, held_outcome(store, found.fork), to_index(first)))


def fork_page(run: str, turn: int | None = None) -> str:
    """Return the address of what a fork shows, or of its part that begins with a turn, counted from 0."""
    return f"{run_page(run)}/fork{'' if turn is None else f'?from={to_number(turn)}'}"


def links_of_run(run: Run) -> list[Page]:
    """Return the link from the page of a fork, as a run, to what it shows."""
    fork = fork_of(run)
    if fork is None:
        return []
    return [Page("See the curve by turn" if fork.turn is None else "See the result of the fork", fork_page(run.id))]


def sections_of_conversation(store: Store, run: Run, key: AttemptKey) -> list[PageSection]:
    """Return the forks of a conversation, and the fork that it is a continuation of."""
    forks = tuple(Page(each.words, fork_page(each.run)) for each in forks_of(store, run.id, key))
    origin = fork_of(run)
    sections = [PageSection("Forks", forks)] if forks else []
    if origin is not None:
        sections.append(PageSection("Continues another conversation", (Page(origin.words, fork_page(run.id)),)))
    return sections


def _values(run: Run, found: Forked, origin: Outcome, first: int) -> dict[str, object]:
    fork = found.fork
    whole = sample_page(fork.run, fork.sample, trial=fork.trial, target=fork.target)
    links = {
        turn_label(place.turn): sample_page(run.id, place.sample)
        for place in found.places
        if place.scored or place.errors
    }
    heads, cells = places_table(found)
    shown = conversation(
        origin,
        lambda turn: fork_page(run.id, turn),
        first,
        showing=showing(fork.run, origin.attempt.key),
    )
    return {
        **shown,
        "section": "runs",
        "run": run,
        "found": found,
        "plot": fork_plot(found),
        "heads": heads,
        "rows": list(zip(cells, [*found.places, None], strict=True)),
        "link_of": {**links, HELD: whole}.get,
        "places": {place.turn: place for place in found.places},
        "label_of_turn": turn_label,
        "ratio": ratio,
        "run_link": run_page(run.id),
        "held_link": whole,
        "held_run_link": run_page(fork.run),
        "json_link": f"{run_data(run.id)}/fork",
    }


HELD = "original"
"""What the conversation as it woriginal is called below the axis."""
NUMBERED = 12
"""Turns that have their number below the axis, at most."""


def fork_plot(found: Forked) -> TrendPlot:
    """Return the plot, from 0 to 1; a place that was not tried is left open. At the end is how it woriginal."""
    ended = found.fork.ended_well
    points = [_point(turn_label(place.turn), place) for place in found.places]
    points.append(_point(HELD, None).model_copy(update={"mean": None if ended is None else float(ended)}))
    plot = trend_plot(points, Axis(0.0, 1.0, TOP, BOTTOM))
    fell = None if found.turn is None else turn_label(found.turn)
    marks = [replace(mark, kind="bad") if mark.run == fell else mark for mark in plot.marks if mark.kind == "dot"]
    return replace(plot, marks=marks, dates=_turns_below([mark.x for mark in plot.marks]), last=None)


def _turns_below(places: Sequence[float]) -> list[tuple[float, str]]:
    """Return the numbers of some turns below the axis, and of how it woriginal, with their places in percent."""
    *turns, held = places
    every = math.ceil(len(turns) / NUMBERED)
    return [*((x, str(to_number(turn))) for turn, x in enumerate(turns) if turn % every == 0), (held, HELD)]


def _point(name: str, place: Place | None) -> Point:
    figures = (
        {} if place is None else {"mean": place.share, "low": place.low, "high": place.high, "scored": place.scored}
    )
    return Point.model_validate(
        {"run": name, "started_at": 0.0, "status": "finished", "version": "", "changes": [], **figures}
    )
