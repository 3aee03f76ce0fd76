"""The boundary between async and sync code."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

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
        RuntimeError: it tried to end the program, or its own task; that is a failure like any other.
    """
    try:
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        returned = await in_thread(partial(function, *args, **kwargs))
        return await returned if inspect.isawaitable(returned) else returned
    except SystemExit as error:
        raise RuntimeError(f"it called sys.exit({error.code!r})") from error
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise RuntimeError("it cancelled itself") from error


def is_cancelled() -> bool:
    """Say whether this task was cancelled from outside, and not by the code that runs in it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def in_thread(call: Callable[[], T]) -> T:
    """Run a call in a daemon thread of its own.

    A pool would keep the interpreter from ending while a call hangs, and its few threads could all be hanging.
    """
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

    def deliver(outcome: tuple[T | None, BaseException | None]) -> None:
        if not waiting.done():
            waiting.set_result(outcome)

    def work() -> None:
        try:
            outcome: tuple[T | None, BaseException | None] = (call(), None)
        except KeyboardInterrupt:  # that of the keyboard comes to the main thread alone
            outcome = (None, RuntimeError("it raised KeyboardInterrupt"))
        except BaseException as error:
            outcome = (None, error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(deliver, outcome)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True, name="vivavoce-call").start()
    returned, error = await waiting
    if error is not None:
        raise error
    return returned  # pyright: ignore[reportReturnType]
