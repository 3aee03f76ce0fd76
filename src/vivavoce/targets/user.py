"""`User`: a person who comes back to a target, and what the target keeps of them until the attempt ends."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from vivavoce.foreign_code import foreign_code

log = logging.getLogger("vivavoce")

_OTHER = re.compile(r"[^A-Za-z0-9]+")

HOW_TO_KNOW = (
    "a function that takes 'user', an HTTP body, WebSocket message or MCP arguments with {{ user }}, or a Letta agent "
    "made by agent_file or agent_script"
)
"""The targets that can tell who comes back, in words."""


@dataclass(slots=True)
class User:
    """One user of one attempt: `id` is new for every attempt, so that no attempt meets the memory of another.

    `kept` is for targets, which find there in a later session, each under itself, what they made in an earlier one.
    """

    name: str
    id: str
    kept: dict[object, Any] = field(default_factory=dict[object, Any])
    _at_end: list[Callable[[], Awaitable[None]]] = field(default_factory=list[Callable[[], Awaitable[None]]])

    def at_end(self, release: Callable[[], Awaitable[None]]) -> None:
        """Have something released when no session of this user will follow."""
        self._at_end.append(release)

    async def forget(self) -> None:
        """Release what was kept; what cannot be released is logged, and the conversation is kept."""
        while self._at_end:
            try:
                with foreign_code():
                    await self._at_end.pop()()
            except Exception as error:
                log.warning("what was kept of user %s is still there: %s: %s", self.id, type(error).__name__, error)


def new_user(name: str | None, attempt: str, number: int) -> User:
    """Return a user of an attempt, the one with this number there; the id has plain letters, digits and dashes only."""
    known = name or "user"
    return User(known, f"{_OTHER.sub('-', known).strip('-') or 'user'}-{attempt}-{number}")


def new_attempt() -> str:
    """Return what tells the users of one attempt from those of all others."""
    return uuid.uuid4().hex[:12]


def knows_users(target: object) -> bool:
    """Say whether a target is told which user speaks, and so can know them again in a later session."""
    return getattr(target, "knows_users", False) is True


def cannot_return(name: str) -> str:
    """Return why sessions with a target say nothing about its memory."""
    return f"{name} is not told who speaks, so nobody can come back to it; sessions need {HOW_TO_KNOW}"
