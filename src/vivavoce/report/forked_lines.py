"""The places of a fork as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from vivavoce.records.counting import to_number
from vivavoce.report.forked import Forked, Place
from vivavoce.report.tables import FittingTable, figures_table

HEADS = ("held anew from", "succeeded", "share", "95% interval", "errors", "apart")
"""What is said of each place."""

_RANKS = (0, 0, 0, 1, 3, 2)


def places_table(found: Forked) -> FittingTable:
    """Return a row for each place, in the order of the turns, and one for the conversation as it was held."""
    return figures_table(HEADS, place_rows(found), _RANKS)


def place_rows(found: Forked) -> list[Sequence[str]]:
    """Return the cells of that table; a place that was not tried has dashes."""
    ended = {True: "succeeded", False: "failed", None: "ended with an error"}[found.fork.ended_well]
    return [*map(_cells, found.places), ("as it was held", ended, "", "", "", "")]


def _cells(place: Place) -> Sequence[str]:
    name = f"turn {to_number(place.turn)}"
    left_out = (f"{place.errors or ''}", f"{place.apart or ''}")
    if place.share is None or place.low is None or place.high is None:
        return (name, "–", "–", "–", *left_out)
    ratio, interval = f"{place.passed}/{place.scored}", f"{place.low:.0%} to {place.high:.0%}"
    return (name, ratio, f"{place.share:.0%}", interval, *left_out)
