from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vivavoce.errors import StoreError
from vivavoce.records.replies import StoredReply
from vivavoce.store.database.database import LARGEST
from vivavoce.store.database.group_commit import PENDING
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store

PUT_AND_DIE = """
import asyncio, os, sys
from vivavoce.records.replies import StoredReply
from vivavoce.store.store import Store

async def main():
    replies = Store.open(sys.argv[1]).replies()
    for number in range(100):
        await replies.put(StoredReply(str(number), "m", "{}", 1.0))
    assert len(list(replies.all())) == 100
    await replies.put(StoredReply("last", "m", "{}", 1.0))
    os._exit(0)

asyncio.run(main())
"""


def reply(number: int, model: str = "m") -> StoredReply:
    return StoredReply(f"{number:032x}", model, f'{{"text":"{number}"}}', 1000.5 + number)


@pytest.fixture
def empty(address: str) -> Iterator[Store]:
    with Store.open(address) as store:
        yield store


async def test_a_reply_is_found_before_and_after_it_is_committed(empty: Store) -> None:
    async with empty.replies() as replies:
        assert replies.get(reply(1).key) is None
        await replies.put(reply(1))
        assert replies.get(reply(1).key) == reply(1).reply
        assert list(replies.all()) == [reply(1)]
        assert replies.get(reply(1).key) == reply(1).reply
    async with empty.replies() as again:
        assert again.get(reply(1).key) == reply(1).reply


async def test_many_are_kept_whatever_the_backlog(empty: Store) -> None:
    count = PENDING * 2 + 5
    async with empty.replies() as replies:
        for number in range(count):
            await replies.put(reply(number))
    async with empty.replies() as again:
        assert list(again.all()) == [reply(number) for number in range(count)]


async def test_the_first_reply_to_a_question_stays(empty: Store) -> None:
    async with empty.replies() as replies, empty.replies() as others:
        await others.put(reply(1))
        assert len(list(others.all())) == 1
        await replies.put(reply(1)._replace(reply="another"))
    async with empty.replies() as again:
        assert again.get(reply(1).key) == reply(1).reply


async def test_a_reply_in_place_of_a_rejected_one_stays_whatever_is_being_committed(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "x.db")) as store:
        other = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        replies = store.replies()
        await replies.put(reply(1)._replace(reply="unreadable"))
        await asyncio.sleep(0.2)  # the thread has taken it, and waits for its turn to write
        replies.reject(reply(1).key)
        await replies.put(reply(1))
        assert replies.get(reply(1).key) == reply(1).reply
        other.execute("ROLLBACK")
        other.close()
        await replies.close()
        async with store.replies() as again:
            assert again.get(reply(1).key) == reply(1).reply
            assert replies.rejected == 0


async def test_what_another_process_kept_is_found(empty: Store) -> None:
    async with empty.replies() as replies, empty.replies() as others:
        assert replies.get(reply(1).key) is None
        others.add([reply(1)])
        assert replies.get(reply(1).key) == reply(1).reply


async def test_replies_of_some_models_are_read_alone(empty: Store) -> None:
    async with empty.replies() as replies:
        replies.add([reply(1), reply(2, "n"), reply(3, "o")])
        assert [one.model for one in replies.all(["m", "o"])] == ["m", "o"]


async def test_adding_counts_what_is_new_and_twice_adds_nothing(empty: Store) -> None:
    some = [reply(number) for number in range(LARGEST + 3)]
    async with empty.replies() as replies:
        assert replies.add(some[:2]) == 2
        assert replies.add([*some, some[-1]]) == len(some) - 2
        assert replies.add(some) == 0


async def test_adding_is_all_or_nothing(empty: Store) -> None:
    def broken() -> Iterator[StoredReply]:
        yield from (reply(number) for number in range(LARGEST))
        raise ValueError("here")

    async with empty.replies() as replies:
        with pytest.raises(ValueError, match="here"):
            replies.add(broken())
        assert list(replies.all()) == []


async def test_text_that_is_not_utf8_is_escaped(empty: Store) -> None:
    async with empty.replies() as replies:
        await replies.put(StoredReply("k", "m\ud800", "{}", 1.0))
        assert [one.model for one in replies.all(["m\ud800"])] == ["m\\ud800"]


def test_each_event_loop_may_use_it(empty: Store) -> None:
    replies = empty.replies()
    for number in range(3):
        asyncio.run(replies.put(reply(number)))
    assert asyncio.run(replies.close()) is None
    assert len(list(empty.replies().all())) == 3


async def test_what_cannot_be_written_is_said_to_all_who_come_later(empty: Store) -> None:
    replies = empty.replies()
    with empty.database.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE replies")
    await replies.put(reply(1))
    with pytest.raises(StoreError, match=r"replies\b.*: its tables are gone.* \(1 reply not stored\)"):
        list(replies.all())
    with pytest.raises(StoreError, match="not stored"):
        await replies.put(reply(2))
    with pytest.raises(StoreError, match=r"no such table|does not exist"):
        replies.get("k")
    with pytest.raises(StoreError, match="not stored"):
        await replies.close()


async def test_nothing_is_taken_once_it_is_closed(empty: Store) -> None:
    replies = ReplyStore(empty.database)
    await replies.close()
    await replies.close()
    with pytest.raises(StoreError, match="the replies are closed"):
        await replies.put(reply(1))


def test_a_process_that_dies_loses_only_what_it_had_no_time_to_commit(address: str) -> None:
    subprocess.run([sys.executable, "-c", PUT_AND_DIE, address], check=True)
    with Store.open(address) as store:
        kept = {one.key for one in store.replies().all()}
    assert {str(number) for number in range(100)} <= kept
