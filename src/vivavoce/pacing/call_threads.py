"""Daemon threads for calls that may block: one for each call in flight, kept a moment for the next call."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
KEPT = 1.0
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
                self._make(self.calls.get(timeout=KEPT))
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
