"""`User`: the user of a request, and their permissions."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from fastapi import Depends, HTTPException, Request
from fastapi.params import Depends as Dependency
from starlette.requests import HTTPConnection

from vivavoce.settings import user_name
from vivavoce.store.access import ROLES, Role

MAY: dict[Role, str] = {
    "read": "look at what is here",
    "write": "label and start jobs",
    "admin": "delete, and manage tokens",
}
"""The additional permission of each role."""

visitor: ContextVar[User | None] = ContextVar("visitor", default=None)
"""The user of the current request, for code without the request, such as the head of a page."""


@dataclass(frozen=True, slots=True)
class User:
    """A user of a server; `id` is that of their token, empty without one."""

    name: str
    role: Role
    id: str = ""

    @property
    def key(self) -> str:
        """What their requests are counted by."""
        return self.id or self.name

    def may(self, role: Role) -> bool:
        """Return whether they have the permission of a role."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def lacking(self, role: Role) -> str:
        """Return why they do not have the permission of a role."""
        return f"{self.name} may {MAY[self.role]}; to {MAY[role]} you need a token with the role {role}"


NOBODY = User("nobody", "read")
"""A user without a token, on the way to the sign-in page."""


def whoever_sits_here() -> User:
    """Return the user without a token where none is required: the one who runs the server and may do everything."""
    return User(user_name(), "admin")


def user_of(request: HTTPConnection) -> User:
    """Return the user of a request."""
    return request.state.user


def needs(role: Role) -> Dependency:
    """Return the dependency of a route that needs more than read (GET) or write (all others).

    `@router.get(path, dependencies=[needs("admin")])`; without the permission the answer is 403.
    """

    def check(request: Request) -> None:
        user = user_of(request)
        if not user.may(role):
            raise HTTPException(403, user.lacking(role))

    return Depends(check)
