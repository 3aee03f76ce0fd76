from __future__ import annotations

import asyncio

import pytest

from vivavoce.errors import BudgetExhausted, UsageError
from vivavoce.pacing.budget import Budget


async def spend(budget: Budget, estimate: float | None, cost: float | None) -> bool:
    try:
        reservation = budget.reserve(estimate)
    except BudgetExhausted:
        return False
    await asyncio.sleep(1)
    budget.settle(reservation, cost)
    return True


async def test_fifty_parallel_calls_cannot_overshoot_the_calls() -> None:
    budget = Budget(max_calls=7)
    made = await asyncio.gather(*(spend(budget, None, None) for _ in range(50)))
    assert (sum(made), budget.calls) == (7, 7)
    assert budget.exhausted


async def test_fifty_parallel_calls_cannot_overshoot_the_cost() -> None:
    budget = Budget(max_cost=0.3)
    made = await asyncio.gather(*(spend(budget, 0.1, 0.1) for _ in range(50)))
    assert sum(made) == 3
    assert budget.cost == pytest.approx(0.3)
    assert budget.exhausted


def test_what_a_call_did_not_use_is_free_again() -> None:
    budget = Budget(max_cost=1.0)
    budget.settle(budget.reserve(0.9), cost=0.2)
    assert budget.cost == pytest.approx(0.2)
    budget.reserve(0.8)
    with pytest.raises(BudgetExhausted, match=r"may cost \$0\.1, and \$1 of \$1 is spent"):
        budget.reserve(0.1)


def test_an_unknown_cost_leaves_the_estimate_standing() -> None:
    budget = Budget(max_cost=1.0)
    budget.settle(budget.reserve(0.9), cost=None)
    assert budget.cost == pytest.approx(0.9)


@pytest.mark.parametrize("cost", [-5.0, float("nan"), float("inf")])
def test_a_cost_that_is_no_amount_of_money_leaves_the_estimate_standing(cost: float) -> None:
    budget = Budget(max_cost=1.0)
    budget.settle(budget.reserve(0.9), cost=cost)
    assert budget.cost == pytest.approx(0.9)


def test_a_budget_used_to_the_last_call_is_not_exhausted_until_one_more_is_asked_for() -> None:
    budget = Budget(max_calls=1)
    budget.settle(budget.reserve(), cost=None)
    assert not budget.exhausted
    with pytest.raises(BudgetExhausted, match="limit of 1 calls"):
        budget.reserve()
    assert budget.exhausted
    assert budget.calls == 1


def test_an_unknown_price_cannot_be_bounded() -> None:
    budget = Budget(max_cost=1.0)
    with pytest.raises(UsageError, match="price of the model is unknown"):
        budget.reserve(None)
    assert (budget.calls, budget.exhausted) == (0, False)


@pytest.mark.parametrize("limit", [-0.01, float("nan")])
def test_a_limit_that_is_no_amount_of_money_is_refused(limit: float) -> None:
    with pytest.raises(UsageError, match="a number of US dollars from 0"):
        Budget(max_cost=limit)


async def use(budget: Budget, estimate: float, cost: float) -> bool:
    try:
        reservation = await budget.admit(estimate)
    except BudgetExhausted:
        return False
    await asyncio.sleep(1)
    budget.settle(reservation, cost)
    return True


async def test_calls_wait_for_room_that_calls_in_flight_may_give_back() -> None:
    budget = Budget(max_cost=1.0)
    made = await asyncio.gather(*(use(budget, 0.5, 0.1) for _ in range(50)))
    assert sum(made) == 6
    assert budget.cost == pytest.approx(0.6)
    assert budget.exhausted


async def test_a_call_that_can_never_fit_does_not_wait() -> None:
    budget = Budget(max_cost=1.0)
    budget.reserve(0.5)
    with pytest.raises(BudgetExhausted, match=r"may cost \$2"):
        await budget.admit(2.0)


async def test_a_call_that_gives_up_waiting_is_forgotten() -> None:
    budget = Budget(max_cost=1.0)
    held = budget.reserve(1.0)
    waiting = asyncio.create_task(budget.admit(0.5))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    budget.settle(held, 0.0)
    assert (budget.calls, budget.cost) == (1, 0.0)


async def test_where_the_cost_is_not_limited_nothing_waits() -> None:
    budget = Budget(max_calls=2)
    for estimate in (5.0, None):
        await budget.admit(estimate)
    assert (budget.calls, budget.limits_cost, Budget(max_cost=0).limits_cost) == (2, False, True)


def test_without_limits_everything_is_allowed_and_counted() -> None:
    budget = Budget()
    for cost in (None, 5.0):
        budget.settle(budget.reserve(), cost)
    assert (budget.calls, budget.cost) == (2, 5.0)


def test_a_reservation_is_settled_once() -> None:
    budget = Budget()
    reservation = budget.reserve(1.0)
    budget.settle(reservation, 1.0)
    with pytest.raises(ValueError, match="not open"):
        budget.settle(reservation, 1.0)
    assert budget.cost == 1.0
