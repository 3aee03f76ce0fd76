"""`ReplyStore`: the replies of models, found by the hash of what was asked, and written many in one commit."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Engine, bindparam, delete, func, select

from vivavoce.errors import StoreError
from vivavoce.pacing.waiting import in_thread
from vivavoce.records.redaction import keys_of_environment
from vivavoce.records.reply import StoredReply
from vivavoce.store.database.database import driver_errors, for_writing, meaning, on_postgresql, plain_errors
from vivavoce.store.database.insert import LARGEST, insert_rows
from vivavoce.store.database.schema import replies
from vivavoce.store.runs.encode import escape
from vivavoce.store.runs.writer import BATCH, PENDING, WINDOW


class ReplyStore:
    """Looks replies up at once, and commits new ones in a thread of its own; any event loop may use it.

    The first reply to a question stays: one that another process stored in the meantime is not replaced. Only one that
    was rejected gives way to the next. After an error nothing more is written, and every call raises it.
    """

    def __init__(self, engine: Engine, place: str) -> None:
        self._engine = engine
        self._place = place
        self._changed = threading.Condition()
        self._queue: dict[str, StoredReply] = {}
        self._writing: dict[str, StoredReply] = {}
        self._oldest = 0.0
        self._hurry = self._closing = False
        self._error: str | None = None
        self._thread: threading.Thread | None = None
        self._keys = keys_of_environment()
        self._rejected: set[str] = set()
        self._replacing: set[str] = set()

    @property
    def rejected(self) -> int:
        """How many replies could not be used and have none in their place."""
        return len(self._rejected)

    def reject(self, key: str) -> None:
        """Take note that the reply of a key cannot be used, so that the next one replaces it."""
        with self._changed:
            self._rejected.add(key)

    def get(self, key: str) -> str | None:
        """Return the reply that is kept under a key, also one that is not committed yet; None when there is none.

        Raises:
            StoreError: the store cannot be read.
        """
        waiting = self._queue.get(key) or self._writing.get(key)
        if waiting is not None:
            return waiting.reply
        try:
            row = self._execute(self._lookup, (key,)).fetchone()
        except driver_errors() as error:
            raise StoreError(f"{self._place}: {meaning(error)}") from error
        return None if row is None else row[0]

    async def put(self, reply: StoredReply) -> None:
        """Queue a reply; waits while too many are pending.

        Raises:
            StoreError: an earlier one could not be written, or this is closed.
        """
        with self._changed:
            self._check()
            if self._closing:
                raise StoreError(f"{self._place}: the replies are closed")
            self._queue[reply.key] = reply._replace(reply=self._keys.cut(reply.reply))
            if reply.key in self._rejected:
                self._rejected.discard(reply.key)
                self._replacing.add(reply.key)
            pending = len(self._queue)
            if pending == 1:
                self._oldest = time.monotonic()
            if pending in (1, BATCH):
                self._wake()
        if pending >= PENDING:
            await in_thread(self._settle)

    def all(self, models: Sequence[str] = ()) -> Iterator[StoredReply]:
        """Yield what is kept, of these models or of all, the oldest first.

        Raises:
            StoreError: the store cannot be read, or something put before could not be written.
        """
        self._settle()
        query = select(replies).order_by(replies.c.created_at, replies.c.key)
        if models:
            query = query.where(replies.c.model.in_([escape(model) for model in models]))
        with plain_errors(self._place), self._engine.connect() as connection:
            for row in connection.execute(query.execution_options(yield_per=LARGEST)):
                yield StoredReply(*row)

    def add(self, more: Iterable[StoredReply], replacing: Collection[str] = ()) -> int:
        """Keep replies, all or none, and return how many were not there before; those of some keys are replaced.

        Raises:
            StoreError: the store cannot be written.
        """
        self._settle()
        rows = iter(more)
        with plain_errors(self._place), self._engine.connect() as connection, for_writing(connection).begin():
            before = _count(connection)
            _drop(connection, replacing)
            while batch := list(islice(rows, LARGEST)):
                insert_rows(connection, replies, [_row(reply) for reply in batch], once=True)
            return _count(connection) - before

    async def close(self) -> None:
        """Commit what is left and end the thread; a second call changes nothing.

        Raises:
            StoreError: something could not be written.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        if "_execute" in vars(self):
            del self._execute
            self._reading.close()
            del self._reading
        self._check()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @cached_property
    def _reading(self) -> Connection:
        with plain_errors(self._place):
            connection = self._engine.connect()
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
        return str(query.compile(dialect=self._engine.dialect))

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="vivavoce-replies", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _settle(self) -> None:
        """Wait until everything put so far is committed."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not (self._queue or self._writing) or self._error)
            self._check()

    def _check(self) -> None:
        if self._error is not None:
            raise StoreError(self._error)

    # What follows runs in the thread.

    def _work(self) -> None:
        try:
            with plain_errors(self._place), self._engine.connect() as connection:
                while self._take():
                    with for_writing(connection).begin():
                        _drop(connection, self._replacing & self._writing.keys())
                        insert_rows(connection, replies, [_row(one) for one in self._writing.values()], once=True)
                    self._written()
        except Exception as error:  # whatever it was, the callers have to hear of it
            with self._changed:
                lost = len(self._writing) + len(self._queue)
                self._error = f"{error} ({lost} repl{'y' if lost == 1 else 'ies'} not stored)"
                self._changed.notify_all()

    def _take(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            if self._queue:
                self._changed.wait_for(self._is_due, max(0.0, self._oldest + WINDOW - time.monotonic()))
            self._writing, self._queue, self._hurry = self._queue, {}, False
            return bool(self._writing)

    def _is_due(self) -> bool:
        return len(self._queue) >= BATCH or self._hurry or self._closing

    def _written(self) -> None:
        with self._changed:
            self._replacing -= self._writing.keys()
            self._writing = {}
            self._changed.notify_all()


def _row(reply: StoredReply) -> tuple[str, str, str, float]:
    return reply.key, escape(reply.model), escape(reply.reply), reply.created_at


def _drop(connection: Connection, keys: Collection[str]) -> None:
    rest = iter(keys)
    while some := list(islice(rest, LARGEST)):
        connection.execute(delete(replies).where(replies.c.key.in_(some)))


def _count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(replies)).scalar_one()
