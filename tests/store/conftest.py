from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from vivavoce.store.store import Store

from .cases import begun


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with a run and its grading, and nothing in them yet."""
    with begun(tmp_path / "vivavoce.db") as store:
        yield store
