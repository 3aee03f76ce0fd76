from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, select, text

from vivavoce.errors import StoreError, UsageError
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, skipped
from vivavoce.store import schema
from vivavoce.store.address import Place
from vivavoce.store.browsing import count_samples, list_samples
from vivavoce.store.database import for_writing, on_postgresql, reach
from vivavoce.store.store import Store
from vivavoce.store.upgrade import MIGRATIONS

from . import cases

VERSIONS = ["0001", "0002", "0003", "0004", "0005"]
"""The schemas of versions that came before."""

DEFINITIONS = """
SELECT c.table_name || '.' || c.column_name || ' ' || c.data_type || ' ' || c.is_nullable || ' '
    || coalesce(c.column_default, '') || ' ' || coalesce(c.collation_name, '') || ' ' || c.ordinal_position
FROM information_schema.columns c WHERE c.table_schema = 'public'
UNION SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace
"""
IN_FILE = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"

OPEN = """
import sys
from vivavoce.store.store import Store
Store.open(sys.argv[1]).close()
print('alembic' in sys.modules)
"""


STOP = """
import os, sys
import alembic.op
from vivavoce.store.store import Store
setattr(alembic.op, sys.argv[2], lambda *_, **__: os._exit(9))
Store.open(sys.argv[1])
"""
"""A process that ends where a migration does a certain thing, as by `kill -9`."""


def definitions(address: str) -> set[str]:
    """Return what defines each table, column, index and constraint, one space between any two words."""
    engine = reach(Place(address), create=True)
    with engine.connect() as connection:
        made = connection.execute(text(DEFINITIONS if on_postgresql(connection) else IN_FILE)).scalars().all()
    engine.dispose()
    return {" ".join(one.split()) for one in made if "alembic_version" not in one}


def as_made_before(address: str, version: str) -> None:
    """Make a store as an older version made it."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    engine = reach(Place(address), create=True)
    with engine.connect() as connection, for_writing(connection).begin():
        config.attributes["connection"] = connection
        command.upgrade(config, version)
    engine.dispose()


def fill(address: str, rows: dict[str, list[dict[str, object]]]) -> None:
    """Write rows into an older store: of its tables and columns, those that it knows."""
    engine = reach(Place(address), create=True)
    with engine.connect() as connection, for_writing(connection).begin():
        there = inspect(connection).get_table_names()
        for name, held in ((name, held) for name, held in rows.items() if name in there):
            known = {column["name"] for column in inspect(connection).get_columns(name)}
            given = [key for key in held[0] if key in known and (name, key) != ("scores", "id")]
            marks = ", ".join(f":{key}" for key in given)
            connection.execute(text(f"INSERT INTO {name} ({', '.join(given)}) VALUES ({marks})"), held)
    engine.dispose()


def rows_of(address: str) -> dict[str, list[dict[str, object]]]:
    """Return every row of a run, and what search has still to read."""
    engine = reach(Place(address), create=False)
    with engine.connect() as connection:
        found = {
            name: [dict(row) for row in connection.execute(select(schema.metadata.tables[name])).mappings()]
            for name in ("runs", "gradings", "attempts", "turns", "scores", "unread")
        }
    engine.dispose()
    return found


def test_migrations_from_nothing_give_the_tables_of_a_new_store(address: str, other_address: str) -> None:
    as_made_before(other_address, "head")
    Store.open(address).close()
    assert definitions(other_address) == definitions(address)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_store_of_an_older_schema_is_brought_up_to_date_and_keeps_its_rows(
    address: str, other_address: str, version: str
) -> None:
    with cases.begun(other_address) as store:
        asyncio.run(_written(store))
        before = list(store.outcomes(cases.GRADING))
    as_made_before(address, version)
    fill(address, rows_of(other_address))
    with Store.open(address) as store:
        found = list(store.outcomes(cases.GRADING))
        assert store.run(cases.RUN) == cases.run()
        assert store.replies().add([]) == 0
        assert [hit.key.sample_id for hit in store.search("Flight")] == ["sample-2", "sample-1"]
        assert len(store.search("too short")) == 2
        asyncio.run(_written(store, 3))
    assert found == before
    assert [one.attempt.trajectory.test for one in found] == [None, None]
    assert definitions(address) == definitions(other_address)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_store_lists_its_samples_as_if_it_had_always_been_new(
    address: str, other_address: str, version: str
) -> None:
    async def write(store: Store) -> None:
        async with store.writer(cases.RUN, cases.GRADING, cases.FINGERPRINTS) as writer:
            await writer.put(cases.outcome(1, 1))
            await writer.put(cases.unfortunate(2))
            for number, passed in ((3, True), (4, False), (5, 7)):
                grade = Score(value=0.75, extra={"passed": passed, "odd": float("nan")})
                held = cases.outcome(number, number).attempt.model_copy(update={"sample": '{"tags": ["slow"]}'})
                await writer.put(Outcome(attempt=held, scores={"exact": grade, "judge": skipped("no judge")}))

    with cases.begun(other_address) as store:
        asyncio.run(write(store))
        before = list_samples(store, cases.GRADING, sort="worst").samples
    as_made_before(address, version)
    fill(address, rows_of(other_address))
    with Store.open(address) as store:
        assert list_samples(store, cases.GRADING, sort="worst").samples == before
        assert count_samples(store, cases.GRADING, "tag:slow state:skipped worst<1") == 3
    assert [one.standing for one in before] == ["error", "part", "pass", "fail", "part"]


async def _written(store: Store, *numbers: int) -> None:
    async with store.writer(cases.RUN, cases.GRADING, cases.FINGERPRINTS) as writer:
        for number in numbers or (1, 2):
            await writer.put(cases.outcome(number, number))


@pytest.mark.parametrize(
    ("version", "at"),
    [
        *(("0001", "add_column"), ("0002", "add_column")),
        *(("0003", "create_index"), ("0003", "execute"), ("0004", "create_index")),
    ],
)
def test_a_migration_that_is_killed_half_way_leaves_the_older_schema(
    address: str, other_address: str, version: str, at: str
) -> None:
    cases.begun(other_address).close()
    as_made_before(address, version)
    fill(address, {name: rows for name, rows in rows_of(other_address).items() if rows})
    before = definitions(address)
    done = subprocess.run([sys.executable, "-c", STOP, address, at], check=False)
    assert done.returncode == 9
    assert definitions(address) == before
    with Store.open(address) as store:
        assert store.run("latest") == cases.run()
    assert definitions(address) == definitions(other_address)


async def test_what_a_tester_leaves_is_kept(address: str) -> None:
    told = {"status": "success", "history": [{"reasoning": "Grüße 🎓 \x00"}]}
    held = cases.outcome(1)
    talk = held.attempt.trajectory.model_copy(update={"test": told})
    held = held.model_copy(update={"attempt": held.attempt.model_copy(update={"trajectory": talk})})
    with cases.begun(address) as store:
        async with store.writer(cases.RUN, cases.GRADING, cases.FINGERPRINTS) as writer:
            await writer.put(held)
        (found,) = store.outcomes(cases.GRADING)
    assert found.attempt.trajectory.test == told


def test_an_older_store_in_a_read_only_folder_is_to_be_copied_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def may_not(*_: object, **__: object) -> bool:
        return False

    as_made_before(str(tmp_path / "old.db"), "0001")
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


@pytest.mark.parametrize("version", [None, "0001"])
def test_processes_that_make_or_change_one_store_at_once_all_succeed(address: str, version: str | None) -> None:
    if version:
        as_made_before(address, version)
    children = [subprocess.Popen([sys.executable, "-c", OPEN, address]) for _ in range(4)]
    assert [child.wait() for child in children] == [0, 0, 0, 0]
    with Store.open(address, create=False) as store:
        store.add_run(cases.run())


def execute(address: str, statement: str) -> None:
    """Run a statement."""
    engine = reach(Place(address), create=True)
    with engine.connect() as connection, for_writing(connection).begin():
        connection.exec_driver_sql(statement)
    engine.dispose()


def test_a_newer_schema_asks_for_a_newer_vivavoce(address: str) -> None:
    cases.begun(address).close()
    before = definitions(address)
    execute(address, "UPDATE alembic_version SET version_num = '0999'")
    with pytest.raises(StoreError, match=r"newer vivavoce \(schema 0999, .* pip install --upgrade vivavoce"):
        Store.open(address)
    assert definitions(address) == before


@pytest.mark.parametrize("versioned", [False, True])
def test_the_database_of_another_program_is_left_alone(address: str, versioned: bool) -> None:
    execute(address, "CREATE TABLE notes (text VARCHAR)")
    if versioned:
        execute(address, "CREATE TABLE alembic_version (version_num VARCHAR)")
        execute(address, "INSERT INTO alembic_version VALUES ('f3a9c0d1e2b4')")
    before = definitions(address)
    with pytest.raises(UsageError, match="is no store but a database of another program"):
        Store.open(address)
    assert definitions(address) == before


def test_an_upgrade_that_breaks_off_leaves_nothing_half_done(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); " + OPEN
    done = subprocess.run([sys.executable, "-B", "-c", limited, path], capture_output=True, text=True, check=False)
    assert "StoreError" in done.stderr
    assert definitions(str(path)) == set()
    cases.begun(path).close()
