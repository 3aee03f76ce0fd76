"""Pairing two lists so that the sum of the pairs' weights is as large as possible, in any order or in the given one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from math import perm
from typing import cast

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


def best_ordered_pairs(weights: Weights) -> list[Pair]:
    """Return the pairing with the largest sum in which both rows and columns rise.

    Pairs of weight 0 are left out. This is the longest common subsequence with weights in place of equality, found by
    dynamic programming.
    """
    if not weights:
        return []
    sums = [[0.0] * (len(weights[0]) + 1)]  # sums[r][c]: the best of the first r rows and c columns
    for row in weights:
        above, current = sums[-1], [0.0]
        for c, weight in enumerate(row):
            current.append(max(above[c + 1], current[c], above[c] + weight))
        sums.append(current)
    pairs: list[Pair] = []
    r, c = len(weights), len(weights[0])
    while r and c:
        if sums[r][c] == sums[r - 1][c]:
            r -= 1
        elif sums[r][c] == sums[r][c - 1]:
            c -= 1
        else:
            r, c = r - 1, c - 1
            pairs.append((r, c))
    return pairs[::-1]
