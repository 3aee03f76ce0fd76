from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.metrics.turn_checklist import runs


@pytest.mark.parametrize(
    ("numbers", "said"), [([], ""), ([4], "4"), ([0, 1, 2], "0 to 2"), ([0, 2, 3, 7], "0, 2 to 3, 7")]
)
def test_numbers_in_a_row_are_said_as_a_run(numbers: list[int], said: str) -> None:
    assert runs(numbers) == said


@given(st.sets(st.integers(0, 40)).map(sorted))
def test_no_number_is_lost_or_added(numbers: list[int]) -> None:
    told: list[int] = []
    for run in filter(None, runs(numbers).split(", ")):
        start, _, end = run.partition(" to ")
        told += range(int(start), int(end or start) + 1)
    assert told == numbers
