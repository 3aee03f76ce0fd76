"""What all workers together may spend."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vivavoce.features.parts.work import Allowance, Share


def test_without_limits_every_share_is_without_limits() -> None:
    allowance = Allowance(3)
    shares = [allowance.share() for _ in range(3)]
    assert [(one.max_calls, one.max_cost, one.workers) for one in shares if one] == [(None, None, 3)] * 3


def test_a_share_leaves_something_for_the_others_and_the_rest_comes_back() -> None:
    allowance = Allowance(2, max_calls=100)
    first, second = allowance.share(), allowance.share()
    assert first is not None
    assert second is not None
    assert (first.max_calls, second.max_calls) == (25, 38)
    allowance.returned(first, 10, 0.0)
    allowance.returned(second, 38, 0.0)
    assert allowance.max_calls == 52


def test_the_whole_rest_can_be_taken() -> None:
    allowance = Allowance(4, max_calls=7)
    share = allowance.share(whole=True)
    assert share is not None
    assert share.max_calls == 7
    assert allowance.share() is None


def test_of_a_worker_that_died_all_is_spent() -> None:
    allowance = Allowance(1, max_calls=10, max_cost=1.0)
    share = allowance.share()
    assert share is not None
    allowance.lost(share)
    assert (allowance.max_calls, allowance.max_cost) == (5, 0.5)


@given(
    calls=st.integers(0, 200),
    cost=st.floats(0, 10),
    steps=st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1)), max_size=60),
)
def test_shares_never_exceed_what_there_is(calls: int, cost: float, steps: list[tuple[int, float]]) -> None:
    allowance, held = Allowance(3, calls, cost), list[Share]()
    spent_calls, spent = 0, 0.0
    for kind, part in steps:
        if kind == 0 and len(held) < 3 and (share := allowance.share()) is not None:
            held.append(share)
        elif kind and held:
            share = held.pop(0)
            most_calls, most_cost = share.max_calls or 0, share.max_cost or 0.0
            used, paid = int(most_calls * part), most_cost * part
            if kind == 1:
                allowance.returned(share, used, paid)
                spent_calls, spent = spent_calls + used, spent + paid
            else:
                allowance.lost(share)
                spent_calls, spent = spent_calls + most_calls, spent + most_cost
        out = sum(one.max_calls or 0 for one in held)
        assert (allowance.max_calls or 0) + out + spent_calls == calls
        assert (allowance.max_cost or 0) + sum(one.max_cost or 0 for one in held) + spent <= cost + 1e-9
