"""`LiveSummary`: a cache of the summaries of running runs.

Summarising a long run takes a second, and each viewer asks every few seconds. So the summary is computed once and
shared for a while.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from vivavoce.report.graded_run import GradedRun
from vivavoce.run.summary import Summary

KEPT = 32
"""Summaries that are cached."""

AGE = 1.0
"""Minimum seconds for which a summary is reused."""

REST = 5.0
"""A summary is reused for this multiple of its computing time, so that it never takes a whole processor."""


@dataclass(slots=True)
class _Counted:
    """A summary and its expiry time; `lock` is held while it is computed."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    summary: Summary | None = None
    until: float = 0.0


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
        if kept.summary is not None and (time.monotonic() < kept.until or kept.lock.locked()):
            return kept.summary
        with kept.lock:
            if kept.summary is None or time.monotonic() >= kept.until:
                began = time.monotonic()
                kept.summary = graded.summary()
                now = time.monotonic()
                kept.until = now + max(AGE, REST * (now - began))
            return kept.summary
