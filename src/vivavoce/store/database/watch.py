"""Watching a store that is open: whether its database is still the one that was opened, of the schema we know.

Meanwhile another process may bring it to a newer schema, or put another file in its place. What we read then would be
wrong, and what we write would go with a file that nobody can find any more. So every transaction looks first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event

from vivavoce.errors import StoreError
from vivavoce.store.database.address import Place, is_postgresql, path_of
from vivavoce.store.database.schema import HEAD
from vivavoce.store.database.upgrade import newer

_VERSION = "SELECT version_num FROM alembic_version"


def watch(engine: Engine, place: Place) -> None:
    """Have each transaction of an engine raise a `StoreError` where the database is not what it was."""
    if not is_postgresql(place):
        look = _watch_of_file(place)
        event.listen(engine, "do_connect", lambda *_: look())  # or it would make an empty file in its place
        event.listen(engine, "begin", _each_time(look))

    def read_version(connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        found = driver.execute(_VERSION).fetchone()
        version = found[0] if found else ""
        if version > HEAD:
            raise newer(place, version)
        if version != HEAD:
            raise StoreError(f"{place}: its schema has become {version or 'unknown'} since it was opened; start again")

    event.listen(engine, "begin", read_version)


def _each_time(look: Callable[[], None]) -> Callable[[Connection], None]:
    return lambda _: look()


def _watch_of_file(place: Place) -> Callable[[], None]:
    """Return what raises where the file that is there now is gone, or another."""
    path = path_of(place)
    opened = _identity(path)

    def look() -> None:
        found = _identity(path)
        if found is None:
            raise StoreError(f"{place}: the file has been deleted or moved since it was opened; put it back")
        if found != opened:
            raise StoreError(f"{place}: another file has been put in its place since it was opened; start again")

    return look


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
