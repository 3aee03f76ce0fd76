"""The database behind a store, whichever it is: reaching it, reading and writing it, and what its errors mean."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event, func, select, text

from vivavoce.errors import MissingExtra, StoreError, UsageError
from vivavoce.records.label import Remarks
from vivavoce.store.database import schema
from vivavoce.store.database.address import Place
from vivavoce.store.database.database import LARGEST, READING, Reading, insert_rows, reach
from vivavoce.store.store import Store

from .. import cases
from ..cases import RUN
from ..postgresql import Server


def test_a_file_is_synced_at_each_commit_and_its_references_are_checked(tmp_path: Path) -> None:
    engine = reach(Place(str(tmp_path / "x.db")), create=True)
    with engine.connect() as connection:
        values = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("synchronous", "foreign_keys")]
    engine.dispose()
    assert values == [2, 1]


def test_a_database_without_tables_is_no_store_where_one_is_to_be_read(database: str) -> None:
    with pytest.raises(UsageError, match="no run has been stored here yet"):
        Store.open(database, create=False)
    Store.open(database).close()
    Store.open(database, create=False).close()


def test_a_user_with_a_password_gets_in_and_the_password_is_shown_nowhere(database: str) -> None:
    address = database.replace("postgres@", "guarded:geheim@")
    with cases.begun(address) as store:
        assert store.place == database.replace("postgres@", "guarded@")
        assert "geheim" not in repr(store.place)
        with Store.open(store.place, create=False) as again:
            assert again.run("latest") == cases.run()


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ("guarded:wr0ng", "the password is wrong"),
        ("guarded", r"give the password in PGPASSWORD or in ~/\.pgpass"),
        ("nobody:wr0ng", 'role "nobody" does not exist: there is no such user'),
    ],
)
def test_who_may_not_log_in_is_told_so_without_the_password(database: str, user: str, said: str) -> None:
    with pytest.raises(StoreError, match=said) as raised:
        Store.open(database.replace("postgres@", f"{user}@"))
    assert "wr0ng" not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://me:s3cret@127.0.0.1:1/db", r"^postgresql://me@127.0.0.1:1/db: .*is the server running"),
        ("postgresql://me:s3cret@/db?host=/nowhere", r"is the server running"),
        ("postgresql://me:s3cret@nowhere.invalid/db", "there is no such host"),
    ],
)
def test_a_server_that_is_not_there_is_an_error_without_the_password(address: str, said: str) -> None:
    with pytest.raises(StoreError, match=said) as raised:
        Store.open(address)
    assert "s3cret" not in str(raised.value)


def test_a_database_that_is_not_there_is_to_be_made_first(postgresql: Server) -> None:
    with pytest.raises(StoreError, match='"none" does not exist: make it first: createdb NAME'):
        Store.open(postgresql.address("none"))


def test_a_database_that_cannot_hold_every_text_is_refused(postgresql: Server) -> None:
    said = "its encoding is LATIN1; create a database with: createdb --encoding UTF8 NAME"
    latin = postgresql.database("ENCODING 'LATIN1' TEMPLATE template0")
    with latin as address, pytest.raises(StoreError, match=said):
        Store.open(address)


def test_a_store_may_be_a_schema_of_a_database(database: str, postgresql: Server) -> None:
    mine = f"{database}&options=-csearch_path%3Dteam"
    with pytest.raises(StoreError, match="search_path names no schema that exists"):
        Store.open(mine)
    with Store.open(database) as store, store.database.engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA team")
    cases.begun(mine).close()
    with Store.open(mine, create=False) as one, Store.open(database) as other:
        assert (len(one.runs()), len(other.runs())) == (1, 0)


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"pip install 'vivavoce\[postgres\]'"):
        Store.open("postgresql://me@host/db")


def test_opening_a_file_does_not_import_psycopg(tmp_path: Path) -> None:
    code = "import sys; from vivavoce.store.store import Store; Store.open('x.db').close(); "
    done = subprocess.run(
        [sys.executable, "-c", code + "print('psycopg' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize("count", [0, 1, 3, LARGEST - 1, LARGEST, LARGEST * 2 + 5])
def test_every_row_is_inserted_in_order(address: str, count: int) -> None:
    cases.begun(address).close()
    engine = reach(Place(address), create=False)
    with engine.begin() as connection:
        columns = ("id", "suite", "spec", "base", "options", "status", "started_at", "version")
        rows = [(f"{n:05}", "s", "{}", "", "{}", "", 1.0, "") for n in range(count)]
        insert_rows(connection, schema.runs, columns, rows)
        ids = connection.execute(select(schema.runs.c.id).where(schema.runs.c.suite == "s")).scalars().all()
        assert connection.execute(select(func.count()).select_from(schema.runs)).scalar_one() == count + 1
    engine.dispose()
    assert ids == [f"{n:05}" for n in range(count)]


@contextmanager
def reading() -> Generator[Reading]:
    found = Reading()
    before = READING.set(found)
    try:
        yield found
    finally:
        READING.reset(before)
        found.end()


@contextmanager
def begun(store: Store) -> Generator[list[object]]:
    """Collect the transactions that a store begins."""
    found: list[object] = []
    listen = found.append
    event.listen(store.database.engine, "begin", listen)
    yield found
    event.remove(store.database.engine, "begin", listen)


def test_reads_in_one_go_share_a_transaction(store: Store) -> None:
    with begun(store) as found, reading():
        for _ in range(3):
            store.run(RUN)
            store.browse.runs()
    assert len(found) == 1
    with begun(store) as found:
        store.run(RUN)
        store.run(RUN)
    assert len(found) == 2


def test_they_see_one_moment_and_what_they_write_themselves(store: Store) -> None:
    with Store.open(store.place.address) as other, reading():
        assert store.run(RUN).title is None
        other.remark(RUN, Remarks(title="theirs"), "Ida")
        assert store.run(RUN).title is None
        store.remark(RUN, Remarks(title="ours"), "Olu")
        assert store.run(RUN).title == "ours"
    assert store.run(RUN).title == "ours"


def test_what_reads_after_the_end_reads_for_itself(store: Store) -> None:
    with reading() as ended:
        store.run(RUN)
        ended.end()
        assert store.run(RUN).id == RUN
    with Store.open(store.place.address) as other, reading():
        assert other.run(RUN) == store.run(RUN)  # each from its own database


def test_a_connection_that_broke_breaks_nothing_else(store: Store) -> None:
    with reading(), pytest.raises(StoreError), store.database.connected() as connection:
        connection.execute(text("SELECT nothing FROM nowhere"))
    with reading():
        assert store.run(RUN).id == RUN
