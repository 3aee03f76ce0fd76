"""Garbage collection while many conversations are held or checked.

Either makes many small objects, so that Python searches the whole heap often; with the modules of this package and the
rows of a dataset in it, that took a quarter of the time of judging.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

RARELY = (50_000, 20, 100)
"""Objects that may be created before the youngest ones are searched, and how often these are before older ones."""

_FROZEN_AT_START = gc.get_freeze_count()
"""What Python itself has left out already: nothing in most versions, a few hundred objects in 3.12."""

_lock = Lock()
_runs = 0
_before = gc.get_threshold()
_freezes = True


@contextmanager
def tuned_gc() -> Generator[None]:
    """Tune garbage collection: existing objects are left out, and searches are rare, until the last run has ended.

    Where a program has left out objects of its own with `gc.freeze`, exactly those stay left out: Python cannot take
    back some of them only.
    """
    global _runs, _before, _freezes
    with _lock:
        if not _runs:
            _before = gc.get_threshold()
            _freezes = gc.get_freeze_count() <= _FROZEN_AT_START
            gc.set_threshold(*RARELY)
        _runs += 1
        if _freezes:
            gc.freeze()
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if not _runs:
                if _freezes:
                    gc.unfreeze()
                gc.set_threshold(*_before)
