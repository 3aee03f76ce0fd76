"""Calling a user's extractor, grader or reward function: with a time limit, and without blocking other work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from vivavoce.errors import GraderFault
from vivavoce.foreign_code import name_of
from vivavoce.pacing.waiting import call

TIME_LIMIT = 60.0
"""Default time limit of a user's function, in seconds."""


async def call_user(function: Callable[..., Any], *args: Any, seconds: float = TIME_LIMIT, **kwargs: Any) -> Any:
    """Return what a user's function returns, sync or async.

    Raises:
        GraderFault: it takes longer than the time limit.
    """
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            return await call(function, *args, **kwargs)
    except TimeoutError as error:
        if not scope.expired():
            raise
        name = name_of(function)
        raise GraderFault(f"{name} took longer than {seconds:g} s", kind="timeout") from error
