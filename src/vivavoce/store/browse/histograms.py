"""How scores, and what conversations took, are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from sqlalchemy import ColumnElement, Connection, case, func, select

from vivavoce.store.browse.listing import Histogram, Taken
from vivavoce.store.database.schema import sample_index, scores

BINS = 10
"""Ranges of a histogram."""


def score_histograms(connection: Connection, grading_id: str, graders: Sequence[str]) -> list[Histogram]:
    """Return how often each grader gave scores from 0 to 1, in tenths; 1 is in the last range."""
    s = scores.c
    query = select(s.name, _place(s.value, 0.0, 1.0).label("place"), func.count().label("number")).where(
        s.grading_id == grading_id, s.name.in_(graders), s.turn.is_(None), s.value.is_not(None)
    )
    counts = {name: [0] * BINS for name in graders}
    for row in connection.execute(query.group_by(s.name, "place")):
        counts[row.name][row.place] += row.number
    return [Histogram(name=name, low=0.0, high=1.0, counts=found) for name, found in counts.items()]


def taken_histograms(connection: Connection, grading_id: str) -> list[Histogram]:
    """Return how the seconds, the tokens and the cost of conversations are distributed, between the least and the most.

    What is unknown of all, or is the same for all, has none.
    """
    names: tuple[Taken, ...] = get_args(Taken)
    mine = sample_index.c.grading_id == grading_id
    ends: list[ColumnElement[Any]] = []
    for name in names:
        ends += func.min(_column_of(name)), func.max(_column_of(name))
    found: list[float | None] = list(connection.execute(select(*ends).where(mine)).one())
    spans: dict[Taken, tuple[float | None, float | None]] = {
        name: (found[2 * at], found[2 * at + 1]) for at, name in enumerate(names)
    }
    known: dict[Taken, tuple[float, float]] = {
        name: (low, high) for name, (low, high) in spans.items() if low is not None and high is not None and low < high
    }
    if not known:
        return []
    labels = [f"{name}_place" for name in known]  # other names than the columns have, which GROUP BY prefers
    places = [_place(_column_of(name), *known[name]).label(label) for name, label in zip(known, labels, strict=True)]
    counts = {name: [0] * BINS for name in known}
    query = select(*places, func.count().label("number")).where(mine).group_by(*labels)
    for row in connection.execute(query):
        for name, place in zip(known, row, strict=False):  # how many there are stands behind the ranges
            if place is not None:
                counts[name][place] += row.number
    return [Histogram(name=name, low=low, high=high, counts=counts[name]) for name, (low, high) in known.items()]


def _column_of(name: Taken) -> ColumnElement[Any]:
    column: Any = sample_index.c[name]
    return column * 1.0


def _place(value: ColumnElement[Any], low: float, high: float) -> ColumnElement[Any]:
    """Return in which range a value is: comparisons with the ends of ranges are what both databases do alike."""
    edges = [low + (high - low) * at / BINS for at in range(BINS)]
    return case(*((value >= edge, at) for at, edge in reversed(list(enumerate(edges)))), else_=None)
