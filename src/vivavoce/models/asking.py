"""Asking several questions at once, so that the usage of every answer is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Protocol, TypeVar

from vivavoce.errors import BudgetExhausted
from vivavoce.records.usage import Usage, charge, usage_of


class Paid(Protocol):
    """Something that has a usage, such as a reply of a model."""

    @property
    def usage(self) -> Usage | None:
        """Its usage."""
        ...


P = TypeVar("P", bound=Paid)


async def ask_all(questions: Iterable[Awaitable[P]]) -> list[P]:
    """Return the answers to questions that are asked at once, in their order.

    Every answer is waited for, also where one question fails; the failure that is raised has the usage of all of them.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached.
        Exception: the first failure, in the order of the questions.
    """
    outcomes = await asyncio.gather(*questions, return_exceptions=True)
    answers = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    if not failures:
        return answers
    error = next((outcome for outcome in failures if isinstance(outcome, BudgetExhausted)), failures[0])
    charge(error, *(answer.usage for answer in answers), *(usage_of(other) for other in failures if other is not error))
    raise error
