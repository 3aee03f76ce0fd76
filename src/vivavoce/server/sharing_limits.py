"""Sharing the rate limits: each server tells the store twice a second what its clients have asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from anyio import to_thread
from fastapi import FastAPI

from vivavoce.errors import StoreError
from vivavoce.server.authenticator import FORGET, Authenticator
from vivavoce.server.state import server_of

PAUSE = 0.5
"""Seconds between two exchanges."""


@asynccontextmanager
async def sharing_limits(app: FastAPI) -> AsyncGenerator[None]:
    """Exchange what clients have asked while an application is served; without requests nothing is written."""
    task = asyncio.create_task(_share(server_of(app).authenticator))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _share(authenticator: Authenticator) -> None:
    forgot = time.monotonic()
    while True:
        await asyncio.sleep(PAUSE)
        with suppress(StoreError):  # it cannot be written now; the counts of this server hold, and it tries again
            await to_thread.run_sync(authenticator.exchange)
            if time.monotonic() > forgot + FORGET and authenticator.counts:
                await to_thread.run_sync(authenticator.forget)
                forgot = time.monotonic()
