"""The page of a fork: the curve of its continuations, next to the conversation that it goes on from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter, Request, Response

from vivavoce.extensions import Page, PageSection
from vivavoce.features.forks.records import fork_of, forks_of
from vivavoce.features.forks.report import Forked, Place, places_table, ratio, read_fork
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
    result = read_fork(store, stored_run)
    return page("fork.html", _values(stored_run, result, held_outcome(store, result.fork), to_index(first)))


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


def _values(run: Run, result: Forked, origin: Outcome, first: int) -> dict[str, object]:
    fork = result.fork
    whole = sample_page(fork.run, fork.sample, trial=fork.trial, target=fork.target)
    links = {
        turn_label(place.turn): sample_page(run.id, place.sample)
        for place in result.places
        if place.scored or place.errors
    }
    heads, cells = places_table(result)
    talk = conversation(
        origin,
        lambda turn: fork_page(run.id, turn),
        first,
        showing=showing(fork.run, origin.attempt.key),
    )
    return {
        **talk,
        "section": "runs",
        "run": run,
        "found": result,
        "plot": fork_plot(result),
        "heads": heads,
        "rows": list(zip(cells, [*result.places, None], strict=True)),
        "link_of": {**links, ORIGINAL: whole}.get,
        "places": {place.turn: place for place in result.places},
        "label_of_turn": turn_label,
        "ratio": ratio,
        "run_link": run_page(run.id),
        "held_link": whole,
        "held_run_link": run_page(fork.run),
        "json_link": f"{run_data(run.id)}/fork",
    }


ORIGINAL = "original"
"""What the original conversation is called below the axis."""
NUMBERED = 12
"""Turns that have their number below the axis, at most."""


def fork_plot(result: Forked) -> TrendPlot:
    """Return the plot, from 0 to 1; a place that was not tried is left open. At the end is how the original ended."""
    ended = result.fork.ended_well
    points = [_point(turn_label(place.turn), place) for place in result.places]
    points.append(_point(ORIGINAL, None).model_copy(update={"mean": None if ended is None else float(ended)}))
    plot = trend_plot(points, Axis(0.0, 1.0, TOP, BOTTOM))
    fell = None if result.turn is None else turn_label(result.turn)
    marks = [replace(mark, kind="bad") if mark.run == fell else mark for mark in plot.marks if mark.kind == "dot"]
    return replace(plot, marks=marks, dates=_turns_below([mark.x for mark in plot.marks]), last=None)


def _turns_below(places: Sequence[float]) -> list[tuple[float, str]]:
    """Return the numbers of some turns below the axis, and the original's label, with their places in percent."""
    *turns, last = places
    every = math.ceil(len(turns) / NUMBERED)
    return [*((x, str(to_number(turn))) for turn, x in enumerate(turns) if turn % every == 0), (last, ORIGINAL)]


def _point(name: str, place: Place | None) -> Point:
    figures = (
        {} if place is None else {"mean": place.share, "low": place.low, "high": place.high, "scored": place.scored}
    )
    return Point.model_validate(
        {"run": name, "started_at": 0.0, "status": "finished", "version": "", "changes": [], **figures}
    )
