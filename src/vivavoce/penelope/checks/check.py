"""The protocol of a check: may this message be sent to the target?"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from vivavoce.penelope.context import TestState


class MessageCheck(Protocol):
    """Checks a message of the tester before it is sent; objections are counted in the state under the check's `name`.

    After `patience` objections in one turn a message is sent anyway, and that is counted; with None, never.
    """

    name: str
    patience: int | None

    def objection(self, message: str, state: TestState) -> str | Awaitable[str | None] | None:
        """Return what is wrong with a message and what to do instead, for the tester's model; None if nothing is.

        A message that is objected to is not sent, and the tester writes another. A check that has to wait for something
        returns an awaitable.
        """
        ...
