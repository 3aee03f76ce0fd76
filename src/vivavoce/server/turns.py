"""Requests that wait: each user has some of the threads of the server, and nothing is done for a departed client."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from vivavoce.server.state import ServerState, request_state
from vivavoce.server.users import user_of

if TYPE_CHECKING:
    from vivavoce.server.access import Handler

T = TypeVar("T")

CLIENT_GONE = 499
"""The status of a request whose client has hung up; only the log shows it."""


def _client_gone() -> HTTPException:
    return HTTPException(CLIENT_GONE, "the client has hung up")


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do work as long as the client of a request, whose whole body has been read, is there.

    Raises:
        HTTPException: the client has hung up.
    """
    working, leaving = asyncio.create_task(work), asyncio.create_task(_until_gone(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise _client_gone()
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)  # the error of the work is raised above


async def _until_gone(request: Request) -> None:
    """Wait until the client hangs up; its whole body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _read_body(request: Request) -> None:
    """Keep the body of a request for its handler.

    Raises:
        HTTPException: the client has hung up before it was sent.
    """
    try:
        await request.body()
    except ClientDisconnect as error:
        raise _client_gone() from error


def in_turn(route: APIRoute, handle: Handler) -> Handler:
    """Return a handler of a route: what a thread of a server answers waits for a turn of its user.

    Requests that write have few turns of their own: while something else locks the store, they wait in their threads,
    and readers need threads too. A request whose client hangs up does not wait any longer.
    """
    if iscoroutinefunction(route.endpoint):
        return handle
    reads = "GET" in (route.methods or ())

    async def handle_in_turn(request: Request) -> Response:
        state = request_state(request)
        if not isinstance(state, ServerState):
            return await handle(request)
        if not reads:
            await _read_body(request)  # one that arrives slowly takes no turn
        turns = state.turns if reads else state.writing_turns
        async with AsyncExitStack() as stack:
            user = user_of(request)
            is_free = turns.is_free(user)
            turn = stack.enter_async_context(turns.take(user))
            await (turn if is_free else while_connected(request, turn))
            return await handle(request)

    return handle_in_turn
