"""The protocol of a check: may this be said to the target?"""

from __future__ import annotations

from typing import Protocol

from vivavoce.penelope.context import TestState


class MessageCheck(Protocol):
    """Objects to what the tester is about to say; objections are counted in the state under the check's `name`.

    After `patience` objections in one turn a message is sent all the same, None for never, and that is counted too.
    """

    name: str
    patience: int | None

    def objection(self, message: str, state: TestState) -> str | None:
        """Say what is wrong with a message, and what to do instead, for the tester's model to read; None for nothing.

        A message that is objected to is not sent, and the tester writes another.
        """
        ...
