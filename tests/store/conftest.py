from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from vivavoce.store.database.address import is_postgresql
from vivavoce.store.store import Store

from .cases import begun
from .postgresql import Server, server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL server for all tests."""
    with server() as running:
        yield running


@pytest.fixture
def database(postgresql: Server) -> Iterator[str]:
    """The address of an empty PostgreSQL database."""
    with postgresql.database() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where no store is yet: once a file, once a database."""
    return str(tmp_path / "vivavoce.db") if request.param == "sqlite" else request.getfixturevalue("database")


@pytest.fixture
def other_address(request: pytest.FixtureRequest, address: str, tmp_path: Path) -> Iterator[str]:
    """A second place of the same kind, where no store is yet either."""
    if not is_postgresql(address):
        yield str(tmp_path / "other.db")
        return
    running: Server = request.getfixturevalue("postgresql")
    with running.database() as other:
        yield other


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store with a run and its grading, and nothing in them yet; once a file, once a database."""
    if request.param == "sqlite":
        with begun(tmp_path / "vivavoce.db") as store:
            yield store
        return
    running: Server = request.getfixturevalue("postgresql")
    with running.store() as address, begun(address) as store:
        yield store


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[Store]:
    """The same in a file."""
    with begun(tmp_path / "vivavoce.db") as store:
        yield store
