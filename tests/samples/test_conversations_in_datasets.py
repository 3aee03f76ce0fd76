"""Data sets of Hugging Face as a caller in Python has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from vivavoce import evaluate
from vivavoce.errors import UsageError

MESSAGES = [
    {"role": "user", "content": "Where is 1042?", "name": None},
    {"role": "assistant", "content": "It was sent."},
]
ROWS: list[dict[str, Any]] = [{"id": str(number), "messages": MESSAGES} for number in range(3)]


class Dataset:
    """What `datasets.Dataset` can do, as far as it concerns us."""

    column_names = ("id", "messages")
    features: dict[str, object] = {}  # noqa: RUF012

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(ROWS)

    def to_dict(self) -> dict[str, Any]:
        raise AssertionError("its rows are wanted, one at a time")


def test_the_rows_of_a_data_set_are_conversations() -> None:
    dataset: Any = Dataset()
    assert evaluate(dataset, "refusal").summary.grader("refusal").scored == 3


def test_of_several_data_sets_one_is_named() -> None:
    several: Any = {"train": Dataset(), "test": Dataset()}
    with pytest.raises(UsageError, match="give one of them: train, test"):
        evaluate(several, "refusal")
