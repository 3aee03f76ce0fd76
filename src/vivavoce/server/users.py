"""`User`: whom a request comes from, and what they may do."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from fastapi import Depends, HTTPException, Request
from fastapi.params import Depends as Dependency
from starlette.requests import HTTPConnection

from vivavoce.settings import user_name
from vivavoce.store.access.tokens import ROLES, Role

MAY: dict[Role, str] = {
    "read": "look at what is here",
    "write": "label and begin work",
    "admin": "delete, and manage tokens",
}
"""What each role allows, besides what those before it do."""

visitor: ContextVar[User | None] = ContextVar("visitor", default=None)
"""Whom the request at hand comes from, for what has no request, such as the head of a page."""


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who uses a server; `id` is that of the token they came with, empty where none is needed."""

    name: str
    role: Role
    id: str = ""

    def may(self, role: Role) -> bool:
        """Say whether they may do what a role allows."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def lacking(self, role: Role) -> str:
        """Say why they may not do what a role allows."""
        return f"{self.name} may {MAY[self.role]}; to {MAY[role]} takes a token with the role {role}"


NOBODY = User("nobody", "read")
"""Somebody who has no token yet and is shown the way to sign in."""


def whoever_sits_here() -> User:
    """Return the user of a server that asks for no token: the one who runs it, who may do everything."""
    return User(user_name(), "admin")


def user_of(request: HTTPConnection) -> User:
    """Return whom a request comes from."""
    return request.state.user


def needs(role: Role) -> Dependency:
    """Return the dependency of a route that takes more than reading (GET) or writing (all others).

    `@router.get(path, dependencies=[needs("admin")])`; whoever may not is answered with 403.
    """

    def check(request: Request) -> None:
        user = user_of(request)
        if not user.may(role):
            raise HTTPException(403, user.lacking(role))

    return Depends(check)
