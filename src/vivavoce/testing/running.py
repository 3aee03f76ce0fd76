"""The test that is running now, for what it calls: whose conversation is measured, and what that test shares."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vivavoce.testing.session import SharedSession


@dataclass(slots=True)
class RunningTest:
    """One test while it runs; `trial` counts from 0, and `note` keeps a value with the result of the test.

    `session` makes what all tests share when it is first asked for, since most tests need none of it.
    """

    name: str
    session: Callable[[], SharedSession]
    note: Callable[[str, object], None]
    trial: int = 0


_running: list[RunningTest] = []
"""The tests that run, the innermost last: a test of a pytest plugin runs pytest itself."""


def running_test() -> RunningTest | None:
    """Return the test that is running, None outside of pytest."""
    return _running[-1] if _running else None


@contextmanager
def running(test: RunningTest) -> Generator[None]:
    """Make a test the one that is running."""
    _running.append(test)
    try:
        yield
    finally:
        _running.remove(test)
