from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from vivavoce.pacing.limits import Places


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 7), st.none() | st.integers(0, 9)), max_size=15))
async def test_no_more_is_held_than_there_are_places_nobody_overtakes_and_none_is_lost(
    number: int, works: list[tuple[int, int | None]]
) -> None:
    places, held, began = Places(number), [0], list[int]()

    async def work(name: int, size: int) -> None:
        async with places.hold(size):
            held[0] += min(size, number)
            assert held[0] <= number
            began.append(name)
            try:
                await asyncio.sleep(1)
            finally:
                held[0] -= min(size, number)

    tasks = [asyncio.create_task(work(name, size)) for name, (size, _) in enumerate(works)]
    for task, (_, cancel_at) in zip(tasks, works, strict=True):
        if cancel_at is not None:
            asyncio.get_running_loop().call_later(cancel_at, task.cancel)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert began == sorted(began)
    assert set(began) >= {name for name, (_, cancel_at) in enumerate(works) if cancel_at is None}
    async with asyncio.timeout(1), places.hold(number):
        assert held == [0]
