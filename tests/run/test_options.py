"""What a caller may set for a run, and what is refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from vivavoce import RunOptions

NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("max_calls", [-1]),
        ("max_cost", [-0.1, NAN, INFINITE]),
        ("trials", [0]),
        ("max_concurrent", [0]),
        ("max_samples", [0]),
        ("max_call", [1]),
    ],
)
def test_options_that_mean_nothing_are_refused(name: str, values: list[float]) -> None:
    for value in values:
        with pytest.raises(ValidationError):
            RunOptions.model_validate({name: value})
