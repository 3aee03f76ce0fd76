"""A limit on the processor time that one request, or one conversation of a job, may spend on checks.

Patterns, schemas, similarity, and numbers in text have limits of their own. A request may ask for thousands of them, so
their sum has one, too. They check it themselves with `counted_work`. In a process of its own, where the work is done in
the main thread, `interrupted_work` stops all other work as well.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType

from vivavoce.errors import GraderFault, UsageError

REQUEST_SECONDS = 20.0
"""Seconds of the processor that one request may spend on all of them together."""

CONVERSATION_SECONDS = 20.0
"""Seconds of the processor that the graders of one conversation of a job may spend."""

OF_CONVERSATION = "this conversation"
"""How the problem of a conversation begins whose graders take too long."""

TICK_SECONDS = 0.25
"""Seconds of the processor between two looks at work that does not check its time itself."""


@dataclass(slots=True)
class _Left:
    seconds: float
    problem: str


_left: ContextVar[_Left | None] = ContextVar("work_time", default=None)
_began: ContextVar[float | None] = ContextVar("work_began", default=None)
"""When the counted work of this thread began, in seconds of its processor time; None outside of it."""
_interrupts = False
"""Whether this process interrupts work."""


@contextmanager
def limited_work(seconds: float = REQUEST_SECONDS, whose: str = "this request") -> Generator[None]:
    """Limit the work inside, in this thread and in those that it starts with its context."""
    problem = f"{whose} takes more than {REQUEST_SECONDS:g} s of patterns, schemas, and comparisons"
    token = _left.set(_Left(seconds, problem))
    try:
        yield
    finally:
        _left.reset(token)


@contextmanager
def unlimited_work() -> Generator[None]:
    """Do not limit the work inside, such as writing what is finished."""
    token = _left.set(None)
    try:
        yield
    finally:
        _left.reset(token)


def conversation_work() -> AbstractContextManager[None]:
    """Limit what grades one conversation, in a process that interrupts work."""
    return limited_work(CONVERSATION_SECONDS, OF_CONVERSATION) if _interrupts else _UNLIMITED


def counted_work(
    error: type[GraderFault] | type[UsageError] = GraderFault,
) -> AbstractContextManager[Callable[[], None]]:
    """Count the time of the work inside, where it is limited; work inside of counted work is not counted twice.

    Yields what long work calls from time to time: it raises the error once the time is used up.

    Raises:
        GraderFault: nothing is left, before the work begins; `error` may be another one.
    """
    left = _left.get()
    return _UNCOUNTED if left is None else _count_time(left, error)


@contextmanager
def _count_time(left: _Left, error: type[GraderFault] | type[UsageError]) -> Generator[Callable[[], None]]:
    outer = _began.get()
    began = time.thread_time() if outer is None else outer

    def check(spent: float | None = None) -> None:
        if left.seconds - (time.thread_time() - began if spent is None else spent) <= 0:
            raise UsageError(left.problem) if error is UsageError else GraderFault(left.problem, kind="limit")

    check(0.0 if outer is None else None)
    if outer is not None:
        yield check
        return
    token = _began.set(began)
    try:
        yield check
    finally:
        _began.reset(token)
        left.seconds -= time.thread_time() - began


def charge_work(seconds: float) -> None:
    """Take work that another process did off what is left, where the work is limited; the next work notices."""
    left = _left.get()
    if left is not None:
        left.seconds -= seconds


@contextmanager
def interrupted_work() -> Generator[None]:
    """Raise an error in limited work of the main thread of this process once its time is used up.

    That is for a process that does nothing else: the error may come between any two steps of the work.
    """
    global _interrupts
    before = signal.signal(signal.SIGVTALRM, _on_tick)
    signal.setitimer(signal.ITIMER_VIRTUAL, TICK_SECONDS, TICK_SECONDS)
    _interrupts = True
    try:
        yield
    finally:
        _interrupts = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def _on_tick(number: int, frame: FrameType | None) -> None:
    """Take the time since the last tick off what the interrupted work may spend; the context is that of the work."""
    del number, frame
    left = _left.get()
    if left is None:
        return
    began = _began.get()
    if began is None:
        left.seconds -= TICK_SECONDS
    if left.seconds - (0.0 if began is None else time.thread_time() - began) <= 0:
        raise GraderFault(left.problem, kind="limit")


def _do_nothing() -> None:
    """Do nothing: the work is not limited."""


_UNLIMITED = nullcontext()
_UNCOUNTED = nullcontext(_do_nothing)
