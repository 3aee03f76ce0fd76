"""Regular expressions of the user on untrusted texts: a search that takes too long is stopped.

The standard library's cannot be interrupted: one hostile reply would block the whole program for ever.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from vivavoce.errors import GraderFault, UsageError

SECONDS = 5.0
"""The time that one search may take."""


class Expression:
    """A regular expression, in the syntax of Python's `re`.

    Raises:
        UsageError: the text is not a regular expression.
    """

    def __init__(self, text: str) -> None:
        import regex

        self.text = text
        try:
            self._pattern: Any = regex.compile(text)
        except regex.error as error:
            raise UsageError(f"'{text}' is not a regular expression: {error}") from error
        self.groups: int = self._pattern.groups

    def found_in(self, text: str) -> bool:
        """Say whether it matches anywhere.

        Raises:
            GraderFault: the search takes too long.
        """
        return bool(self._timed(self._pattern.search, text))

    def fits(self, text: str) -> bool:
        """Say whether it matches the whole text.

        Raises:
            GraderFault: the search takes too long.
        """
        return bool(self._timed(self._pattern.fullmatch, text))

    def matches(self, text: str, group: int = 0) -> list[str]:
        """Return what it finds, from left to right: the whole match, or a group of it.

        Raises:
            GraderFault: the search takes too long.
        """

        def search(text: str, timeout: float) -> list[str]:
            return [match.group(group) or "" for match in self._pattern.finditer(text, timeout=timeout)]

        return self._timed(search, text)

    def _timed(self, search: Any, text: str) -> Any:
        try:
            return search(text, timeout=SECONDS)
        except TimeoutError as error:
            raise GraderFault(f"/{self.text}/ took longer than {SECONDS:g} s on this text", kind="timeout") from error


@lru_cache(maxsize=512)
def expression(text: str) -> Expression:
    """Return the expression of a text, made once."""
    return Expression(text)
