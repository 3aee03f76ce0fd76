"""`TargetChannel`: one target with the slots, tries and time that its calls get."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from vivavoce.errors import TargetFault, VivavoceError
from vivavoce.foreign_code import foreign_code
from vivavoce.pacing.budget import Budget
from vivavoce.pacing.limiter import Limiter
from vivavoce.pacing.retry import retrying
from vivavoce.targets.target import Target

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TargetChannel:
    """How one target is called; `timeout` is in seconds for one call, `tries` counts the first one.

    Without a `timeout` the target keeps to one itself, which can name the address that did not answer.
    `conversations` bounds how many conversations are open at once, `calls` how many calls are in flight; only the
    second shrinks when the target asks us to slow down.
    """

    target: Target
    conversations: asyncio.Semaphore
    calls: Limiter
    budget: Budget
    timeout: float | None = 300.0
    tries: int = 3

    async def call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Call the target, within its slots, its time and its tries.

        Raises:
            Fault: the failure of the last try.
        """
        return await retrying(lambda: self._timed(ask), tries=self.tries, limiter=self.calls)

    async def send(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Call the target with a message; every try counts against the budget.

        Raises:
            Fault: the failure of the last try.
            BudgetExhausted: the run may make no more calls.
        """

        async def reserved() -> T:
            reservation = self.budget.reserve(0.0)
            try:
                return await ask()
            finally:
                self.budget.settle(reservation, 0.0)

        return await self.call(reserved)

    async def _timed(self, ask: Callable[[], Awaitable[T]]) -> T:
        name, scope = self.target.name, asyncio.timeout(self.timeout)
        try:
            async with scope:
                with foreign_code():
                    return await ask()
        except VivavoceError:
            raise
        except Exception as error:
            if scope.expired():
                message = f"{name} did not answer within {self.timeout:g} s"
                raise TargetFault(message, kind="timeout", retryable=self.target.stateless) from error
            raise TargetFault(f"{name}: {type(error).__name__}: {error}") from error


def open_channel(target: Target, *, limit: int, budget: Budget, timeout: float | None, retries: int) -> TargetChannel:
    """Return the channel of a target with `limit` calls at a time.

    A stateful target has as many conversations. A stateless one, which knows nothing of conversations, has half as many
    more, so that its slots are never idle while an answer is processed.
    """
    conversations = 2 * limit if target.stateless else limit
    return TargetChannel(target, asyncio.Semaphore(conversations), Limiter(limit), budget, timeout, retries + 1)
