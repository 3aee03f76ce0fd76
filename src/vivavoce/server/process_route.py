"""Routes whose requests are answered in processes of their own, from reading the body to writing the answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response

from vivavoce.server.access import Handler
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.fair_share import FairShare
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.processes import KILL_SECONDS, MAX_BYTES, ON_START, Task, WorkProcess, call
from vivavoce.server.state import ServerState, request_state
from vivavoce.server.traffic import until_sent
from vivavoce.server.turns import while_connected
from vivavoce.server.users import User, user_of

T = TypeVar("T")

MAX_AT_ONCE = 32
"""Requests that have processes, or answers that are not sent yet, at a time; others wait."""

MAX_AT_ONCE_FOR_USER = 16
"""The same of one user, so that one user leaves places to others."""


class PlainRequest(NamedTuple):
    """A request for another process; the user was found and the address was checked before."""

    method: str
    path: str
    raw_path: bytes
    query_string: bytes
    headers: list[tuple[bytes, bytes]]
    user: User
    body: bytes


class PlainResponse(NamedTuple):
    """The answer of another process."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a process needs to know of its server: the address of the store, the policy, and what signs forms."""

    store: str
    policy: ServerPolicy
    secret: bytes


class ProcessRoute(StrictRoute):
    """A route that is answered in a process of its own, where the application has a way to begin one."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the framework for the process, and one that begins a process for the server."""
        return in_process(super().get_route_handler())


def in_process(handle: Handler) -> Handler:
    """Return a handler that begins a process for a request of the server, and that handles it in the process."""

    async def handle_anywhere(request: Request) -> Response:
        state = request_state(request)
        return await (state.processes.answer(request) if isinstance(state, ServerState) else handle(request))

    return handle_anywhere


class RequestProcesses:
    """The processes that answer requests of one server."""

    def __init__(self, store: str, policy: ServerPolicy, secret: bytes) -> None:
        self._surroundings = Surroundings(store, policy, secret)
        self._places = FairShare(MAX_AT_ONCE, MAX_AT_ONCE_FOR_USER)
        self._threads = CapacityLimiter(2 * MAX_AT_ONCE)

    async def answer(self, request: Request) -> Response:
        """Answer a request in a process, which is killed if the client hangs up.

        The request keeps its place until its answer is sent, so that nobody gathers answers here without reading them.

        Raises:
            TooMuchWork: it takes more than the time of a request.
            StoreError: the process cannot be started, or ended early.
        """
        user, scope = user_of(request), request.scope
        body = await request.body()
        path = (scope["method"], scope["path"], scope["raw_path"], scope["query_string"])
        plain = PlainRequest(*path, [*scope["headers"]], user, body)
        response = await while_connected(request, self._answer(plain, until_sent(request)))
        answer = Response(response.body, response.status)
        answer.raw_headers = response.headers
        return answer

    async def run(self, request: Request, work: Callable[[], T]) -> T:
        """Do work that starts processes and waits for them, in a thread, once there is a place for the user.

        The processes are killed if the client hangs up.

        Raises:
            HTTPException: the client has hung up.
        """
        return await while_connected(request, self._run(user_of(request), work))

    async def _run(self, user: User, work: Callable[[], T]) -> T:
        async with self._places.take(user):
            return await self._in_thread(work)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Do work in a thread that may outlive this call, but not with a process."""
        end = _End()
        token = ON_START.set(end.watch)
        try:
            return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)
        finally:
            ON_START.reset(token)
            end.reach()

    async def _answer(self, request: PlainRequest, until_sent: AsyncExitStack) -> PlainResponse:
        await until_sent.enter_async_context(self._places.take(request.user))
        task = Task(
            "vivavoce.server.process_app:respond",
            (request, self._surroundings),
            cpu_seconds=KILL_SECONDS,
            max_bytes=MAX_BYTES,
        )
        return await self._in_thread(partial(call, task))


class _End:
    """The end of a call, in one thread, that its process must not survive, in another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: WorkProcess | None = None
        self._is_reached = False

    def watch(self, process: WorkProcess) -> None:
        """Kill this process when the end is reached."""
        with self._lock:
            self._process = process
            if self._is_reached:
                process.kill()

    def reach(self) -> None:
        """Kill the process, if it still runs."""
        with self._lock:
            self._is_reached = True
            if self._process is not None:
                self._process.kill()
