from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from vivavoce.errors import StoreError, UsageError
from vivavoce.store import schema
from vivavoce.store.store import Store
from vivavoce.store.upgrade import MIGRATIONS, migrate

from . import cases

OPEN = """
import sys
from vivavoce.store.store import Store
Store.open(sys.argv[1]).close()
print('alembic' in sys.modules)
"""


def tables(path: Path) -> set[str]:
    """Return what creates each table and index, one space between any two words."""
    database = sqlite3.connect(path)
    rows = database.execute("SELECT sql FROM sqlite_master WHERE tbl_name <> 'alembic_version' AND sql IS NOT NULL")
    found = {" ".join(sql.split()) for (sql,) in rows}
    database.close()
    return found


def as_first_made(path: Path, schema: str = "0001") -> None:
    """Make a store as version 0.1.0 made it, or a later one."""
    engine = create_engine(f"sqlite:///{path}")
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, schema)
    engine.dispose()


def test_migrations_from_nothing_give_the_tables_of_a_new_store(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'migrated.db'}")
    with engine.begin() as connection:
        migrate(connection)
    engine.dispose()
    Store.open(str(tmp_path / "migrated.db")).close()
    Store.open(str(tmp_path / "created.db")).close()
    assert tables(tmp_path / "migrated.db") == tables(tmp_path / "created.db")


def test_a_store_of_the_first_schema_is_brought_up_to_date_and_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    as_first_made(path)
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO runs VALUES ('r-1', 'suite', '{}', '/', '{}', 'finished', 1.0, 2.0, '0.1.0')")
    database.close()
    assert not any("replies" in made for made in tables(path))
    with Store.open(str(path)) as store:
        assert [run.id for run in store.runs()] == ["r-1"]
        assert store.replies().get("k") is None
    Store.open(str(tmp_path / "created.db")).close()
    assert tables(path) == tables(tmp_path / "created.db")


@pytest.mark.parametrize("schema", ["0001", "0002"])
def test_conversations_held_before_there_was_a_tester_come_back_without_one(tmp_path: Path, schema: str) -> None:
    path, new = tmp_path / "old.db", tmp_path / "new.db"
    with cases.begun(new) as store:
        asyncio.run(_written(store))
        before = list(store.outcomes(cases.GRADING))
    as_first_made(path, schema)
    with sqlite3.connect(path) as database:
        database.execute("ATTACH ? AS new", (str(new),))
        for table in ("runs", "gradings", "attempts", "turns", "scores"):
            columns = ", ".join(name for _, name, *_ in database.execute(f"PRAGMA main.table_info({table})"))
            database.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM new.{table}")
    database.close()
    with Store.open(str(path)) as store:
        found = list(store.outcomes(cases.GRADING))
    assert found == before
    assert [one.attempt.trajectory.test for one in found] == [None, None]


async def _written(store: Store) -> None:
    async with store.writer(cases.RUN, cases.GRADING, cases.FINGERPRINTS) as writer:
        for number in (1, 2):
            await writer.put(cases.outcome(number, number))


async def test_what_a_tester_leaves_is_kept(tmp_path: Path) -> None:
    told = {"status": "success", "history": [{"reasoning": "Grüße 🎓 \x00"}]}
    held = cases.outcome(1)
    talk = held.attempt.trajectory.model_copy(update={"test": told})
    held = held.model_copy(update={"attempt": held.attempt.model_copy(update={"trajectory": talk})})
    with cases.begun(tmp_path / "x.db") as store:
        async with store.writer(cases.RUN, cases.GRADING, cases.FINGERPRINTS) as writer:
            await writer.put(held)
        (found,) = store.outcomes(cases.GRADING)
    assert found.attempt.trajectory.test == told


def test_an_older_store_in_a_read_only_folder_is_to_be_copied_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def may_not(*_: object, **__: object) -> bool:
        return False

    as_first_made(tmp_path / "old.db")
    monkeypatch.setattr("os.access", may_not)  # root may write everywhere
    with pytest.raises(StoreError, match=r"old\.db: it is of an older vivavoce .* read-only; copy it elsewhere"):
        Store.open(str(tmp_path / "old.db"))


def test_the_newest_migration_is_the_schema_we_know() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [schema.HEAD]


def test_alembic_is_not_imported_for_a_new_store(tmp_path: Path) -> None:
    opening = [sys.executable, "-c", OPEN, tmp_path / "x.db"]
    outputs = [subprocess.run(opening, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert outputs == ["False\n", "False\n"]


def test_processes_that_create_one_file_at_once_all_succeed(tmp_path: Path) -> None:
    children = [subprocess.Popen([sys.executable, "-c", OPEN, tmp_path / "x.db"]) for _ in range(4)]
    assert [child.wait() for child in children] == [0, 0, 0, 0]
    with Store.open(str(tmp_path / "x.db"), create=False) as store:
        store.add_run(cases.run())


def test_a_newer_schema_asks_for_a_newer_vivavoce(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    cases.begun(path).close()
    before = tables(path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE alembic_version SET version_num = '0999'")
    database.close()
    with pytest.raises(StoreError, match=r"newer vivavoce \(schema 0999, .* pip install --upgrade vivavoce"):
        Store.open(str(path))
    assert tables(path) == before


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("CREATE TABLE notes (text)")
    database.close()
    with pytest.raises(UsageError, match=r"x\.db is no store but a database of another program"):
        Store.open(str(tmp_path / "x.db"))
    assert tables(tmp_path / "x.db") == {"CREATE TABLE notes (text)"}


def test_an_upgrade_that_breaks_off_leaves_nothing_half_done(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); " + OPEN
    done = subprocess.run([sys.executable, "-B", "-c", limited, path], capture_output=True, text=True, check=False)
    assert "StoreError" in done.stderr
    assert tables(path) == set()
    cases.begun(path).close()
