"""Asking several questions at once, so that the usage of every answer is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from vivavoce.errors import BudgetExhausted, Deferred
from vivavoce.records.usage import Usage, charge, usage_of


class Paid(Protocol):
    """Something that has a usage, such as a reply of a model."""

    @property
    def usage(self) -> Usage | None:
        """Its usage."""
        ...


P = TypeVar("P", bound=Paid)
T = TypeVar("T")


async def all_of(waited_for: Iterable[Awaitable[T]]) -> list[T]:
    """Return what several things come to that are waited for at once, in their order, also where one of them fails.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached.
        Deferred: an answer will come later.
        Exception: the first failure, in their order.
    """
    outcomes = await asyncio.gather(*waited_for, return_exceptions=True)
    if (error := _first(outcome for outcome in outcomes if isinstance(outcome, BaseException))) is not None:
        raise error
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


async def first_then_all(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Return what several calls come to, in their order: the first is made alone, then the others at once.

    Where they begin alike, the first one fills the cache of the server, or of the provider, and the others are asked
    while that is still there.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached; by the first one, and the others are not made.
        Deferred: an answer will come later; all calls were made.
        Exception: the first failure, in their order.
    """
    first: list[T] = []
    deferred: Deferred | None = None
    try:
        first = [await call() for call in calls[:1]]
    except Deferred as later:
        deferred = later
    others = await all_of(call() for call in calls[1:])
    if deferred is not None:
        raise deferred
    return first + others


async def ask_all(questions: Iterable[Awaitable[P]]) -> list[P]:
    """Return the answers to questions that are asked at once, in their order.

    Every answer is waited for, also where one question fails; the failure that is raised has the usage of all of them.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached.
        Deferred: an answer will come later.
        Exception: the first failure, in the order of the questions.
    """
    outcomes = await asyncio.gather(*questions, return_exceptions=True)
    answers = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    error = _first(failures)
    if error is None:
        return answers
    charge(error, *(answer.usage for answer in answers), *(usage_of(other) for other in failures if other is not error))
    raise error


def _first(failures: Iterable[BaseException]) -> BaseException | None:
    """Return the failure that counts: a limit that is reached, then an answer that is still to come, then the first."""
    found = list(failures)
    graver = [one for kind in (BudgetExhausted, Deferred) for one in found if isinstance(one, kind)]
    return next(iter([*graver, *found]), None)
