"""Turns of requests that threads of the server answer: no user has all of them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from inspect import iscoroutinefunction

from fastapi import Request, Response
from fastapi.routing import APIRoute

from vivavoce.server.access import Handler
from vivavoce.server.client_presence import while_connected
from vivavoce.server.fair_share import FairShare
from vivavoce.server.users import user_of


def in_turn(route: APIRoute, handle: Handler) -> Handler:
    """Return a handler of a route: where there are turns, GET that a thread answers waits for that of its user.

    A request whose client hangs up does not wait any longer. One with a body would keep a turn until the body arrives.
    """
    if "GET" not in (route.methods or ()) or iscoroutinefunction(route.endpoint):
        return handle

    async def handle_in_turn(request: Request) -> Response:
        turns: FairShare | None = request.app.state.turns
        if turns is None:
            return await handle(request)
        async with AsyncExitStack() as stack:
            user = user_of(request)
            is_free = turns.is_free(user)
            turn = stack.enter_async_context(turns.take(user))
            await (turn if is_free else while_connected(request, turn))
            return await handle(request)

    return handle_in_turn
