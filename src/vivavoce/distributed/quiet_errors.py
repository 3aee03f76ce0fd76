"""Keeping standard error to ourselves while a library and its processes would write to it."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager


class _OfOneThread(io.TextIOWrapper):
    """A stream that takes text from one thread only, and drops what others write."""

    _thread: int | None = None

    def write(self, text: str, /) -> int:
        """Write a text."""
        return len(text) if threading.get_ident() != self._thread else super().write(text)


@contextmanager
def quiet_errors() -> Generator[None]:
    """Drop what other threads, and processes that are started meanwhile, write to standard error.

    The thread that begins this still writes there.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    before = sys.stderr
    own = _OfOneThread(io.FileIO(kept, "w", closefd=False), encoding="utf-8", errors="replace", write_through=True)
    own._thread = threading.get_ident()
    sys.stderr = own
    try:
        yield
    finally:
        own.flush()
        sys.stderr = before
        os.dup2(kept, 2)
        os.close(kept)
