"""Reading in one go: one connection, one moment, and no trace left behind."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest
from sqlalchemy import event, text

from vivavoce.errors import StoreError
from vivavoce.records.label import Remarks
from vivavoce.store.database.reading import READING, Reading
from vivavoce.store.store import Store

from ..cases import RUN


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
