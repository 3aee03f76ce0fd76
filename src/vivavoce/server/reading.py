"""Requests that only read: each reads the store through one connection."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from inspect import iscoroutinefunction
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute

from vivavoce.store.database.database import READING, Reading

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def reading_once(route: APIRoute, handle: Handler) -> Handler:
    """Return a handler of a route, for GET one that reads the store as it is at one moment.

    Those that wait, or answer little by little, read as they go.
    """
    if "GET" not in (route.methods or ()) or iscoroutinefunction(route.endpoint):
        return handle

    async def handle_once(request: Request) -> Response:
        reading = Reading()
        before = READING.set(reading)
        try:
            return await handle(request)
        finally:
            READING.reset(before)
            await run_in_threadpool(reading.end)

    return handle_once
