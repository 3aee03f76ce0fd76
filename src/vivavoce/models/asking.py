"""Asking several questions at once, so that whatever was paid for is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable

from vivavoce.errors import BudgetExhausted
from vivavoce.models.model import ModelReply
from vivavoce.records.usage import charge, usage_of


async def ask_all(questions: Iterable[Awaitable[ModelReply]]) -> list[ModelReply]:
    """Return the replies to questions that are asked at once, in their order.

    Every reply is waited for, also where one question fails: what was answered is kept, and the failure that is raised
    has the usage of all of them.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached.
        Exception: the first failure, in the order of the questions.
    """
    outcomes = await asyncio.gather(*questions, return_exceptions=True)
    replies = [one for one in outcomes if not isinstance(one, BaseException)]
    failures = [one for one in outcomes if isinstance(one, BaseException)]
    if not failures:
        return replies
    error = next((one for one in failures if isinstance(one, BudgetExhausted)), failures[0])
    charge(error, *(reply.usage for reply in replies), *(usage_of(one) for one in failures if one is not error))
    raise error
