"""Asking several questions at once, so that whatever was paid for is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Protocol, TypeVar

from vivavoce.errors import BudgetExhausted
from vivavoce.records.usage import Usage, charge, usage_of


class Paid(Protocol):
    """What a model was asked for, such as its reply."""

    @property
    def usage(self) -> Usage | None:
        """What it took."""
        ...


P = TypeVar("P", bound=Paid)


async def ask_all(questions: Iterable[Awaitable[P]]) -> list[P]:
    """Return the answers to questions that are asked at once, in their order.

    Every answer is waited for, also where one question fails: what was answered is kept, and the failure that is raised
    has the usage of all of them.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached.
        Exception: the first failure, in the order of the questions.
    """
    outcomes = await asyncio.gather(*questions, return_exceptions=True)
    answers = [one for one in outcomes if not isinstance(one, BaseException)]
    failures = [one for one in outcomes if isinstance(one, BaseException)]
    if not failures:
        return answers
    error = next((one for one in failures if isinstance(one, BudgetExhausted)), failures[0])
    charge(error, *(answer.usage for answer in answers), *(usage_of(one) for one in failures if one is not error))
    raise error
