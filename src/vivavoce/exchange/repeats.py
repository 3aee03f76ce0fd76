"""What the events of a conversation hold beside what they hold again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, cast

from vivavoce.exchange.format import Loss, Row

KeyOf = Callable[[Row], Hashable | None]
"""Returns a key that objects share which say the same, None of an object that may occur more than once."""


class Repeats:
    """What is kept already; the same again is left out, and counted."""

    def __init__(self, key_of: KeyOf, kept: Iterable[Row]) -> None:
        self._key_of = key_of
        self._kept = {key_of(one) for one in kept} - {None}
        self._count = 0

    def rest_of(self, value: Any) -> Any:
        """Return a value without the objects within it that were kept before, None for such an object itself."""
        if isinstance(value, dict):
            fields = cast("Row", value)
            if (key := self._key_of(fields)) is not None:
                if key in self._kept:
                    self._count += 1
                    return None
                self._kept.add(key)
            return {name: rest for name, inner in fields.items() if (rest := self.rest_of(inner)) is not None}
        if isinstance(value, list):
            return [rest for inner in cast("list[Any]", value) if (rest := self.rest_of(inner)) is not None]
        return value

    def tell(self, loss: Loss, events: int) -> None:
        """Tell the report what was left out, and that the rest of the events is kept aside."""
        if self._count:
            loss.repeated("messages, calls and scores that stand in events again", self._count)
        if events:
            loss.aside("events", count=events)
