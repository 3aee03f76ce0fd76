"""`Comparisons`: a cache of comparisons of two graded runs.

Comparing two long runs takes a good part of a second, and readers open several pages of a comparison. Finished runs do
not change, so a comparison is reused as long as both sides still have the same number of scores.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from weakref import WeakKeyDictionary

from fastapi import Request

from vivavoce.features.compare.several import SeveralComparisons, compare_several
from vivavoce.records.run import Grading
from vivavoce.report.comparison.comparison import Comparison
from vivavoce.report.comparison.pairing import compare
from vivavoce.store.database.schema import json_text
from vivavoce.store.store import Store

MAX_CACHED = 16
"""Comparisons that are cached."""


class Comparisons:
    """The comparisons of one server; safe for use from any thread."""

    def __init__(self) -> None:
        self._comparisons: OrderedDict[Hashable, Comparison] = OrderedDict()
        self._lock = threading.Lock()

    def compare(
        self,
        store: Store,
        a: Grading,
        b: Grading,
        targets: tuple[str | None, str | None] = (None, None),
        *,
        reasons: bool = True,
        level: float = 0.95,
    ) -> Comparison:
        """Return the result of `compare`, from the cache if both gradings are finished.

        Raises:
            UsageError: a named target does not exist, or no target is on both sides.
        """
        if a.finished_at is None or b.finished_at is None:
            return compare(store, a, b, *targets, reasons=reasons, level=level)
        sides = [(json_text(grading) or "", store.browse.count_samples(grading.id)) for grading in (a, b)]
        key = (*sides, targets, reasons, level)
        with self._lock:
            if (known := self._comparisons.get(key)) is not None:
                self._comparisons.move_to_end(key)
                return known
        comparison = compare(store, a, b, *targets, reasons=reasons, level=level)
        with self._lock:
            self._comparisons[key] = comparison
            while len(self._comparisons) > MAX_CACHED:
                self._comparisons.popitem(last=False)
        return comparison

    def several(self, store: Store, baseline: Grading, others: Sequence[Grading]) -> SeveralComparisons:
        """Return the result of `compare_several`, without reasons of flips.

        Raises:
            UsageError: a run is named twice, there are too many, or one has no target in common with the baseline.
        """

        def compare_at(grading: Grading, other: Grading, level: float) -> Comparison:
            return self.compare(store, grading, other, reasons=False, level=level)

        return compare_several(baseline, others, store.run(baseline.run_id).suite, compare_at)


_comparisons: WeakKeyDictionary[object, Comparisons] = WeakKeyDictionary()
"""The comparisons of each application."""


def comparisons_of(request: Request) -> Comparisons:
    """Return the comparisons of the application that a request is for."""
    return _comparisons.setdefault(request.app, Comparisons())
