"""Keeping standard error to ourselves while a library and its processes would write to it."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager


class _OfOneThread(io.TextIOWrapper):
    """A stream that takes text from the thread that made it, and drops what others write."""

    def __init__(self, descriptor: int) -> None:
        self._thread = threading.get_ident()
        file = io.FileIO(descriptor, "w", closefd=False)
        super().__init__(io.BufferedWriter(file), encoding="utf-8", errors="replace", write_through=True)

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
    own = _OfOneThread(kept)
    sys.stderr = own
    try:
        yield
    finally:
        own.flush()
        sys.stderr = before
        os.dup2(kept, 2)
        os.close(kept)
