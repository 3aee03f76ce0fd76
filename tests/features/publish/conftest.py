"""A store, for tests of publishing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from vivavoce.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with Store.open(str(tmp_path / "store" / "vivavoce.db")) as store:
        yield store
