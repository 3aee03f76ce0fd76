"""`LoopThread`: an event loop in a thread of its own, for sync code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from vivavoce.pacing.loops import new_loop

T = TypeVar("T")


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
        begun = self.begin(coroutine)
        try:
            return begun.result()
        except BaseException:
            begun.cancel()
            raise

    def run_within(self, coroutine: Coroutine[Any, Any, object], seconds: float) -> bool:
        """Run a coroutine, and return whether it ended in so many seconds; what takes longer is left alone."""
        begun = self.begin(coroutine)
        try:
            begun.result(seconds)
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
