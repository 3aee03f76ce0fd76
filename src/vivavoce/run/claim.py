"""A claim on a run: one process at a time may work on it."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from vivavoce.errors import StoreError, UsageError

try:
    import fcntl
except ImportError:  # Windows has no such locks; two resumes of one run are found out by the store there
    fcntl = None


@contextmanager
def claimed(place: str, run_id: str) -> Generator[None]:
    """Hold a run while working on it; the claim ends with the process, however that ends.

    Raises:
        UsageError: another process is working on it.
        StoreError: the folder of the store cannot be written.
    """
    if fcntl is None:
        yield
        return
    path = Path(f"{place}.{run_id}.lock")
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise StoreError(f"{place}: nothing can be written beside it: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise UsageError(f"run {run_id} is being worked on by another process; wait for it, or stop it") from error
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            path.unlink()
        os.close(descriptor)
