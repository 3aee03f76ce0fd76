"""An empty store, a server around it, and the command line beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import viva
from vivavoce.store.store import Store

from ..live import serving

__all__ = ["viva"]


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    """A store without a run, which tests put into it."""
    with Store.open(str(tmp_path / "kept.db")) as store:
        yield store


@pytest.fixture
def url(empty: Store) -> Iterator[str]:
    """The address of a server around the empty store."""
    with serving(empty) as base:
        yield base
