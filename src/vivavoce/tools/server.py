"""The protocol of a server of tools: it says which it has, and answers their calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from vivavoce.tools.answer import Answer, Asked


class ServerSession(Protocol):
    """A server in one conversation."""

    @property
    def definitions(self) -> Sequence[Mapping[str, Any]]:
        """The definitions of its tools."""
        ...

    async def answer(self, asked: Asked) -> Answer | None:
        """Answer a call, None where the server has no such tool.

        Raises:
            SuiteFault: the server failed.
        """
        ...

    async def close(self) -> None:
        """End the session."""
        ...


class Server(Protocol):
    """A server of tools."""

    async def open(self) -> ServerSession:
        """Begin a session.

        Raises:
            SuiteFault: the server cannot be reached.
        """
        ...
