from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vivavoce.metrics.exact.tool_calls import Pair, Weights, best_ordered_pairs, best_pairs

shares = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 2 / 3, 1.0])


@st.composite
def weights_of(draw: st.DrawFn, most: int) -> list[list[float]]:
    rows, columns = draw(st.integers(0, most)), draw(st.integers(0, most))
    return draw(st.lists(st.lists(shares, min_size=columns, max_size=columns), min_size=rows, max_size=rows))


def total(weights: Weights, pairs: list[Pair]) -> float:
    return sum(weights[row][column] for row, column in pairs)


def greedy(weights: Weights) -> float:
    cells = sorted(((w, r, c) for r, row in enumerate(weights) for c, w in enumerate(row)), reverse=True)
    rows, columns, result = set[int](), set[int](), 0.0
    for weight, row, column in cells:
        if row not in rows and column not in columns:
            rows.add(row)
            columns.add(column)
            result += weight
    return result


def best_total_by_trial(weights: Weights) -> float:
    if not weights or not weights[0]:
        return 0.0
    wide = weights if len(weights) <= len(weights[0]) else list(zip(*weights, strict=True))
    return max(
        sum(wide[r][c] for r, c in enumerate(permutation))
        for permutation in permutations(range(len(wide[0])), len(wide))
    )


def best_ordered_total(weights: Weights) -> float:
    if not weights or not weights[0]:
        return 0.0
    first, rest = weights[0], weights[1:]
    with_first = (w + best_ordered_total([row[c + 1 :] for row in rest]) for c, w in enumerate(first))
    return max(best_ordered_total(rest), *with_first)


@given(weights_of(most=5))
def test_the_pairing_is_optimal_and_uses_each_side_once(weights: list[list[float]]) -> None:
    pairs = best_pairs(weights)
    assert total(weights, pairs) == pytest.approx(best_total_by_trial(weights))
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    assert all(weights[row][column] > 0 for row, column in pairs)


@settings(deadline=None)  # the first large one imports scipy
@given(weights_of(most=12))
def test_a_large_pairing_is_no_worse_than_a_greedy_one_and_symmetric(weights: list[list[float]]) -> None:
    found = total(weights, best_pairs(weights))
    transposed = list(zip(*weights, strict=True))
    assert found >= greedy(weights) - 1e-9
    assert found == pytest.approx(total(transposed, best_pairs(transposed)))


def test_a_large_pairing_finds_the_only_perfect_one() -> None:
    size = 12  # the last row can only take column 0, so each row before it must move on by one
    weights = [[1.0 if column in (row, row + 1) else 0.0 for column in range(size)] for row in range(size - 1)]
    weights.append([1.0] + [0.0] * (size - 1))
    assert best_pairs(weights) == [*((row, row + 1) for row in range(size - 1)), (size - 1, 0)]


@given(weights_of(most=4))
def test_the_ordered_pairing_is_optimal_and_rises(weights: list[list[float]]) -> None:
    pairs = best_ordered_pairs(weights)
    assert total(weights, pairs) == pytest.approx(best_ordered_total(weights))
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
    assert total(weights, pairs) <= total(weights, best_pairs(weights)) + 1e-9


@given(weights_of(most=4), st.lists(st.integers(1, 3), max_size=4))
def test_columns_of_a_group_have_no_order(weights: list[list[float]], sizes: list[int]) -> None:
    width = len(weights[0]) if weights else 0
    groups = list(groups_of(sizes, width))
    pairs = best_ordered_pairs(weights, groups)
    starts = [sum(groups[:number]) for number in range(len(groups))]
    orders = product(*(permutations(range(start, start + size)) for start, size in zip(starts, groups, strict=True)))
    best = max(best_ordered_total([[row[c] for c in chain(*order)] for row in weights]) for order in orders)
    assert total(weights, pairs) == pytest.approx(best)
    assert len({column for _, column in pairs}) == len({row for row, _ in pairs}) == len(pairs)


def groups_of(sizes: list[int], width: int) -> Iterator[int]:
    """Yield sizes that add up to a width, ones at the end."""
    for size in [*sizes, *[1] * width]:
        if not width:
            return
        yield min(size, width)
        width -= min(size, width)
