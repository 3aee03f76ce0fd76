"""`Comparisons`: what two graded runs differ in, counted once for all who look at it.

To compare two long runs takes a good part of a second, and whoever reads one leafs through it. What is over does not
change any more, so that the comparison is kept as long as both sides have as many scores as it was made from.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from vivavoce.records.run import Grading
from vivavoce.report.compare import Comparison, compare
from vivavoce.store.store import Store

KEPT = 16
"""Comparisons that are kept."""


class Comparisons:
    """The comparisons of one server; any thread may ask."""

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
        """Return what `compare` does, where both gradings are over perhaps what it did before.

        Raises:
            UsageError: a named target does not exist, or no target is on both sides.
        """
        if a.finished_at is None or b.finished_at is None:
            return compare(store, a, b, *targets, reasons=reasons)
        sides = [(one.model_dump_json(), store.browse.count_samples(one.id)) for one in (a, b)]
        asked = (*sides, targets, reasons)
        with self._lock:
            if (known := self._kept.get(asked)) is not None:
                self._kept.move_to_end(asked)
                return known
        found = compare(store, a, b, *targets, reasons=reasons)
        with self._lock:
            self._kept[asked] = found
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found
