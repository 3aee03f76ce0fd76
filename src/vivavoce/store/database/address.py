"""What names a store: the path of an SQLite file, or the address of a PostgreSQL database."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Self

from vivavoce.errors import UsageError

if TYPE_CHECKING:
    from sqlalchemy import URL

_SECRET = ("password", "sslpassword")


class Place(str):
    """How a store is called wherever it is shown or written down: without a password; `address` is what opens it."""

    __slots__ = ("address",)
    address: str

    def __new__(cls, address: str) -> Self:
        """Make the name of what an address opens.

        Raises:
            UsageError: the address is of another kind.
        """
        if isinstance(address, Place):
            address = address.address
        place = super().__new__(cls, _shown(address))
        place.address = address
        return place

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Leave the password behind where it is copied to another process or to a file."""
        return str, (str(self),)


def is_postgresql(address: str) -> bool:
    """Say whether an address is that of a PostgreSQL database."""
    return re.match(r"postgres(ql)?(\+\w+)?://", address) is not None


def path_of(address: str) -> Path:
    """Return the file that a path or an `sqlite:///` address means.

    Raises:
        UsageError: the address is of another kind.
    """
    scheme, sign, rest = address.partition("://")
    if not sign:
        path = address
    elif scheme != "sqlite" or not rest.startswith("/"):
        shown = re.sub(r"//.*@", "//…@", address, flags=re.DOTALL)
        raise UsageError(
            f"'{shown}' is not a store; give a file path, sqlite:///path or postgresql://user@host/database"
        )
    else:
        path = rest[1:]
    if not path or path == ":memory:":
        raise UsageError(f"'{address}' does not name a file; give the path of one")
    return Path(path).expanduser()


def url_of(address: str) -> URL:
    """Return the address of a PostgreSQL database in its parts.

    Raises:
        UsageError: it names no database, or another driver than psycopg.
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    scheme, _, rest = address.partition("://")
    if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise UsageError(f"'{scheme}://…' is not a store; give postgresql://user@host/database")
    try:
        url = make_url(f"postgresql+psycopg://{rest}")
    except (ArgumentError, ValueError):  # what they say may hold the password
        raise UsageError(
            "the address of the store cannot be read; give postgresql://user@host:5432/database, with %40 for an @ "
            "in a password"
        ) from None
    if not url.database:
        raise UsageError(f"'{_without_secrets(url)}' does not name a database; give postgresql://user@host/database")
    return url


def _shown(address: str) -> str:
    return _without_secrets(url_of(address)) if is_postgresql(address) else str(path_of(address))


def _without_secrets(url: URL) -> str:
    plain = url.set(drivername="postgresql").difference_update_query(_SECRET)
    return plain._replace(password=None).render_as_string()
