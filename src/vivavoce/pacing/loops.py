"""Event loops: how to make one, and `PerLoop`, for objects such as connections that belong to one loop each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop: that of uvloop where it is installed, which spends less time on each message."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a new event loop."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(coroutine)


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
