"""The recordings that a suite names, each read once."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from vivavoce.records.recording import Recording, read_recording
from vivavoce.suites.load import Suite


def opened(suite: Suite, path: str) -> Recording:
    """Return the recording at a path of a suite.

    Raises:
        UsageError: it cannot be read, is empty or cut off, or a line is broken.
    """
    place = suite.base / path
    try:
        found = place.stat()
    except OSError:
        return read_recording(place)
    return _read(place, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, changed: int, size: int) -> Recording:
    """Return a recording, which is read once as long as its file is the same."""
    del changed, size
    return read_recording(path)
