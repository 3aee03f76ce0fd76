"""`User`: whom a request comes from, and what they may do."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from typing import Literal

from starlette.requests import HTTPConnection

Role = Literal["read", "write", "admin"]
"""To look; to label and to begin work; to delete and to let others in. Each may do what those before it may."""

ROLES: tuple[Role, ...] = ("read", "write", "admin")


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who uses a server; `id` is that of the token they came with, empty where none is needed."""

    name: str
    role: Role
    id: str = ""

    def may(self, role: Role) -> bool:
        """Say whether they may do what a role allows."""
        return ROLES.index(self.role) >= ROLES.index(role)


def whoever_sits_here() -> User:
    """Return the user of a server that asks for no token: the one who runs it, who may do everything."""
    try:
        return User(getpass.getuser(), "admin")
    except (KeyError, OSError):  # a user without a name, as in some containers
        return User("somebody", "admin")


def user_of(request: HTTPConnection) -> User:
    """Return whom a request comes from."""
    return request.state.user
