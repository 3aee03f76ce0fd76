"""Sessions of browsers: a random id in a cookie, and in the store the hash of the id and of the token behind it.

The cookie never holds the token, so whoever reads the cookie cannot use the token elsewhere or after the session ends.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import delete, select, update

from vivavoce.store.access.tokens import digest_of
from vivavoce.store.database.database import Database, insert_rows
from vivavoce.store.database.schema import server_secrets

IDLE_SECONDS = 12 * 3600.0
"""Seconds without a request after which a session ends."""

MAX_SECONDS = 30 * 86400.0
"""Seconds after which a session ends in any case."""

MAX_OF_TOKEN = 100
"""Sessions that a token has; one more ends the one that was used longest ago."""

_AT_ONCE = 500
"""Sessions that one statement deletes."""

_NOTE_SECONDS = 300.0
"""Seconds after which the store notes the next use, so that most requests write nothing."""
_ID_BYTES = 32
_PREFIX = "session:"


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of the browsers that use the servers of a store."""

    database: Database
    clock: Callable[[], float] = field(default=time.time)

    def begin(self, token_digest: bytes) -> str:
        """Begin a session for the holder of a token, and return its id, which is not stored.

        Raises:
            StoreError: the store cannot be written.
        """
        session_id, now = secrets.token_urlsafe(_ID_BYTES), self.clock()
        with self.database.writing() as connection:
            stored = connection.execute(select(_S.name, _S.value).where(_S.name.startswith(_PREFIX))).all()
            ended = [row.name for row in stored if not _is_open(row.value, now)]
            mine = [
                row for row in stored if _is_open(row.value, now) and row.value.startswith(f"{token_digest.hex()} ")
            ]
            mine.sort(key=lambda row: _parts(row.value)[2], reverse=True)
            ended += [row.name for row in mine[MAX_OF_TOKEN - 1 :]]
            for start in range(0, len(ended), _AT_ONCE):
                connection.execute(delete(server_secrets).where(_S.name.in_(ended[start : start + _AT_ONCE])))
            row = (_name(session_id), _value(token_digest.hex(), now, now))
            insert_rows(connection, server_secrets, ("name", "value"), [row])
        return session_id

    def token_digest(self, session_id: str) -> bytes | None:
        """Return the hash of the token of an open session, None if there is no such session, and note that it is used.

        Raises:
            StoreError: the store cannot be read.
        """
        name, now = _name(session_id), self.clock()
        with self.database.connected() as connection:
            value = connection.execute(select(_S.value).where(_S.name == name)).scalar()
        if value is None or not _is_open(value, now):
            return None
        digest, began, used = _parts(value)
        if now - used > _NOTE_SECONDS:
            with self.database.writing() as connection:
                mine = update(server_secrets).where(_S.name == name)
                connection.execute(mine.values(value=_value(digest, began, now)))
        return bytes.fromhex(digest)

    def end(self, session_id: str) -> None:
        """End a session; its id is refused from the next request on.

        Raises:
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            connection.execute(delete(server_secrets).where(_S.name == _name(session_id)))


_S = server_secrets.c


def _name(session_id: str) -> str:
    return _PREFIX + digest_of(session_id).hex()


def _value(digest: str, began: float, used: float) -> str:
    return f"{digest} {began:.0f} {used:.0f}"


def _parts(value: str) -> tuple[str, float, float]:
    digest, began, used = value.split(" ")
    return digest, float(began), float(used)


def _is_open(value: str, now: float) -> bool:
    """Return whether a session is still open; one that cannot be read is not."""
    try:
        digest, began, used = _parts(value)
        bytes.fromhex(digest)
    except (ValueError, AttributeError):
        return False
    return now - used <= IDLE_SECONDS and now - began <= MAX_SECONDS
