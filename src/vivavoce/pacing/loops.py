"""Event loops: how to make one, and `PerLoop`, for objects such as connections that belong to one loop each."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from vivavoce.pacing.call_threads import Outcome, call_in_thread

T = TypeVar("T")
_PATCHES = ("nest_asyncio", "nest_asyncio2")


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop: that of uvloop where it is installed, which spends less time on each message.

    It is asyncio's where `nest_asyncio` is installed, for targets that call it: it can patch no other, and fails there
    in the middle. What is given to its default executor hangs, where it hangs, in a thread that nobody waits for.
    """
    loop = _bare_loop()
    loop.set_default_executor(_ThreadForEach())
    return loop


def _bare_loop() -> asyncio.AbstractEventLoop:
    if any(map(find_spec, _PATCHES)):
        return asyncio.new_event_loop()
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a new event loop.

    asyncio ends a loop at once when one of its tasks raises `SystemExit` or `KeyboardInterrupt`. Here that is an error
    like any other: it comes to whoever waits for the task, such as the boundary of the target that began it.
    """
    begun: list[asyncio.Task[Any]] = []

    async def known() -> T:
        begun.extend(filter(None, [asyncio.current_task()]))
        return await coroutine

    running: Coroutine[Any, Any, T] = known()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        while True:
            try:
                return runner.run(running)
            except (SystemExit, KeyboardInterrupt) as error:
                if not begun or begun[0].done() or begun[0].cancelling() or not _is_of_a_task(error):
                    raise
            running = _result_of(begun[0])


async def _result_of(task: asyncio.Task[T]) -> T:
    return await task


def _is_of_a_task(error: BaseException) -> bool:
    """Return whether a coroutine raised an error, and not what handles a signal."""
    frames = error.__traceback__
    while frames is not None:
        if frames.tb_frame.f_code.co_flags & inspect.CO_COROUTINE:
            return True
        frames = frames.tb_next
    return False


class _ThreadForEach(ThreadPoolExecutor):
    """Gives each call in flight a daemon thread, so that calls that hang hold up neither others nor the end."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        call_in_thread(partial(fn, *args, **kwargs), partial(_settle, future))
        return future


def _settle(future: Future[T], outcome: Outcome[T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    if outcome.error is not None:
        future.set_exception(outcome.error)
    else:
        future.set_result(outcome.returned)  # pyright: ignore[reportArgumentType]


class PerLoop(Generic[T]):
    """Makes one thing for each event loop, when it is first asked for there; several threads may each have a loop.

    The thing of a loop that ended is given to `drop`, since it can no longer be closed properly.
    """

    def __init__(self, make: Callable[[], T], drop: Callable[[T], object] | None = None) -> None:
        self._make = make
        self._drop = drop
        self._things: dict[asyncio.AbstractEventLoop, T] = {}

    def get(self) -> T:
        """Return the thing of the running loop."""
        loop = asyncio.get_running_loop()
        thing = self._things.get(loop)
        if thing is None:
            self._forget_ended()
            thing = self._things[loop] = self._make()
        return thing

    def take(self) -> T | None:
        """Return the thing of the running loop to close it, None where it has none; the next one is a new one."""
        return self._things.pop(asyncio.get_running_loop(), None)

    def _forget_ended(self) -> None:
        for loop in list(self._things):
            if loop.is_closed() and (thing := self._things.pop(loop, None)) is not None and self._drop is not None:
                self._drop(thing)
