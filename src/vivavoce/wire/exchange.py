"""What one exchange of HTTP brings: what came back, or at which stage it broke."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Stage = Literal["connect", "tls", "silence", "answer", "format"]
"""No connection; none that is secure; one that ended without a word; one that ended within the answer; an answer that
is not HTTP."""


class Broken(Exception):
    """There is no whole answer; `stage` says how far the exchange came."""

    def __init__(self, what: str, stage: Stage) -> None:
        super().__init__(what)
        self.stage: Stage = stage


@dataclass(slots=True)
class Response:
    """What a server sent; the body is unpacked, and `cut` where it was larger than allowed and reading stopped.

    The names of the headers are in small letters.
    """

    status: int = 0
    reason: str = ""
    headers: dict[str, list[str]] = field(default_factory=lambda: {})
    body: bytes = b""
    cut: bool = False

    def header(self, name: str) -> str | None:
        """Return the first value of a header, None where it was not sent."""
        return next(iter(self.all_of(name)), None)

    def all_of(self, name: str) -> list[str]:
        """Return every value of a header, in the order they were sent."""
        return self.headers.get(name.lower(), [])

    def tokens(self, name: str) -> list[str]:
        """Return the words of a header that is a list of them, in small letters."""
        return [word for value in self.all_of(name) for one in value.lower().split(",") if (word := one.strip())]
