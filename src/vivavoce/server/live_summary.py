"""`LiveSummary`: a cache of the summaries of running runs.

Summarising a long run takes a second, and each viewer asks every few seconds. So the summary is computed once and
shared for a while.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field

from vivavoce.errors import StoreError, UsageError
from vivavoce.report.graded_run import GradedRun
from vivavoce.run.summary import Summary

KEPT = 32
"""Summaries that are cached."""

AGE = 1.0
"""Minimum seconds for which a summary is reused."""

REST = 5.0
"""A summary is reused for this multiple of its computing time, so that it never takes a whole processor."""


GRACE = 1.0
"""For this many seconds more it is shown while a thread computes the next one, so that no viewer waits for it."""


@dataclass(slots=True)
class _Counted:
    """A summary and its expiry time; `lock` is held while it is computed."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    summary: Summary | None = None
    until: float = 0.0

    def count(self, graded: GradedRun) -> Summary:
        """Return the summary, computed unless somebody has just done so; the caller holds the lock."""
        if self.summary is None or time.monotonic() >= self.until:
            began = time.monotonic()
            self.summary = graded.summary()
            now = time.monotonic()
            self.until = now + max(AGE, REST * (now - began))
        return self.summary

    def count_apart(self, graded: GradedRun) -> None:
        """Compute it in a thread that was given the lock."""
        with suppress(UsageError, StoreError):  # who asks next computes it and is told
            try:
                self.count(graded)
            finally:
                self.lock.release()


class LiveSummary:
    """The summaries of one server; safe for use from any thread."""

    def __init__(self) -> None:
        self._counted: OrderedDict[str, _Counted] = OrderedDict()
        self._lock = threading.Lock()

    def summary(self, graded: GradedRun) -> Summary:
        """Return the summary of a run: the final one if it is finished, else a recent one."""
        if graded.ended:
            return graded.summary()
        with self._lock:
            kept = self._counted.setdefault(graded.grading.id, _Counted())
            self._counted.move_to_end(graded.grading.id)
            while len(self._counted) > KEPT:
                self._counted.popitem(last=False)
        if kept.summary is not None:
            late = time.monotonic() - kept.until
            if late < 0 or kept.lock.locked():
                return kept.summary
            if late < GRACE and kept.lock.acquire(blocking=False):
                threading.Thread(target=kept.count_apart, args=(graded,), name="vivavoce-summary", daemon=True).start()
                return kept.summary
        with kept.lock:
            return kept.count(graded)
