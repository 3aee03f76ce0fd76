"""Pairing two lists so that the sum of the pairs' weights is as large as possible, in any order or in the given one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from math import perm
from typing import NamedTuple, cast

Weights = Sequence[Sequence[float]]
"""A row for each item of the one list, a column for each of the other; every weight is at least 0."""
Pair = tuple[int, int]
"""Row and column, counted from 0."""

_FEW = 1000
"""So many pairings are tried one by one in less than a millisecond; scipy takes far longer to import."""


def best_pairs(weights: Weights) -> list[Pair]:
    """Return the pairing of rows and columns with the largest sum, each used at most once.

    Pairs of weight 0 are left out. This is the assignment problem: solved at a glance where every row can have its
    largest weight, by trial where the possibilities are few, and else by `scipy.optimize.linear_sum_assignment`.
    """
    rows = [r for r, row in enumerate(weights) if any(row)]
    if not rows:
        return []
    if len(rows) > len(weights[0]):
        return sorted((row, column) for column, row in best_pairs(list(zip(*weights, strict=True))))
    useful = [weights[r] for r in rows]
    columns = _own_largest(useful) or _by_trial(useful) or _by_scipy(useful)
    return [(r, c) for r, c in zip(rows, columns, strict=True) if weights[r][c] > 0]


def _own_largest(weights: Weights) -> list[int] | None:
    """Give each row a column of its largest weight; None when two rows want the same one."""
    free = set(range(len(weights[0])))
    chosen: list[int] = []
    for row in weights:
        largest = max(row)
        column = next((c for c, weight in enumerate(row) if weight == largest and c in free), None)
        if column is None:
            return None
        free.remove(column)
        chosen.append(column)
    return chosen


def _by_trial(weights: Weights) -> list[int] | None:
    if perm(len(weights[0]), len(weights)) > _FEW:
        return None
    candidates = permutations(range(len(weights[0])), len(weights))
    return list(max(candidates, key=lambda columns: sum(weights[row][c] for row, c in enumerate(columns))))


def _by_scipy(weights: Weights) -> list[int]:
    from scipy.optimize import linear_sum_assignment  # pyright: ignore[reportUnknownVariableType]

    solve = cast("Callable[..., tuple[Iterable[int], Iterable[int]]]", linear_sum_assignment)
    _, columns = solve(weights, maximize=True)
    return [int(column) for column in columns]


def best_ordered_pairs(weights: Weights, groups: Sequence[int] | None = None) -> list[Pair]:
    """Return the pairing with the largest sum in which both rows and columns rise.

    `groups` are the sizes of groups of neighbouring columns whose own order is free; without it every column is a group
    of its own. Pairs of weight 0 are left out. This is the longest common subsequence with weights in place of
    equality, found by dynamic programming over the groups.
    """
    if not weights:
        return []
    steps = [_Step([0.0] * (len(weights) + 1), [(0, [])] * (len(weights) + 1))]
    first = 0
    for size in [1] * len(weights[0]) if groups is None else groups:
        steps.append(_take_group(steps[-1].sums, weights, range(first, first + size)))
        first += size
    pairs: list[Pair] = []
    rows = len(weights)
    for step in reversed(steps[1:]):
        rows, block = step.choices[rows]
        pairs += block
    return sorted(pairs)


class _Step(NamedTuple):
    """The best of the first r rows with the groups so far: its sum, and how the last group got there.

    A choice is the number of rows that are left to the groups before, and the pairs of this group.
    """

    sums: list[float]
    choices: list[tuple[int, list[Pair]]]


def _take_group(before: Sequence[float], weights: Weights, columns: Sequence[int]) -> _Step:
    step = _Step([before[0]], [(0, [])])
    useful: list[int] = []
    for row, row_weights in enumerate(weights):
        step.sums.append(step.sums[row])
        step.choices.append(step.choices[row])
        if before[row + 1] > step.sums[-1]:
            step.sums[-1], step.choices[-1] = before[row + 1], (row + 1, [])
        if not any(row_weights[column] for column in columns):
            continue
        useful.append(row)
        for rows in [[row]] if len(columns) == 1 else [useful[start:] for start in reversed(range(len(useful)))]:
            block = _pairs_within(weights, rows, columns)
            total = before[rows[0]] + sum(weights[r][c] for r, c in block)
            if total > step.sums[-1]:
                step.sums[-1], step.choices[-1] = total, (rows[0], block)
    return step


def _pairs_within(weights: Weights, rows: Sequence[int], columns: Sequence[int]) -> list[Pair]:
    if len(rows) == len(columns) == 1:
        return [(rows[0], columns[0])]
    chosen = best_pairs([[weights[row][column] for column in columns] for row in rows])
    return [(rows[r], columns[c]) for r, c in chosen]
