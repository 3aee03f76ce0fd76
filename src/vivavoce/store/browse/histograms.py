"""How the scores of a graded run, and what its conversations took, are distributed: counts in ranges of equal width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from sqlalchemy import ColumnElement, Connection, case, func, select

from vivavoce.store.browse.listing import Histogram, Taken
from vivavoce.store.database.schema import sample_index, scores

BINS = 10
"""Ranges of a histogram."""


def score_histogram(connection: Connection, grading_id: str, grader: str) -> Histogram:
    """Return how often a grader gave scores from 0 to 1, in tenths; 1 is in the last range."""
    s = scores.c
    here = (s.grading_id == grading_id, s.name == grader, s.turn.is_(None), s.value.is_not(None))
    return Histogram(name=grader, low=0.0, high=1.0, counts=_counts(connection, s.value, 0.0, 1.0, here))


def taken_histograms(connection: Connection, grading_id: str) -> list[Histogram]:
    """Return how the seconds, the tokens and the cost of conversations are distributed, between the least and the most.

    What is unknown of all, or is the same for all, has none.
    """
    names: tuple[Taken, ...] = get_args(Taken)
    mine = sample_index.c.grading_id == grading_id
    ends: list[ColumnElement[Any]] = []
    for name in names:
        ends += func.min(_taken(name)), func.max(_taken(name))
    found: list[float | None] = list(connection.execute(select(*ends).where(mine)).one())
    spans: dict[Taken, tuple[float | None, float | None]] = {
        name: (found[2 * at], found[2 * at + 1]) for at, name in enumerate(names)
    }
    known: dict[Taken, tuple[float, float]] = {
        name: (low, high) for name, (low, high) in spans.items() if low is not None and high is not None and low < high
    }
    return [
        Histogram(name=name, low=low, high=high, counts=_counts(connection, _taken(name), low, high, (mine,)))
        for name, (low, high) in known.items()
    ]


def _taken(name: Taken) -> ColumnElement[Any]:
    column: Any = sample_index.c[name]
    return column * 1.0


def _counts(
    connection: Connection,
    value: ColumnElement[Any],
    low: float,
    high: float,
    here: Sequence[ColumnElement[bool]],
) -> list[int]:
    """Return how many values are in each range; comparisons with its ends are what both databases count alike."""
    edges = [low + (high - low) * at / BINS for at in range(BINS)]
    place = case(*((value >= edge, at) for at, edge in reversed(list(enumerate(edges)))), else_=None).label("place")
    counts = [0] * BINS
    for at, number in connection.execute(select(place, func.count()).where(*here).group_by("place")):
        if at is not None:
            counts[at] += number
    return counts
