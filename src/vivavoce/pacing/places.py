"""`Places`: how much may be in work at once, where some of it takes more places than other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Places:
    """So many places, given in the order they were asked for; whoever needs more waits, and later ones wait behind."""

    def __init__(self, number: int) -> None:
        self._number = self._free = number
        self._turn = asyncio.Lock()
        self._returned = asyncio.Event()

    @asynccontextmanager
    async def taken(self, number: int) -> AsyncGenerator[None]:
        """Wait for places, at most as many as there are, and hold them."""
        number = min(number, self._number)
        async with self._turn:
            while self._free < number:
                self._returned.clear()
                await self._returned.wait()
            self._free -= number
        try:
            yield
        finally:
            self._free += number
            self._returned.set()
