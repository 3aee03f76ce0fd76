"""A store, what waits beside it, and who takes what comes in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from vivavoce.production.receiver import Receiver
from vivavoce.production.spool import Spool
from vivavoce.server.access import Access
from vivavoce.store.store import Store


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
