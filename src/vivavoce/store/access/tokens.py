"""Tokens of people and programs: how they are made, kept as a digest, and found, and whose they are."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, func, insert, or_, select, update

from vivavoce.errors import NotFound, UsageError
from vivavoce.store.access.audit import note
from vivavoce.store.browse.listing import Listed
from vivavoce.store.database.database import AnyRow, Database, check_times, insert_rows, values_of
from vivavoce.store.database.schema import server_secrets, tokens


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
            raise UsageError("the name of a token is that of its user, on one line of at most 100 characters")
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
