"""`ReplyStore`: the replies of models, found by the hash of what was asked, and written many in one commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from types import TracebackType
from typing import Any, NamedTuple, Self

from sqlalchemy import Connection, bindparam, delete, func, select

from vivavoce.errors import StoreError
from vivavoce.records.redaction import keys_of_environment
from vivavoce.records.replies import StoredReply
from vivavoce.store.database.database import (
    LARGEST,
    Database,
    driver_errors,
    for_writing,
    insert_rows,
    meaning,
    on_postgresql,
    plain_errors,
    values_of,
)
from vivavoce.store.database.group_commit import GroupCommit, Items
from vivavoce.store.database.schema import replies, text_for

REPLIES = Items("reply", "replies", thread="vivavoce-replies", closed="the replies are closed")


class ReplyStore:
    """Looks replies up at once, and commits new ones in a thread of its own; any event loop may use it.

    The first reply to a question stays: one that another process stored in the meantime is not replaced. Only one that
    was rejected gives way to the next. After an error nothing more is written, and every call raises it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pending = _Pending()
        self._committing = GroupCommit[_Queued](database, self._pending, REPLIES)
        self._keys = keys_of_environment()

    @property
    def next_step(self) -> str:
        """Nothing: whoever asks offline knows that the replies of a store are all there are."""
        return ""

    @property
    def of_any_model(self) -> bool:
        """No: a file may change from one run to the next, and the replies of its models would stay."""
        return False

    @property
    def rejected(self) -> int:
        """How many replies could not be used and have none in their place."""
        return len(self._pending.rejected)

    def reject(self, key: str) -> None:
        """Take note that the reply of a key cannot be used, so that the next one replaces it."""
        self._pending.rejected.add(key)

    def get(self, key: str) -> str | None:
        """Return the reply that is kept under a key, also one that is not committed yet; None when there is none.

        Raises:
            StoreError: the store cannot be read.
        """
        waiting = self._pending.get(key)
        if waiting is not None:
            return waiting.reply
        try:
            found = self._execute(self._lookup, (key,)).fetchone()
        except driver_errors() as error:
            raise StoreError(f"{self._database.place}: {meaning(error)}") from error
        if found is None:
            return None
        (reply,) = found
        return reply

    async def put(self, reply: StoredReply) -> None:
        """Queue a reply; waits while too many are pending.

        Raises:
            StoreError: an earlier one could not be written, or this is closed.
        """
        await self._committing.room()
        text = self._keys.cut(reply.reply)
        self._committing.add(self._pending.add(reply if text == reply.reply else reply._replace(reply=text)))

    def all(self, models: Sequence[str] = ()) -> Iterator[StoredReply]:
        """Yield what is kept, of these models or of all, the oldest first.

        Raises:
            StoreError: the store cannot be read, or something put before could not be written.
        """
        self._committing.settle()
        query = select(replies).order_by(replies.c.created_at, replies.c.key)
        if models:
            query = query.where(replies.c.model.in_(models))
        with self._database.connected() as connection:
            for row in connection.execute(query.execution_options(yield_per=LARGEST)):
                yield StoredReply(**values_of(row))

    def add(self, more: Iterable[StoredReply], replacing: Collection[str] = ()) -> int:
        """Keep replies, all or none, and return how many were not there before; those of some keys are replaced.

        Raises:
            StoreError: the store cannot be written.
        """
        self._committing.settle()
        rows = iter(more)
        with self._database.writing() as connection:
            before = _count(connection)
            _drop(connection, replacing)
            self._pending.rejected.difference_update(replacing)
            while batch := list(islice(rows, LARGEST)):
                _insert(connection, batch)
            return _count(connection) - before

    async def close(self) -> None:
        """Commit what is left and end the thread; a second call changes nothing.

        Raises:
            StoreError: something could not be written.
        """
        try:
            await self._committing.close()
        finally:
            if "_execute" in vars(self):
                del self._execute
                self._reading.close()
                del self._reading

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @cached_property
    def _reading(self) -> Connection:
        with plain_errors(self._database.place):
            connection = self._database.engine.connect()
        if on_postgresql(connection):  # elsewhere a transaction would stay open
            connection.execution_options(isolation_level="AUTOCOMMIT")
        return connection

    @cached_property
    def _execute(self) -> Callable[..., Any]:
        """The driver's own: a lookup through SQLAlchemy would take ten times as long."""
        driver: Any = self._reading.connection.driver_connection
        return driver.execute

    @cached_property
    def _lookup(self) -> str:
        query = select(replies.c.reply).where(replies.c.key == bindparam("key"))
        return str(query.compile(dialect=self._database.engine.dialect))


class _Queued(NamedTuple):
    """A reply that is not committed yet; with `replaces` it takes the place of one that was rejected."""

    reply: StoredReply
    replaces: bool


class _Pending:
    """The replies that are not committed yet, by their keys, and the keys whose replies were rejected."""

    def __init__(self) -> None:
        self.rejected: set[str] = set()
        self.stored = 0
        self._replies: dict[str, StoredReply] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> StoredReply | None:
        """Return the reply of a key that is not committed yet."""
        return self._replies.get(key)

    def add(self, reply: StoredReply) -> _Queued:
        """Take note of a reply, and return what is to be queued."""
        with self._lock:
            self._replies[reply.key] = reply
            replaces = reply.key in self.rejected
            self.rejected.discard(reply.key)
        return _Queued(reply, replaces)

    def store(self, connection: Connection, batch: Sequence[_Queued]) -> None:
        """Commit a batch; of two replies with one key the later stays."""
        latest = {one.reply.key: one.reply for one in batch}
        with for_writing(connection).begin():
            _drop(connection, {one.reply.key for one in batch if one.replaces})
            _insert(connection, latest.values())
        with self._lock:
            for key, reply in latest.items():
                if self._replies[key] is reply:
                    del self._replies[key]
        self.stored += len(batch)


def _insert(connection: Connection, some: Iterable[StoredReply]) -> None:
    text = text_for(connection.dialect)
    rows = [one._replace(model=text(one.model), reply=text(one.reply)) for one in some]
    insert_rows(connection, replies, StoredReply._fields, rows, once=True)


def _drop(connection: Connection, keys: Collection[str]) -> None:
    rest = iter(keys)
    while some := list(islice(rest, LARGEST)):
        connection.execute(delete(replies).where(replies.c.key.in_(some)))


def _count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(replies)).scalar_one()
