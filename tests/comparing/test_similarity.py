"""How similar texts are, and how long they may be."""

from __future__ import annotations

import pytest

from vivavoce.comparing.similarity import MAX_COMPARED_CHARS, near_repeats, similarity
from vivavoce.errors import GraderFault


@pytest.mark.parametrize(("a", "b", "value"), [("", "", 1), ("abc", "abc", 1), ("abc", "xyz", 0), ("ab", "a", 2 / 3)])
def test_similarity_counts_what_is_inserted_and_deleted(a: str, b: str, value: float) -> None:
    assert similarity(a, b) == pytest.approx(value)


def test_a_text_that_is_too_long_is_a_fault_and_not_a_score() -> None:
    with pytest.raises(GraderFault, match="at most 100,000") as caught:
        similarity("a" * (MAX_COMPARED_CHARS + 1), "a")
    assert caught.value.kind == "limit"


def test_each_text_is_compared_with_all_earlier_ones() -> None:
    texts = ["where is my order", "thanks a lot", "where is my order", "where is our order"]
    assert near_repeats([text.split() for text in texts]) == [(2, 0, 1.0)]
    assert near_repeats([text.split() for text in texts], 0.7) == [(2, 0, 1.0), (3, 0, 0.75)]
