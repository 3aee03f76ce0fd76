"""The standard streams of the process, which a daemon, a cron job, or `>&-` may leave closed."""

from __future__ import annotations

import os
import sys
from typing import TextIO

_NAMES = ("stdin", "stdout", "stderr")


def open_closed_streams() -> None:
    """Open the null device in place of each standard stream that is closed.

    Otherwise the next file, such as the store, would get its number, and what is printed would go into that file.
    """
    for number, name in enumerate(_NAMES):
        try:
            os.fstat(number)
        except OSError:
            mode, flags = ("r", os.O_RDONLY) if number == 0 else ("w", os.O_WRONLY)
            os.open(os.devnull, flags)  # it gets the lowest free number, which is this one
            if not _leads_elsewhere(getattr(sys, name), number):
                setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def drop_unwritten() -> None:
    """Drop output that cannot be written; otherwise Python tries it again when it ends, and changes the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _leads_elsewhere(stream: TextIO | None, number: int) -> bool:
    """Return whether a stream is open, and not the standard stream of this number."""
    if stream is None or stream.closed:
        return False
    try:
        return stream.fileno() != number
    except OSError:
        return True
