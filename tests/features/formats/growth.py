"""How work grows with what is read: lines of our code that run, counted, so that no clock decides."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

PARTS = 4


def lines_run(work: Callable[[], object]) -> int:
    """Return how many lines run in the package while a function works."""
    count = 0

    def line(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def enter(frame: FrameType, _: str, __: Any) -> Any:
        return line if "vivavoce" in frame.f_globals.get("__name__", "") else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def is_linear(work_of: Callable[[int], Callable[[], object]], size: int = 100) -> bool:
    """Return whether four times as much to read takes about four times as many lines."""
    few, many = (lines_run(work_of(size * times)) for times in (1, PARTS))
    return many < few * PARTS * 1.5
