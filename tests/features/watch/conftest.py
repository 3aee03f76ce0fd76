"""A store, what waits next to it, and who takes what comes in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.pages.conftest import empty, url
from vivavoce.features.watch.receiver import Receiver
from vivavoce.features.watch.spool import Spool
from vivavoce.server.access import Access
from vivavoce.store.store import Store

__all__ = ["empty", "url"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    opened = Spool(tmp_path / "in.traces", 10**9)
    yield opened
    opened.close()


@pytest.fixture
def receiver(spool: Spool) -> Receiver:
    return Receiver(spool, Access.of(["127.0.0.1:4318"]))
