"""`LiveSummary`: the summaries of runs that go on, counted once for all who look at them.

To sum up a long run takes a second, and whoever watches it asks again every few. So one of them has it counted, and
until that is a while ago the others get the same.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from vivavoce.report.graded_run import GradedRun
from vivavoce.run.summary import Summary

KEPT = 32
"""Summaries that are kept."""

AGE = 1.0
"""Seconds that a summary is good for at least."""

REST = 5.0
"""Times as long as it took to count that it is good for, so that counting never takes all of a processor."""


@dataclass(slots=True)
class _Counted:
    """A summary and until when it is good; `lock` is held by whoever counts."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    summary: Summary | None = None
    until: float = 0.0


class LiveSummary:
    """The summaries of one server; any thread may ask."""

    def __init__(self) -> None:
        self._counted: OrderedDict[str, _Counted] = OrderedDict()
        self._lock = threading.Lock()

    def summary(self, graded: GradedRun) -> Summary:
        """Return the summary of a run: of one that is over its own, else one that was counted a moment ago."""
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
