from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from vivavoce.errors import StoreError
from vivavoce.store.database.schema import HEAD
from vivavoce.store.store import Store

from .. import cases
from .test_upgrade import execute


async def _write(store: Store) -> None:
    async with store.writer(cases.RUN, cases.GRADING, cases.FINGERPRINTS) as writer:
        await writer.put(cases.outcome(1))


@pytest.mark.parametrize(
    ("version", "said"), [("9999", "written by a newer vivavoce"), ("0001", "its schema has become 0001")]
)
def test_a_schema_that_another_process_changes_is_noticed_by_who_reads_and_writes(
    address: str, version: str, said: str
) -> None:
    with cases.begun(address) as store:
        assert store.run("latest") == cases.run()
        execute(address, f"UPDATE alembic_version SET version_num = '{version}'")
        with pytest.raises(StoreError, match=said):
            store.run("latest")
        with pytest.raises(StoreError, match=said):
            store.update_run(cases.run())
        with pytest.raises(StoreError, match=said):
            asyncio.run(_write(store))
        execute(address, f"UPDATE alembic_version SET version_num = '{HEAD}'")
        assert store.run("latest") == cases.run()
        assert store.counts(cases.RUN) == (0, 0)


def test_tables_that_are_gone_are_said_to_be(address: str) -> None:
    with cases.begun(address) as store:
        execute(address, "DROP TABLE alembic_version")
        with pytest.raises(StoreError, match="its tables are gone"):
            store.run("latest")


def test_a_file_that_is_deleted_is_not_written_to_and_no_other_is_made(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with cases.begun(path) as store:
        path.rename(tmp_path / "kept.db")
        with pytest.raises(StoreError, match=r"x\.db: the file has been deleted or moved"):
            asyncio.run(_write(store))
        with (
            pytest.raises(StoreError, match="deleted or moved"),
            store.database.connected(),
            store.database.connected() as other,
        ):
            other.begin()
        assert not path.exists()
        (tmp_path / "kept.db").rename(path)
        asyncio.run(_write(store))
        assert store.counts(cases.RUN) == (1, 0)


def test_another_file_in_its_place_is_not_taken_for_it(tmp_path: Path) -> None:
    with cases.begun(tmp_path / "x.db") as store:
        cases.begun(tmp_path / "other.db").close()
        os.replace(tmp_path / "other.db", tmp_path / "x.db")
        with pytest.raises(StoreError, match="another file has been put in its place"):
            store.runs()
