"""`Spool`: what came in, on disk before anybody is told that it was taken, until it is judged.

It is an SQLite file of its own beside the store. All work on it is done in one thread; what many senders send at once
is committed at once.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from vivavoce.errors import StoreError, UsageError
from vivavoce.production.arriving import add
from vivavoce.production.intake import Refused, Taken
from vivavoce.production.schema import SCHEMA
from vivavoce.production.tally import keep_tally

T = TypeVar("T")

RETRY_AFTER = 30
"""Seconds after which a sender may try again when the disk queue is full."""
_PRAGMAS = """
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA cache_size = -32000;
"""


class Arriving(NamedTuple):
    """What is to be read and kept, and who waits for it; `now` is when it came, in seconds since 1970."""

    read: Callable[[], Taken]
    done: asyncio.Future[Taken]
    now: float


class Spool:
    """The spans that wait for their conversation to end, and the conversations that wait for a judge.

    `counts` says since the start what came in and what became of it.

    Raises:
        UsageError: another process has the file, or it cannot be opened.
    """

    def __init__(self, path: Path, most: int) -> None:
        self.path, self.most = path, most
        self.counts: Counter[str] = Counter()
        self._waiting: list[Arriving] = []
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "viva-spool")
        self._database = self._thread.submit(self._open).result()

    async def put(self, read: Callable[[], Taken], now: float) -> Taken:
        """Read what came in and keep it; on return it is on disk.

        Raises:
            Refused: it cannot be read, or there is no room.
            StoreError: the disk failed.
        """
        loop = asyncio.get_running_loop()
        arriving = Arriving(read, loop.create_future(), now)
        with self._lock:
            first = not self._waiting
            self._waiting.append(arriving)
        if first:
            self._thread.submit(self._commit)
        return await arriving.done

    async def work(self, job: Callable[[sqlite3.Connection, Counter[str]], T]) -> T:
        """Do a job with the database, in one transaction; the counts are changed only if it is committed.

        Raises:
            StoreError: the disk failed.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._transacted, job)

    @property
    def used(self) -> int:
        """The bytes that are in use, as of the last commit."""
        return self._used

    def close(self) -> None:
        """Finish what is begun and close the file."""
        self._thread.submit(self._database.close).result()
        self._thread.shutdown()

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(self.path, isolation_level=None, timeout=0.2)
            database.executescript(_PRAGMAS)
            database.executescript(f"BEGIN IMMEDIATE;{SCHEMA}COMMIT;")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise UsageError(
                    f"another viva watch-traces uses {self.path}; stop it, or give this one another --name"
                ) from error
            raise UsageError(f"{self.path}: cannot be used for what comes in: {error}") from error
        except (OSError, sqlite3.DatabaseError) as error:
            raise UsageError(f"{self.path}: cannot be used for what comes in: {error}") from error
        self._used = _used(database)
        return database

    # What follows runs in the thread.

    def _transacted(self, job: Callable[[sqlite3.Connection, Counter[str]], T]) -> T:
        counts: Counter[str] = Counter()
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                result = job(self._database, counts)
                keep_tally(self._database, counts, time.time())
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:  # a full disk may have ended it
                    self._database.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}") from error
        self._used = _used(self._database)
        self.counts.update(counts)
        return result

    def _commit(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        read = [(one, _read(one.read)) for one in waiting]
        good = [(one, taken) for one, taken in read if isinstance(taken, Taken)]
        fault = self._keep([(taken, one.now) for one, taken in good])
        for one, taken in read:
            outcome = fault if isinstance(taken, Taken) and fault is not None else taken
            one.done.get_loop().call_soon_threadsafe(_settle, one.done, outcome)

    def _keep(self, taken: list[tuple[Taken, float]]) -> Exception | None:
        """Commit what was read; return why it could not be."""
        if self._used >= self.most:
            self.counts["refused: no room"] += len(taken)
            return _full(f"{self.path.name} holds {self.most / 1e6:,.0f} MB that wait to be judged")
        try:
            self._transacted(lambda database, counts: [add(database, one, now, counts) for one, now in taken])
        except StoreError as error:
            return _full("the disk is full") if _disk_is_full(error) else error
        except Exception as error:
            return error
        return None


def _disk_is_full(error: StoreError) -> bool:
    cause = error.__cause__
    return isinstance(cause, sqlite3.Error) and getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def _full(why: str) -> Refused:
    return Refused(503, f"{why}; try again later", RETRY_AFTER)


def _read(read: Callable[[], Taken]) -> Taken | Exception:
    try:
        return read()
    except Exception as error:
        return error


def _settle(done: asyncio.Future[Any], outcome: Any) -> None:
    if done.done():
        return
    if isinstance(outcome, Exception):
        done.set_exception(outcome)
    else:
        done.set_result(outcome)


def _used(database: sqlite3.Connection) -> int:
    pages, free, size = (
        database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size
