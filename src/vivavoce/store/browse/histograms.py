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
    row = connection.execute(select(*_above(s.value, 0.0, 1.0)).where(*here)).one()
    return Histogram(name=grader, low=0.0, high=1.0, counts=_counts(row))


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
    if not known:
        return []
    columns: list[ColumnElement[Any]] = []
    for name, (low, high) in known.items():
        columns += _above(_taken(name), low, high)
    row = list(connection.execute(select(*columns).where(mine)).one())
    return [
        Histogram(name=name, low=low, high=high, counts=_counts(row[BINS * at : BINS * (at + 1)]))
        for at, (name, (low, high)) in enumerate(known.items())
    ]


def _taken(name: Taken) -> ColumnElement[Any]:
    column: Any = sample_index.c[name]
    return column * 1.0


def _above(value: ColumnElement[Any], low: float, high: float) -> list[ColumnElement[Any]]:
    """Return how many values there are from the beginning of each range on: what both databases count alike."""
    edges = [low + (high - low) * at / BINS for at in range(BINS)]
    return [func.coalesce(func.sum(case((value >= edge, 1), else_=0)), 0) for edge in edges]


def _counts(above: Sequence[int]) -> list[int]:
    return [int(one) - int(beyond) for one, beyond in zip(above, [*above[1:], 0], strict=True)]
