"""`Spool`: what came in, on disk before it is acknowledged, until it is judged.

It is an SQLite file of its own next to the store. All work on it is done in one thread; what many senders send at once
is committed at once.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from vivavoce.errors import StoreError, UsageError
from vivavoce.features.watch.intake import Arrival, Delivery, Refused
from vivavoce.settings import WORKSPACE
from vivavoce.store.database.address import is_postgresql

SCHEMA = """
CREATE TABLE IF NOT EXISTS span (
    number INTEGER PRIMARY KEY, bundle INTEGER NOT NULL, trace BLOB NOT NULL, identity BLOB NOT NULL, parent BLOB,
    conversation BLOB, time NUMERIC, value BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS span_once ON span (trace, identity);
CREATE INDEX IF NOT EXISTS span_of_bundle ON span (bundle);
CREATE TABLE IF NOT EXISTS name (kind INTEGER, name BLOB, bundle INTEGER NOT NULL, PRIMARY KEY (kind, name))
    WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS name_of_bundle ON name (bundle);
CREATE TABLE IF NOT EXISTS bundle (
    number INTEGER PRIMARY KEY, first REAL NOT NULL, last REAL NOT NULL, spans INTEGER NOT NULL,
    bytes INTEGER NOT NULL, own INTEGER NOT NULL, open INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS bundle_by_age ON bundle (open, last);
CREATE TABLE IF NOT EXISTS begun (bundle INTEGER PRIMARY KEY, times INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS talk (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL, version INTEGER NOT NULL, sample TEXT NOT NULL,
    digest BLOB NOT NULL, row TEXT, state TEXT NOT NULL, run TEXT, settled REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS talk_by_id ON talk (id, version);
CREATE INDEX IF NOT EXISTS talk_by_state ON talk (state, run, number);
CREATE TABLE IF NOT EXISTS period (run TEXT PRIMARY KEY, ends REAL NOT NULL, spent INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS tally (hour INTEGER, what TEXT, number INTEGER NOT NULL, PRIMARY KEY (hour, what))
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS file (file TEXT PRIMARY KEY, offset INTEGER NOT NULL);
"""
"""A bundle is what belongs together by traces and conversations; a talk is a conversation that a bundle became.

A bundle is open as long as it may still grow; `begun` says how often reading it has begun without an end. A talk is
`waiting`, `given` to a run, `judged` once the store has it, or `passed`: it was not judged, because a budget was spent
or it could not be read.
A tally is how often something was counted in an hour, which begins at this many seconds since 1970.
"""


HOUR = 3600
RETENTION_SECONDS = 48 * HOUR
"""Seconds for which an hour is kept; the store has it by then."""

_ADD = """
INSERT INTO tally VALUES (?, ?, ?) ON CONFLICT (hour, what) DO UPDATE SET number = number + excluded.number
"""


def keep_tally(database: sqlite3.Connection, counts: Counter[str], now: float) -> None:
    """Add what a transaction counted to its hour."""
    hour = hour_of(now)
    database.executemany(_ADD, ((hour, what, number) for what, number in counts.items() if number))


def tallies(database: sqlite3.Connection, since: int) -> dict[int, dict[str, int]]:
    """Return what was counted in each hour from `since` on, and forget what is too old."""
    database.execute("DELETE FROM tally WHERE hour < ?", (since - RETENTION_SECONDS,))
    by_hour: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for hour, what, number in database.execute("SELECT hour, what, number FROM tally WHERE hour >= ?", (since,)):
        by_hour[hour][what] = number
    return dict(by_hour)


def hour_of(now: float) -> int:
    """Return the beginning of the hour of a time, both in seconds since 1970."""
    return int(now // HOUR) * HOUR


_TRACE, _CONVERSATION = 0, 1
_NAMELESS = b"\xff"
"""How the identity begins of what has no id of its own: no text does, as bytes."""
_INSERT = """
INSERT INTO span (bundle, trace, identity, parent, conversation, time, value) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_GROWN = """
UPDATE bundle SET last = max(last, ?), spans = spans + 1, bytes = bytes + ?, own = max(own, ?), open = 1,
    first = CASE WHEN open THEN first ELSE ? END WHERE number = ?
"""
_KNOWN_SPAN = """
SELECT span.number, open, value FROM span LEFT JOIN bundle ON bundle.number = span.bundle
    WHERE trace = ? AND identity = ?
"""
_MERGED = """
UPDATE bundle SET (first, last, spans, bytes, own, open) = (
    SELECT min(CASE WHEN open THEN first ELSE ?3 END), max(last), sum(spans), sum(bytes), max(own), max(open)
        FROM bundle WHERE number IN (?1, ?2)
) WHERE number = ?1
"""


def add(database: sqlite3.Connection, delivery: Delivery, now: float, counts: Counter[str]) -> None:
    """Keep what a request or a piece of a file holds, and how far the file is read."""
    names: dict[tuple[int, bytes], int] = {}
    for arrival in delivery.arrivals:
        _add(database, arrival, now, counts, names)
    counts["refused"] += delivery.rejected
    if delivery.position is not None:
        database.execute("INSERT OR REPLACE INTO file VALUES (?, ?)", delivery.position)


def _add(
    database: sqlite3.Connection,
    arrival: Arrival,
    now: float,
    counts: Counter[str],
    names: dict[tuple[int, bytes], int],
) -> None:
    member, value = arrival.member, arrival.value
    trace = key_of(member.trace)
    identity = (
        _NAMELESS + blake2b(value, digest_size=16).digest() if member.identity is None else key_of(member.identity)
    )
    known = database.execute(_KNOWN_SPAN, (trace, identity)).fetchone()
    if known is not None:
        counts["repeated"] += 1
        number, is_open, before = known
        if is_open and before != value:
            database.execute("UPDATE span SET value = ? WHERE number = ?", (value, number))
        return
    conversation = None if member.conversation is None else key_of(member.conversation)
    bundle = _bundle(database, trace, conversation, now, names)
    parent = None if member.parent is None else key_of(member.parent)
    database.execute(_INSERT, (bundle, trace, identity, parent, conversation, member.time, value))
    database.execute(_GROWN, (now, len(value), arrival.is_own, now, bundle))
    counts["spans"] += 1


def _bundle(
    database: sqlite3.Connection,
    trace: bytes,
    conversation: bytes | None,
    now: float,
    names: dict[tuple[int, bytes], int],
) -> int:
    """Return the bundle of a trace and a conversation; two that turn out to be one are made one."""
    keys = [(_TRACE, trace), *([] if conversation is None else [(_CONVERSATION, conversation)])]
    bundles = {name: number for name in keys if (number := _bundle_of(database, name, names)) is not None}
    numbers = sorted(set(bundles.values()))
    if not numbers:
        insert = "INSERT INTO bundle (first, last, spans, bytes, own, open) VALUES (?, ?, 0, 0, 0, 1)"
        numbers = [int(database.execute(insert, (now, now)).lastrowid or 0)]
    elif len(numbers) == 2:
        numbers.sort(key=lambda number: _spans(database, number), reverse=True)  # each span moves a few times at most
        _merge(database, numbers[0], numbers[1], now)
        names.clear()
    for name in keys:
        names[name] = numbers[0]
        if name not in bundles:
            database.execute("INSERT INTO name VALUES (?, ?, ?)", (*name, numbers[0]))
    return numbers[0]


def _bundle_of(
    database: sqlite3.Connection, name: tuple[int, bytes], names: dict[tuple[int, bytes], int]
) -> int | None:
    if name in names:
        return names[name]
    row = database.execute("SELECT bundle FROM name WHERE kind = ? AND name = ?", name).fetchone()
    return None if row is None else row[0]


def _spans(database: sqlite3.Connection, bundle: int) -> int:
    return int(database.execute("SELECT spans FROM bundle WHERE number = ?", (bundle,)).fetchone()[0])


def _merge(database: sqlite3.Connection, target: int, other: int, now: float) -> None:
    database.execute(_MERGED, (target, other, now))
    database.execute("UPDATE span SET bundle = ? WHERE bundle = ?", (target, other))
    database.execute("UPDATE name SET bundle = ? WHERE bundle = ?", (target, other))
    database.execute("DELETE FROM bundle WHERE number = ?", (other,))
    database.execute("DELETE FROM begun WHERE bundle = ?", (other,))


def key_of(text: str) -> bytes:
    """Return a text as bytes: one may have halves of characters, which the database takes for no text."""
    return text.encode("utf-8", "surrogatepass")


def text_of(key: bytes | None) -> str | None:
    """Return the text of a key, None if it has none."""
    return None if key is None or key.startswith(_NAMELESS) else key.decode("utf-8", "surrogatepass")


def spool_path(place: str, name: str) -> Path:
    """Return the file in which a watch of this name keeps what comes in."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "production"
    beside = WORKSPACE / "vivavoce" if is_postgresql(place) else Path(place)
    return beside.with_name(f"{beside.name}.{plain}.traces")


T = TypeVar("T")

BATCH_BYTES = 8 * 2**20
"""Bytes of spans that are committed at once; a request that has more is committed by itself."""
END_SECONDS = 3.0
"""Seconds that work in progress has when the spool is closed."""
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

    read: Callable[[], Delivery]
    done: asyncio.Future[Delivery]
    now: float


class _SpoolThread(Executor):
    """Does one task after the other in a daemon thread, which does not keep the program from ending."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._began: float | None = None
        threading.Thread(target=self._work, daemon=True, name="viva-spool").start()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have a task done after those before."""
        future: Future[T] = Future()

        def task() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        self._tasks.put(task)
        return future

    @property
    def busy_seconds(self) -> float:
        """For how long the task in progress has run, 0 without one."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    def end(self) -> None:
        """End the thread after the tasks that wait."""
        self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._began = time.monotonic()
            task()
            self._began = None


class Spool:
    """The spans that wait for their conversation to end, and the conversations that wait for a judge.

    `counts` says since the start what came in and what became of it.

    Raises:
        UsageError: another process has the file, or it cannot be opened.
    """

    def __init__(self, path: Path, most: int) -> None:
        self.path, self.most = path, most
        self.counts: Counter[str] = Counter()
        self._waiting: deque[Arriving] = deque()
        self._lock = threading.Lock()
        self._thread = _SpoolThread()
        self._database = self._thread.submit(self._open).result()

    async def put(self, read: Callable[[], Delivery], now: float) -> Delivery:
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
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._transact, job)

    @property
    def used(self) -> int:
        """The bytes that are in use, as of the last commit."""
        return self._used

    @property
    def busy_seconds(self) -> float:
        """For how long the work in progress has run, 0 without any."""
        return self._thread.busy_seconds

    def close(self) -> None:
        """Finish what is begun and close the file; what does not end within END_SECONDS is dropped with the program."""
        with suppress(TimeoutError):
            self._thread.submit(self._database.close).result(max(0.1, END_SECONDS - self.busy_seconds))
        self._thread.end()

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(self.path, isolation_level=None, timeout=0.2)
            database.executescript(_PRAGMAS)
            database.executescript(f"BEGIN IMMEDIATE;{SCHEMA}COMMIT;")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise UsageError(
                    f"another viva watch uses {self.path}; stop it, or give this one another --name"
                ) from error
            raise UsageError(f"{self.path}: cannot be used for incoming traces: {error}") from error
        except (OSError, sqlite3.DatabaseError) as error:
            raise UsageError(f"{self.path}: cannot be used for incoming traces: {error}") from error
        self._used = _used_bytes(database)
        return database

    # What follows runs in the thread.

    def _transact(self, job: Callable[[sqlite3.Connection, Counter[str]], T]) -> T:
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
        self._used = _used_bytes(self._database)
        self.counts.update(counts)
        return result

    def _commit(self) -> None:
        """Read what waits, one after the other, and commit it in batches, so that memory holds little of it."""
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
        batch: list[tuple[Arriving, Delivery]] = []
        size = 0
        while waiting:
            arriving = waiting.popleft()
            if self._used + size >= self.most:
                self.counts["refused: no room"] += 1
                _tell(arriving, _full(f"{self.path.name} has {self.most / 1e6:,.0f} MB waiting to be judged"))
                continue
            delivery = _read(arriving.read)
            if isinstance(delivery, Exception):
                _tell(arriving, delivery)
                continue
            batch.append((arriving._replace(read=Delivery), delivery))
            size += delivery.size
            if size >= BATCH_BYTES:
                self._keep(batch)
                batch, size = [], 0
        self._keep(batch)

    def _keep(self, batch: list[tuple[Arriving, Delivery]]) -> None:
        """Commit what was read, and tell who waits for it."""
        fault = self._fault_of([(delivery, arriving.now) for arriving, delivery in batch]) if batch else None
        for arriving, delivery in batch:
            _tell(arriving, delivery if fault is None else fault)
            delivery.arrivals.clear()

    def _fault_of(self, deliveries: list[tuple[Delivery, float]]) -> Exception | None:
        """Commit what was read; return why it could not be."""
        try:
            self._transact(
                lambda database, counts: [add(database, delivery, now, counts) for delivery, now in deliveries]
            )
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


def _read(read: Callable[[], Delivery]) -> Delivery | Exception:
    try:
        return read()
    except Exception as error:
        return error


def _tell(arriving: Arriving, outcome: Delivery | Exception) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        arriving.done.get_loop().call_soon_threadsafe(_settle, arriving.done, outcome)


def _settle(done: asyncio.Future[Any], outcome: Any) -> None:
    if done.done():
        return
    if isinstance(outcome, Exception):
        done.set_exception(outcome)
    else:
        done.set_result(outcome)


def _used_bytes(database: sqlite3.Connection) -> int:
    pages, free, size = (
        database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size
