"""`ClusterCache`: clusters of graded runs, which are found once as long as the run has the same scores."""

from __future__ import annotations

import threading
from collections import OrderedDict

from vivavoce.records.run import Grading
from vivavoce.report.clusters.finding import Found, find_clusters
from vivavoce.store.store import Store

KEPT = 8
"""Runs whose clusters are kept."""


class ClusterCache:
    """The clusters of one server; safe for use from any thread, and only one search runs at a time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, str | None], Found] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, store: Store, grading: Grading, grader: str | None = None) -> Found:
        """Return the result of `find_clusters`.

        Raises:
            UsageError: there is no such grader.
        """
        key = (grading.model_dump_json(), store.browse.count_samples(grading.id), grader)
        with self._lock:
            if (known := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return known
            self._kept[key] = found = find_clusters(store, grading, grader=grader)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return found
