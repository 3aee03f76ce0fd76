"""What a fork shows, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from vivavoce.records.counting import turn_label
from vivavoce.report.fork_finding import Forked, Place
from vivavoce.report.tables import figures_table

_HEADS = ("held anew from", "succeeded", "share", "95% interval", "errors", "apart")
_RANKS = (0, 0, 0, 1, 3, 2)


def fork_report(found: Forked) -> list[RenderableType]:
    """Return what a fork shows: its places as a table, and what they come to in sentences."""
    heads, rows = places_table(found)
    return [figures_table(heads, rows, _RANKS), "", *found.finding]


def places_table(found: Forked) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return the heads and the cells of a row for each place in the order of turns, and of how it was held.

    A place that was not tried has dashes; columns of what no place has are left out.
    """
    ended = {True: "succeeded", False: "failed", None: "ended with an error"}[found.fork.ended_well]
    rows = [*map(_cells, found.places), ("as it was held", ended, "", "", "", "")]
    kept = [column for column in range(len(_HEADS)) if any(row[column] for row in rows)]
    return [_HEADS[column] for column in kept], [[row[column] for column in kept] for row in rows]


def _cells(place: Place) -> Sequence[str]:
    name, left_out = turn_label(place.turn), (f"{place.errors or ''}", f"{place.apart or ''}")
    if place.share is None or place.low is None or place.high is None:
        return (name, "–", "–", "–", *left_out)
    ratio, interval = f"{place.passed}/{place.scored}", f"{place.low:.0%} to {place.high:.0%}"
    return (name, ratio, f"{place.share:.0%}", interval, *left_out)
