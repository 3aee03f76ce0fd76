from __future__ import annotations

from vivavoce.errors import ModelFault
from vivavoce.records.score import Usage, charge, total, usage_of

USAGE = Usage(input_tokens=3, calls=1, cost=0.5)
UNPRICED = Usage(calls=1)


def test_a_sum_is_what_is_known_and_its_cost_is_unknown_where_one_part_has_no_price() -> None:
    assert total([USAGE, None, USAGE]) == Usage(input_tokens=6, calls=2, cost=1.0)
    assert total([USAGE, UNPRICED]) == Usage(input_tokens=3, calls=2, cost=None)
    assert total([None, None]) is None


def test_a_failure_keeps_what_was_paid_for_it() -> None:
    fault = ModelFault("no JSON")
    assert usage_of(fault) is None
    charge(fault, None)
    assert usage_of(fault) is None
    charge(fault, USAGE)
    charge(fault, None, UNPRICED)
    assert usage_of(fault) == Usage(input_tokens=3, calls=2, cost=None)


def test_the_failure_of_code_that_is_not_ours_keeps_it_too() -> None:
    error = KeyError("score")
    charge(error, USAGE)
    assert usage_of(error) == USAGE


def test_what_somebody_else_calls_usage_is_none_of_ours() -> None:
    error = ValueError()
    vars(error)["usage"] = "prog [options]"
    assert usage_of(error) is None
