"""`each`: an async source of items for sync code."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import TypeVar

from vivavoce.pacing.loops import LoopThread

T = TypeVar("T")


def each(loop: LoopThread, items: AsyncGenerator[T]) -> Iterator[T]:
    """Yield the items of an async source; stopping early closes the source."""

    async def following() -> tuple[T, ...]:
        async for item in items:
            return (item,)
        return ()

    async def close() -> None:
        await items.aclose()

    try:
        while items_read := loop.run(following()):
            yield from items_read
    finally:
        loop.run(close())
