"""Work for a client that ends when the client hangs up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from fastapi import HTTPException, Request

T = TypeVar("T")

CLIENT_GONE = 499
"""The status of a request whose client has hung up; only the log shows it."""


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do work as long as the client of a request, whose whole body has been read, is there.

    Raises:
        HTTPException: the client has hung up.
    """
    working, leaving = asyncio.create_task(work), asyncio.create_task(_until_gone(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise HTTPException(CLIENT_GONE)
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
            with suppress(BaseException):  # the error of the work is raised above
                await task


async def _until_gone(request: Request) -> None:
    """Wait until the client hangs up; its whole body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
