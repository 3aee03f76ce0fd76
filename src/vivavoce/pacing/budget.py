"""`Budget`: limits on calls and cost that parallel calls cannot overshoot."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass

from vivavoce.errors import BudgetExhausted, UsageError

_ROUNDING = 1e-9
"""Sums of prices may exceed the limit by this much before it counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """Room for one call; `cost` is what it may cost at most, None where the price is unknown."""

    cost: float | None


@dataclass(slots=True)
class _Aside:
    remaining: int


_UNLIMITED = nullcontext()
_ASIDE: ContextVar[_Aside | None] = ContextVar("calls set aside", default=None)


class Budget:
    """Room for calls and cost: `reserve` before each call, `settle` after it; None means no limit.

    Costs are in US dollars. What is reserved counts as spent until it is settled.

    Raises:
        UsageError: the limit is below 0, or no number.
    """

    def __init__(self, max_calls: int | None = None, max_cost: float | None = None) -> None:
        if max_cost is not None and not max_cost >= 0:
            raise UsageError(f"a limit of the cost is a number of US dollars from 0, got {max_cost:g}")
        self._max_calls = max_calls
        self._max_cost = max_cost
        self._calls = self._aside = 0
        self._settled = 0.0
        self._reserved = 0.0
        self._open: set[Reservation] = set()
        self._exhausted = False
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def limits_calls(self) -> bool:
        """Whether calls are counted against a limit."""
        return self._max_calls is not None

    @property
    def limits_cost(self) -> bool:
        """Whether a call must say what it may cost."""
        return self._max_cost is not None

    @property
    def calls(self) -> int:
        """How many calls were allowed."""
        return self._calls

    @property
    def cost(self) -> float:
        """What the calls cost, as far as it is known; open reservations count in full."""
        return self._settled + self._reserved

    @property
    def exhausted(self) -> bool:
        """Whether a call was refused: something that was asked for is left undone."""
        return self._exhausted

    async def admit(self, cost_estimate: float | None = None) -> Reservation:
        """Make room as `reserve` does, but wait while calls in flight hold it that may turn out cheaper.

        Raises:
            BudgetExhausted: the call might overshoot a limit, whatever the others cost.
            UsageError: the cost is limited and the price unknown.
        """
        while cost_estimate is not None and self._may_fit_later(cost_estimate):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        return self.reserve(cost_estimate)

    def reserve(self, cost_estimate: float | None = None) -> Reservation:
        """Make room for one call that costs at most `cost_estimate`, None where its price is unknown.

        Raises:
            BudgetExhausted: the call might overshoot a limit.
            UsageError: the cost is limited and the price unknown.
        """
        aside = _ASIDE.get()
        if aside is not None and aside.remaining:
            aside.remaining -= 1
            self._aside -= 1
        self._check_calls(1)
        if self._max_cost is not None:
            self._check_cost(cost_estimate, self._max_cost)
        reservation = Reservation(cost_estimate)
        self._open.add(reservation)
        self._calls += 1
        self._reserved += cost_estimate or 0.0
        return reservation

    def settle(self, reservation: Reservation, cost: float | None) -> None:
        """Replace a reservation by what the call cost; the estimate stands where that is None or no amount of money."""
        if reservation not in self._open:
            raise ValueError("this reservation is not open: it was settled before, or belongs to another budget")
        self._open.remove(reservation)
        estimate = reservation.cost or 0.0
        self._settled += cost if cost is not None and 0 <= cost < math.inf else estimate
        self._reserved = self._reserved - estimate if self._open else 0.0
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)

    def set_aside(self, calls: int) -> AbstractContextManager[None]:
        """Keep calls for what is worth nothing half done: those reserved inside, by this task, come out of them.

        Raises:
            BudgetExhausted: when it is entered, fewer calls are left.
        """
        return self._setting_aside(calls) if self.limits_calls else _UNLIMITED

    @contextmanager
    def _setting_aside(self, calls: int) -> Generator[None]:
        self._check_calls(calls)
        self._aside += calls
        aside = _Aside(calls)
        token = _ASIDE.set(aside)
        try:
            yield
        finally:
            _ASIDE.reset(token)
            self._aside -= aside.remaining

    def _may_fit_later(self, estimate: float) -> bool:
        if self._max_cost is None or self._reserved <= 0:
            return False
        room = self._max_cost + _ROUNDING - estimate
        return self._settled <= room < self.cost

    def _check_calls(self, calls: int) -> None:
        if self._max_calls is not None and self._calls + self._aside + calls > self._max_calls:
            self._refuse(f"the limit of {self._max_calls} calls is reached")

    def _check_cost(self, estimate: float | None, limit: float) -> None:
        if estimate is None:
            raise UsageError(
                "the price of the model is unknown and its cost cannot be bounded; "
                "state its price, or limit the calls instead of the cost"
            )
        if self.cost + estimate > limit + _ROUNDING:
            self._refuse(f"the next call may cost ${estimate:.4g}, and ${self.cost:.4g} of ${limit:.4g} is spent")

    def _refuse(self, why: str) -> None:
        self._exhausted = True
        raise BudgetExhausted(why)
