"""Watching production as a service: what comes in over HTTP or in a folder, judged until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import Any

import uvicorn

from vivavoce.features.watch.folder import Folder
from vivavoce.features.watch.receiver import Receiver
from vivavoce.features.watch.watch import TICK, Watch
from vivavoce.server.authenticator import Authenticator
from vivavoce.server.connection import AcceptFailures, server_config
from vivavoce.server.listening import Listening

SHUTDOWN_SECONDS = 5
"""Seconds that a request in progress has when the service stops."""


class _Server(uvicorn.Server):
    """A server that leaves signals to the watch."""

    def capture_signals(self) -> Any:
        """Capture none."""
        return nullcontext()


async def watch_requests(watch: Watch, opened: Listening) -> None:
    """Take what is sent to an address, and judge it.

    Raises:
        UsageError: the suite cannot be used. StoreError: the disk failed; nothing that was taken is lost.
    """
    access = opened.access
    authenticator = Authenticator(watch.store, access.digest, proxied=access.proxied) if access.demanded else None
    receiver = Receiver(watch.spool, access, authenticator)
    server = _Server(
        server_config(
            receiver,
            lifespan="off",
            log_level="error",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    )

    async def end() -> None:
        server.should_exit = True

    await _until_stopped(watch, _serve(server, opened.bound), end)


async def watch_folder(watch: Watch, folder: Folder) -> None:
    """Take what is in a folder and what comes there, and judge it.

    Raises:
        UsageError: the suite cannot be used. StoreError: the disk failed; nothing that was taken is lost.
    """
    ended = asyncio.Event()

    async def look() -> None:
        while not ended.is_set():
            await folder.look()
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), TICK)

    async def end() -> None:
        ended.set()

    if watch.how.once:
        await folder.look(is_last=True)
        await _until_stopped(watch, asyncio.sleep(0), end)
    else:
        await _until_stopped(watch, look(), end)


async def _serve(server: uvicorn.Server, bound: socket.socket) -> None:
    asyncio.get_running_loop().set_exception_handler(AcceptFailures())
    await server.serve(sockets=[bound])


async def _until_stopped(watch: Watch, taking: Awaitable[None], end: Callable[[], Awaitable[None]]) -> None:
    """Receive and judge concurrently; when judging ends, so does receiving, and the reverse if it fails."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, and threads other than the first
            loop.add_signal_handler(number, watch.stop)
    taker = asyncio.ensure_future(taking)
    taker.add_done_callback(lambda done: watch.stop() if not done.cancelled() and done.exception() else None)
    try:
        await watch.run()
    finally:
        await end()
        await taker
