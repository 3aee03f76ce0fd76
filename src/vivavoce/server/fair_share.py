"""`FairShare`: a limited amount of something that requests hold; one user never gets all of it."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from vivavoce.server.users import User


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    user: str
    amount: int
    turn: asyncio.Future[None]


class FairShare:
    """`total` of something, such as places or bytes, and `of_user` of it for one user; for one event loop.

    What is more than a user may have is given to one who has nothing. Otherwise who asks waits, in the order of
    arrival, but nobody waits for a user who has their part already.
    """

    def __init__(self, total: int, of_user: int) -> None:
        self._total, self._of_user = total, of_user
        self._by_user: Counter[str] = Counter()
        self._waiters: deque[_Waiter] = deque()

    @property
    def used(self) -> int:
        """How much is in use."""
        return self._by_user.total()

    def used_by(self, user: User) -> int:
        """Return how much a user has."""
        return self._by_user.get(user.key, 0)

    def is_free(self, user: User, amount: int = 1) -> bool:
        """Return whether a user gets so much without waiting."""
        key = user.key
        is_first = all(waiter.user != key for waiter in self._waiters)
        return is_first and self._fits_user(key, amount) and self._fits(amount)

    @asynccontextmanager
    async def take(self, user: User, amount: int = 1) -> AsyncGenerator[None]:
        """Wait until there is so much for a user, and hold it."""
        key = user.key
        waiter = _Waiter(key, amount, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        self._serve()
        try:
            await waiter.turn
            yield
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            else:
                self._by_user[key] -= amount
                if not self._by_user[key]:
                    del self._by_user[key]
            self._serve()

    def _fits_user(self, key: str, amount: int) -> bool:
        used = self._by_user[key]
        return not used or used + amount <= self._of_user

    def _fits(self, amount: int) -> bool:
        used = self.used
        return not used or used + amount <= self._total

    def _serve(self) -> None:
        """Give those who wait what there is for them."""
        passed_over: set[str] = set()
        for waiter in list(self._waiters):
            if waiter.turn.done():
                continue  # who asked is gone
            if waiter.user in passed_over or not self._fits_user(waiter.user, waiter.amount):
                passed_over.add(waiter.user)
            elif not self._fits(waiter.amount):
                return  # what comes after it may not take what it waits for
            else:
                self._waiters.remove(waiter)
                self._by_user[waiter.user] += waiter.amount
                waiter.turn.set_result(None)
