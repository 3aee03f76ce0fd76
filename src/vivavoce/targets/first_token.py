"""`FirstToken`: how long a target that streams took until the first piece of its reply came, and what came so far."""

from __future__ import annotations

import time
from collections.abc import Sequence

from vivavoce.messages import AIMessage, AnyMessage

KEY = "first_token"
"""The key in the metadata of the first assistant message of a turn, with the time in seconds."""


class FirstToken:
    """A clock that starts when it is made, and stops when the first piece comes."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.seconds: float | None = None
        self._pieces: list[str] = []

    def came(self, piece: object = None) -> None:
        """Note that a piece came, and keep its words if it has some."""
        if self.seconds is None:
            self.seconds = time.perf_counter() - self._started
        if isinstance(piece, str):
            self._pieces.append(piece)

    @property
    def so_far(self) -> str:
        """The words that came."""
        return "".join(self._pieces)

    def noted_in(self, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
        """Return the messages of the turn, with the time in the first of the assistant, if there is any."""
        noted = list(messages)
        at = next((index for index, message in enumerate(noted) if isinstance(message, AIMessage)), None)
        if self.seconds is not None and at is not None:
            metadata = {**(noted[at].metadata or {}), KEY: round(self.seconds, 6)}
            noted[at] = noted[at].model_copy(update={"metadata": metadata})
        return noted
