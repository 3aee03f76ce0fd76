"""A limit on the processor time that one request may spend on patterns, schemas, similarity, and numbers in text.

Each of them has a limit of its own. A request may ask for thousands of them, so their sum has one, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from vivavoce.errors import GraderFault, UsageError

REQUEST_SECONDS = 20.0
"""Seconds of the processor that one request may spend on all of them together."""


@dataclass(slots=True)
class _Left:
    seconds: float


_left: ContextVar[_Left | None] = ContextVar("work_time", default=None)
_began: ContextVar[float | None] = ContextVar("work_began", default=None)
"""When the counted work of this thread began, in seconds of its processor time; None outside of it."""


@contextmanager
def limited_work(seconds: float = REQUEST_SECONDS) -> Generator[None]:
    """Limit the work inside, in this thread and in those that it starts with its context."""
    token = _left.set(_Left(seconds))
    try:
        yield
    finally:
        _left.reset(token)


@contextmanager
def counted_work(error: type[GraderFault] | type[UsageError] = GraderFault) -> Generator[Callable[[], None]]:
    """Count the time of the work inside, where it is limited; work inside of counted work is not counted twice.

    Yields what long work calls from time to time: it raises the error once the time is used up.

    Raises:
        GraderFault: nothing is left, before the work begins; `error` may be another one.
    """
    left = _left.get()
    if left is None:
        yield _go_on
        return
    outer = _began.get()
    began = time.thread_time() if outer is None else outer

    def check(spent: float | None = None) -> None:
        if left.seconds - (time.thread_time() - began if spent is None else spent) <= 0:
            problem = f"this request takes more than {REQUEST_SECONDS:g} s of patterns, schemas, and comparisons"
            raise UsageError(problem) if error is UsageError else GraderFault(problem, kind="limit")

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


def _go_on() -> None:
    """Do nothing: the work is not limited."""
