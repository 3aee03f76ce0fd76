from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from vivavoce.errors import StoreError
from vivavoce.server import indexing as module
from vivavoce.server.indexing import Indexer
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite


def test_what_a_run_leaves_is_read_while_a_server_serves(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.001)
    broken = [StoreError("the disk is full")]
    looks = threading.Semaphore(0)

    def index_pending(until: Callable[[], bool]) -> int:
        if broken:
            raise broken.pop()
        found = store.index_pending(until)
        looks.release()
        return found

    reading = Indexer(index_pending)
    try:
        run_suite(workspace / "suites" / "refunds.yaml", store=store.place)
        while looks.acquire(blocking=False):
            pass
        assert all(looks.acquire(timeout=30) for _ in range(2))
    finally:
        reading.stop()
    assert store.index_pending() == 0
    assert store.search("refund")


def test_it_ends_between_two_batches(store: Store) -> None:
    assert store.index_pending(until=lambda: True) == 0
    assert store.index_pending() > 0
