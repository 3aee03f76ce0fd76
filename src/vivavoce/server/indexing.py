"""Background indexing for search: new records are indexed while the server runs, not during a search."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from anyio import to_thread
from fastapi import FastAPI

from vivavoce.errors import StoreError
from vivavoce.server.state import store_of

PAUSE = 2.0
"""Seconds between two checks for unindexed records."""


class Indexer:
    """A thread that indexes new records with `index_pending` of a store until it is stopped."""

    def __init__(self, index_pending: Callable[[Callable[[], bool]], int]) -> None:
        self._catch_up = index_pending
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._index, name="vivavoce-search")
        self._thread.start()

    def stop(self) -> None:
        """Stop it after the current batch."""
        self._stopped.set()
        self._thread.join()

    def _index(self) -> None:
        while not self._stopped.is_set():
            with suppress(StoreError):  # it cannot be written now; a search says so, and this tries again
                self._catch_up(self._stopped.is_set)
            self._stopped.wait(PAUSE)


@asynccontextmanager
async def reading_ahead(app: FastAPI) -> AsyncGenerator[None]:
    """Index in the background while an application is served."""
    reading = Indexer(store_of(app).index_pending)
    try:
        yield
    finally:
        await to_thread.run_sync(reading.stop)
