"""Event loops, threads for calls that may block, and the boundary between async and sync code."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar

from vivavoce.user_code import foreign_code

T = TypeVar("T")
IDLE_SECONDS = 1.0
"""Seconds that a thread waits for another call before it ends."""

Work = Callable[[], Callable[[], object]]
"""Makes a call, and returns what tells of its outcome."""


class Outcome(NamedTuple, Generic[T]):
    """What a call returned, or what it raised."""

    returned: T | None
    error: BaseException | None


def call_in_thread(call: Callable[[], T], deliver: Callable[[Outcome[T]], object]) -> None:
    """Begin a call in a thread that no other call has until this one ends; `deliver` gets its outcome there.

    A call that hangs keeps its thread, and neither other calls nor the interpreter from ending.
    """

    def work() -> Callable[[], object]:
        try:
            outcome = Outcome(call(), None)
        except KeyboardInterrupt:  # that of the keyboard comes to the main thread alone
            outcome = Outcome[T](None, RuntimeError("it raised KeyboardInterrupt"))
        except BaseException as error:
            outcome = Outcome[T](None, error)
        return partial(deliver, outcome)

    try:
        thread = _idle.pop()
    except IndexError:
        thread = _CallThread()
        threading.Thread(target=thread.run, daemon=True, name="vivavoce-call").start()
    thread.calls.put(partial(copy_context().run, work))


class _CallThread:
    """A thread that makes calls, one after the other."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Work] = SimpleQueue()

    def run(self) -> None:
        """Make calls until none comes any more."""
        while True:
            try:
                self._make(self.calls.get(timeout=IDLE_SECONDS))
            except Empty:
                try:
                    _idle.remove(self)
                except ValueError:  # somebody has just taken it, and a call is about to come
                    continue
                return

    def _make(self, work: Work) -> None:
        tell = work()
        _idle.append(self)  # before anybody hears of the outcome: who then calls again finds it
        tell()


_idle: list[_CallThread] = []
"""The threads that wait for a call; who takes one out of the list is the only one to give it a call."""

if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_idle.clear)


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
    tasks: list[asyncio.Task[Any]] = []

    async def capture_task() -> T:
        tasks.extend(filter(None, [asyncio.current_task()]))
        return await coroutine

    running: Coroutine[Any, Any, T] = capture_task()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        while True:
            try:
                return runner.run(running)
            except (SystemExit, KeyboardInterrupt) as error:
                if not tasks or tasks[0].done() or tasks[0].cancelling() or not _is_of_a_task(error):
                    raise
            running = _result_of(tasks[0])


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


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in a thread of its own where this one has a running loop, as in a notebook.

    Raises:
        KeyboardInterrupt: it was interrupted; the coroutine is cancelled and has ended.
    """
    if not _in_loop():  # outside of an `except`, whose error would stand above each that the coroutine raises
        return run(coroutine)
    running_tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def capture_task() -> T:
        running_tasks.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await coroutine

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run, capture_task())
        try:
            return waiting.result()
        except KeyboardInterrupt:
            for loop, task in running_tasks:
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


class LoopThread:
    """Runs coroutines until it is stopped; it does not keep the program from ending."""

    def __init__(self, name: str) -> None:
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True, name=name)
        self._thread.start()

    def _serve(self) -> None:
        """Run the loop until it is stopped; asyncio ends it when a task wants to end the program."""
        while True:
            try:
                return self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt):  # whoever waits for the task is told; signals come to no thread
                continue

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin a coroutine, and return a future for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; where that is not waited for, as after Ctrl-C, it is cancelled."""
        future = self.begin(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def run_within(self, coroutine: Coroutine[Any, Any, object], seconds: float) -> bool:
        """Run a coroutine, and return whether it ended in this many seconds; what takes longer is left alone."""
        future = self.begin(coroutine)
        try:
            future.result(seconds)
        except (TimeoutError, CancelledError):
            return False
        return True

    def call(self, function: Callable[[], object]) -> None:
        """Have a function called there."""
        self._loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        """End the loop and its thread; what runs there still is dropped."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
