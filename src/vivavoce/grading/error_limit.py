"""`ErrorLimit`: how many errors, or which share of them, a verdict puts up with."""

from __future__ import annotations

from dataclasses import dataclass

from vivavoce.errors import UsageError


@dataclass(frozen=True, slots=True)
class ErrorLimit:
    """The limit on attempts with an error: a number, or a share such as `5%`; `name` is what a user sets it by.

    Raises:
        UsageError: it is neither.
    """

    text: str
    name: str = "--max-errors"

    def __post_init__(self) -> None:
        number = self.text.removesuffix("%")
        if not number.isdecimal() or (self.text.endswith("%") and int(number) > 100):
            raise UsageError(f"{self.name} is a number or a percentage, such as 3 or 5%; got '{self.text}'")

    def exceeded(self, errors: int, attempts: int) -> bool:
        """Return whether there are more errors than allowed."""
        number = int(self.text.removesuffix("%"))
        return errors * 100 > number * attempts if self.text.endswith("%") else errors > number
