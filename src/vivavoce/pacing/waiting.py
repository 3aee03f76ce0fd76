"""The boundary between async and sync code."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from vivavoce.foreign_code import foreign_code
from vivavoce.pacing.call_threads import Outcome, call_in_thread
from vivavoce.pacing.loops import run

T = TypeVar("T")


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in a thread of its own where this one has a running loop, as in a notebook.

    Raises:
        KeyboardInterrupt: it was interrupted; the coroutine is cancelled and has ended.
    """
    if not _in_loop():  # outside of an `except`, whose error would stand above each that the coroutine raises
        return run(coroutine)
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def known() -> T:
        begun.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await coroutine

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run, known())
        try:
            return waiting.result()
        except KeyboardInterrupt:
            for loop, task in begun:
                if task is not None:
                    loop.call_soon_threadsafe(task.cancel)
            raise


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a user's function, sync or async; a sync one may block without blocking the event loop.

    Raises:
        RuntimeError: it raised what would end more than this call, as in `foreign_code`.
    """
    with foreign_code():
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        returned = await in_thread(partial(function, *args, **kwargs))
        return await returned if inspect.isawaitable(returned) else returned


async def in_thread(call: Callable[[], T]) -> T:
    """Run a call in a daemon thread that it has to itself.

    A pool would keep the interpreter from ending while a call hangs, and its few threads could all be hanging.
    """
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[Outcome[T]] = loop.create_future()

    def settle(outcome: Outcome[T]) -> None:
        if not waiting.done():
            waiting.set_result(outcome)

    def deliver(outcome: Outcome[T]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, outcome)

    call_in_thread(call, deliver)
    returned, error = await waiting
    if error is not None:
        raise error
    return returned  # pyright: ignore[reportReturnType]
