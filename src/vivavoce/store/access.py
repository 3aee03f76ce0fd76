"""Who may use a server: tokens of people and programs, sessions of browsers, and what is left of rate limits."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, or_, select, update

from vivavoce.errors import NotFound, UsageError
from vivavoce.store.audit import note
from vivavoce.store.browse.listing import Listed
from vivavoce.store.database.database import AnyRow, Database, check_times, insert_rows, now_in, values_of
from vivavoce.store.database.schema import rate_limits, server_secrets, tokens


@dataclass(frozen=True, slots=True)
class Secrets:
    """The shared random values of a store."""

    database: Database

    def value(self, name: str) -> bytes:
        """Return the 32 bytes of a name, the same for every server; the first one who asks makes them up.

        Raises:
            StoreError: there are none yet, and the store cannot be written.
        """
        query = select(server_secrets.c.value).where(server_secrets.c.name == name)
        with self.database.connected() as connection:
            found = connection.execute(query).scalar()
        if found is None:
            with self.database.writing() as connection:
                row = (name, secrets.token_hex(32))
                insert_rows(connection, server_secrets, ("name", "value"), [row], once=True)
                found = connection.execute(query).scalar_one()
        return bytes.fromhex(found)


class NotYours(UsageError):
    """Somebody else added it."""


Role = Literal["read", "write", "admin"]
"""read: look; write: also label and start jobs; admin: also delete, and manage tokens."""

ROLES: tuple[Role, ...] = ("read", "write", "admin")

PREFIX = "viva_"
_BYTES = 32
_MADE_HERE = re.compile(rf"{PREFIX}[\w-]{{43}}", re.ASCII)


class Token(Listed):
    """A token without its secret; times are seconds since the epoch, None for never."""

    id: str
    name: str
    role: Role
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a store."""

    database: Database

    def create(self, name: str, role: Role, *, expires_at: float | None = None, actor: str = "") -> tuple[Token, str]:
        """Create a token and return its record and its secret, which is not stored.

        Raises:
            UsageError: the name is empty or too long, or not one line.
        """
        if not 0 < len(name.strip()) <= 100 or not name.isprintable():
            raise UsageError("a token needs its user's name: one line, at most 100 characters")
        secret = f"{PREFIX}{secrets.token_urlsafe(_BYTES)}"
        made = Token(
            id=secrets.token_hex(4), name=name.strip(), role=role, created_at=time.time(), expires_at=expires_at
        )
        with self.database.writing() as connection:
            connection.execute(insert(tokens).values(**made.model_dump(), digest=digest_of(secret).hex()))
            note(
                connection, actor, "token.create", made.id, {"name": made.name, "role": role, "expires_at": expires_at}
            )
        return made, secret

    def all(self) -> list[Token]:
        """Return all tokens, oldest first, including invalid ones."""
        with self.database.connected() as connection:
            found = connection.execute(select(tokens).order_by(tokens.c.created_at, tokens.c.id)).all()
        return [_token(row) for row in found]

    def revoke(self, token_id: str, actor: str = "") -> Token:
        """Revoke a token; it is refused from the next request on.

        Raises:
            UsageError: there is no such token, or it is already revoked.
        """
        mine = tokens.c.id == token_id
        with self.database.writing() as connection:
            row = connection.execute(select(tokens).where(mine)).first()
            if row is None:
                raise NotFound("token", token_id, hint="; see: viva store token list")
            if row.revoked_at is not None:
                raise UsageError(f"token {token_id} is already revoked")
            now = time.time()
            connection.execute(update(tokens).where(mine).values(revoked_at=now))
            note(connection, actor, "token.revoke", row.id, {"name": row.name})
        return _token(row).model_copy(update={"revoked_at": now})

    def holder(self, secret: str) -> Token | None:
        """Return the valid token with this secret, None if there is none.

        It is found by its hash, so that timing does not reveal how close a guess is.
        """
        return self.holder_of(digest_of(secret))

    def holder_of(self, digest: bytes) -> Token | None:
        """Return the valid token whose secret has this hash, None if there is none."""
        with self.database.connected() as connection:
            row = connection.execute(select(tokens).where(tokens.c.digest == digest.hex(), _good())).first()
        if row is None or not hmac.compare_digest(row.digest, digest.hex()):
            return None
        token = _token(row)
        return token if token.revoked_at is None else None

    def any_good(self) -> bool:
        """Return whether there is a valid token."""
        with self.database.connected() as connection:
            return connection.execute(select(func.count()).select_from(tokens).where(_good())).scalar_one() > 0


def made_here(secret: str) -> bool:
    """Return whether a text has the form of our tokens, which cannot be guessed."""
    return _MADE_HERE.fullmatch(secret) is not None


def digest_of(secret: str) -> bytes:
    """Return the hash of a secret; for 32 random bytes a plain hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _good() -> ColumnElement[bool]:
    t = tokens.c
    return t.revoked_at.is_(None) & or_(t.expires_at.is_(None), t.expires_at > time.time())


def _token(row: AnyRow) -> Token:
    """Return a token from its row; one that cannot be read is as good as revoked."""
    try:
        check_times(row.created_at, row.expires_at, row.revoked_at)
        return Token.model_validate({name: value for name, value in values_of(row).items() if name != "digest"})
    except ValueError:
        return Token(id=str(row.id), name=UNREADABLE, role="read", created_at=0.0, revoked_at=0.0)


UNREADABLE = "unreadable: its row in the store has a wrong value"
"""The name of a token that cannot be read."""


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


_COLUMNS = ("client", "left", "at")


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket: `burst` requests at once, and `per_second` in the long run."""

    per_second: float
    burst: float


@dataclass(frozen=True, slots=True)
class Rates:
    """The shared buckets of a store; a client is named together with the kind of its requests."""

    database: Database

    def spend(self, rate: Rate, spent: Mapping[str, int]) -> dict[str, float]:
        """Take what some clients have spent, and return what each has left: below 0 if they spent too much.

        Raises:
            StoreError: the store cannot be written.
        """
        if not spent:
            return {}
        clients = sorted(spent)  # in one order, so that two servers never wait for each other
        with self.database.writing() as connection:
            now = connection.execute(select(now_in(connection))).scalar_one()
            insert_rows(connection, rate_limits, _COLUMNS, [(client, rate.burst, now) for client in clients], once=True)
            query = select(rate_limits).where(rate_limits.c.client.in_(clients)).order_by(rate_limits.c.client)
            rows = connection.execute(query.with_for_update()).all()
            left = {
                row.client: min(rate.burst, row.left + max(0.0, now - row.at) * rate.per_second) - spent[row.client]
                for row in rows
            }
            _set(connection, left, now)
        return left

    def forget(self, seconds: float) -> None:
        """Delete the clients without a request for some time, in which their buckets have become full.

        Raises:
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            connection.execute(delete(rate_limits).where(rate_limits.c.at < now_in(connection) - seconds))


def _set(connection: Connection, left: Mapping[str, float], now: float) -> None:
    statement = update(rate_limits).where(rate_limits.c.client == bindparam("who"))
    statement = statement.values(left=bindparam("now_left"), at=now)
    connection.execute(statement, [{"who": client, "now_left": value} for client, value in left.items()])
