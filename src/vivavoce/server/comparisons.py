"""`Comparisons`: a cache of comparisons of two graded runs.

Comparing two long runs takes a good part of a second, and readers open several pages of a comparison. Finished runs do
not change, so a comparison is reused as long as both sides still have the same number of scores.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from vivavoce.records.run import Grading
from vivavoce.report.compare import Comparison, compare
from vivavoce.store.store import Store

KEPT = 16
"""Comparisons that are cached."""


class Comparisons:
    """The comparisons of one server; safe for use from any thread."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Comparison] = OrderedDict()
        self._lock = threading.Lock()

    def compare(
        self,
        store: Store,
        a: Grading,
        b: Grading,
        targets: tuple[str | None, str | None] = (None, None),
        *,
        reasons: bool = True,
    ) -> Comparison:
        """Return the result of `compare`, from the cache if both gradings are finished.

        Raises:
            UsageError: a named target does not exist, or no target is on both sides.
        """
        if a.finished_at is None or b.finished_at is None:
            return compare(store, a, b, *targets, reasons=reasons)
        sides = [(one.model_dump_json(), store.browse.count_samples(one.id)) for one in (a, b)]
        key = (*sides, targets, reasons)
        with self._lock:
            if (known := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return known
        found = compare(store, a, b, *targets, reasons=reasons)
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found
