"""What a test is about, and what it has used."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from vivavoce.penelope.context import TestContext
from vivavoce.records.score import Usage

from .states import state


@pytest.mark.parametrize(
    "wrong", [{"max_turns": 0}, {"min_turns": 3, "max_turns": 2}, {"min_turns": -1}, {"trial": -1}, {"gaol": "x"}]
)
def test_what_a_test_cannot_have_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TestContext.model_validate({"goal": "x", **wrong})


def test_what_is_used_is_counted_by_role() -> None:
    test = state()
    for role, cost in (("tester", 1.0), ("judge", 0.5), ("tester", 2.0)):
        test.spend(role, Usage(calls=1, cost=cost))
    test.spend("target", None)
    assert {role: (used.calls, used.cost) for role, used in test.usage.items()} == {"tester": (2, 3), "judge": (1, 0.5)}
    assert test.cost == 3.5


def test_a_price_that_is_unknown_makes_the_sum_unknown() -> None:
    test = state()
    test.spend("tester", Usage(calls=1, cost=1.0))
    test.spend("judge", Usage(calls=1))
    assert test.cost is None


def test_before_anything_is_said_there_is_no_reply() -> None:
    assert state().last_reply == ""
    assert state(("Hi", "Hello")).last_reply == "Hello"
