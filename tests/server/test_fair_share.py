"""Shares of what requests hold: the limits hold, nobody is forgotten, and one user never has all."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from hypothesis import given
from hypothesis import strategies as st

from vivavoce.server.fair_share import FairShare
from vivavoce.server.users import User

ANNA, BEN, CARL = (User(name, "write", name) for name in ("anna", "ben", "carl"))
TOTAL, OF_USER = 10, 4

requests = st.lists(
    st.tuples(st.sampled_from((ANNA, BEN, CARL)), st.integers(1, 12), st.integers(0, 3), st.booleans()), max_size=25
)


@given(requests)
def test_all_get_their_turn_within_the_limits(plan: list[tuple[User, int, int, bool]]) -> None:
    share = FairShare(TOTAL, OF_USER)
    sizes: dict[User, list[int]] = {user: [] for user in (ANNA, BEN, CARL)}

    async def hold(user: User, amount: int, turns: int) -> None:
        async with share.take(user, amount):
            sizes[user].append(amount)
            try:
                assert sum(sizes[user]) <= OF_USER or len(sizes[user]) == 1
                everything = [size for of_user in sizes.values() for size in of_user]
                assert sum(everything) <= TOTAL or len(everything) == 1
                for _ in range(turns):
                    await asyncio.sleep(0)
            finally:
                sizes[user].remove(amount)

    async def run() -> None:
        tasks = [asyncio.create_task(hold(*request[:3])) for request in plan]
        await asyncio.sleep(0)
        for task, (*_, hangs_up) in zip(tasks, plan, strict=True):
            if hangs_up:
                task.cancel()
        results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        for result, (*_, hangs_up) in zip(results, plan, strict=True):
            assert result is None or (hangs_up and isinstance(result, asyncio.CancelledError))

    asyncio.run(run())
    assert share.used == 0
    assert share.is_free(ANNA, TOTAL)


async def test_a_user_who_waits_for_more_lets_others_pass() -> None:
    share = FairShare(TOTAL, OF_USER)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(share.take(ANNA, OF_USER))
        waiting = asyncio.create_task(stack.enter_async_context(share.take(ANNA)))
        await asyncio.sleep(0)
        assert not share.is_free(ANNA)
        async with asyncio.timeout(10), share.take(BEN, OF_USER):
            assert share.used == 2 * OF_USER
        assert not waiting.done()
        waiting.cancel()
    assert share.used == 0


async def test_what_needs_much_is_not_passed_over_by_what_needs_little() -> None:
    share = FairShare(TOTAL, OF_USER)
    order: list[str] = []

    async def hold(user: User, amount: int) -> None:
        async with share.take(user, amount):
            order.append(user.name)
            await asyncio.sleep(0)

    async with share.take(ANNA, TOTAL):
        much = asyncio.create_task(hold(BEN, TOTAL))
        await asyncio.sleep(0)
        little = asyncio.create_task(hold(CARL, 1))
        await asyncio.sleep(0)
        assert order == []
    await asyncio.gather(much, little)
    assert order == ["ben", "carl"]
