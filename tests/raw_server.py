"""A server on this machine that speaks bytes, for tests of what is said over a connection."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(talk: Talk, context: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """Give the port of a server that talks with each who connects; at the end every connection is closed."""
    talking: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talking.add(task)
        try:
            await talk(reader, writer)
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]
    for task in talking:
        task.cancel()
    await asyncio.gather(*talking)
    await asyncio.sleep(0)
