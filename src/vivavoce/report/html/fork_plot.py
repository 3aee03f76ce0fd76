"""The plot of a fork: how often its continuations succeeded, by the turn from which they were held anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from vivavoce.records.counting import to_number, turn_label
from vivavoce.report.fork_finding import Forked, Place
from vivavoce.report.html.trend_plot import Axis, TrendPlot, trend_plot
from vivavoce.report.html.watch_plot import BOTTOM, TOP
from vivavoce.report.trend_point import Point

HELD = "as held"
"""What the conversation as it was held is called below the axis."""
NUMBERED = 12
"""Turns that have their number below the axis, at most."""


def fork_plot(found: Forked) -> TrendPlot:
    """Return the plot, from 0 to 1; a place that was not tried is left open. At the end is how it was held."""
    ended = found.fork.ended_well
    points = [_point(turn_label(place.turn), place) for place in found.places]
    points.append(_point(HELD, None).model_copy(update={"mean": None if ended is None else float(ended)}))
    plot = trend_plot(points, Axis(0.0, 1.0, TOP, BOTTOM))
    fell = None if found.turn is None else turn_label(found.turn)
    marks = [replace(one, kind="bad") if one.run == fell else one for one in plot.marks if one.kind == "dot"]
    return replace(plot, marks=marks, dates=_turns_below([one.x for one in plot.marks]), last=None)


def _turns_below(places: Sequence[float]) -> list[tuple[float, str]]:
    """Return the numbers of some turns below the axis, and of how it was held, with their places in percent."""
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
