"""Which attempt at a conversation a request belongs to; a cache answers no new attempt with replies to an old one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

REPEAT = "try 2"
"""The name of the second try of a test, whose first one the tester spoiled."""

_ATTEMPT: ContextVar[str] = ContextVar("attempt", default="")


def current_attempt() -> str:
    """Return the name of the attempt that is under way, empty for the first one."""
    return _ATTEMPT.get()


@contextmanager
def new_attempt(name: str) -> Generator[None]:
    """Name the attempt that all requests within belong to; one within another has both names."""
    outer = _ATTEMPT.get()
    token = _ATTEMPT.set(f"{outer}, {name}" if outer else name)
    try:
        yield
    finally:
        _ATTEMPT.reset(token)
