"""Regular expressions of the user on untrusted texts: a search that takes too long is stopped.

The standard library's cannot be interrupted: one hostile reply would block the whole program forever.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from vivavoce.errors import GraderFault, UsageError
from vivavoce.impossible_patterns import is_impossible
from vivavoce.lazy_names import lazy
from vivavoce.work_time import counted_work

if TYPE_CHECKING:
    from vivavoce.search_process import SearchKind

SECONDS = 5.0
"""The time that one search may take."""

MAX_PATTERN_CHARS = 10_000
"""Characters of a pattern: to compile a longer one takes too long, and that cannot be stopped."""

MAX_REPEATED_PARTS = 100_000
"""Parts of a pattern, with those that a count such as `{1000}` repeats: the compiler writes each of them out."""

MAX_INTERRUPTIBLE_CHARS = 500
"""Characters of a pattern that this process searches for; for a longer one, a process does that can be killed."""

MAX_INTERRUPTIBLE_PRODUCT = 2_000_000
"""Characters of a pattern times those of a text that this process searches; beyond, a process does that can be killed.

The library looks at the time after 256 steps, each of which may compare the whole pattern at each character."""

_AT_ONCE = 0.005
"""The time that a search may take before other threads are let in; to let them in costs more than most searches."""
_REPEATED = 2_000
_MAX_REPEATED_CHARACTERS = 100
_PROMPT = 0.5
_COUNT = re.compile(r"\{\s*(\d+)")
_COMMENTS = re.compile(r"\(\?(?:#|[a-zA-Z0-9]*x)")
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\s*(?P<count>\d+)[^}]*\}|.", re.DOTALL)
_QUOTED = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""What stands for itself in a pattern: escaped characters and sets."""
_FOREIGN = re.compile(
    r"\(\?(?:R|[+-]?\d+|&|P>|r\))|\(\?[a-zA-Z]*r[a-zA-Z]*[:)]"
    r"|\{\s*(?:\d+\s*<=?\s*)?\d*\s*[eids]\s*(?:<=?\s*\d+\s*)?[,+:}]"
)
"""Recursion, a search from the end, and approximate matches, which only the library has: they need much memory."""
_UNLIKE = ("", "a", "Z9 _-", "\u2603", "0\n")
"""Texts with nothing in common."""


class Expression:
    """A regular expression, in the syntax of Python's `re`; `shown` is what errors quote in its place.

    Raises:
        UsageError: the text is not a regular expression.
    """

    def __init__(self, text: str, shown: str | None = None) -> None:
        import regex

        if len(shown or text) > MAX_PATTERN_CHARS:
            size = f"{len(shown or text):,} characters, at most {MAX_PATTERN_CHARS:,} allowed"
            raise UsageError(f"the regular expression '{(shown or text)[:40]}…' has {size}")
        if repeated_parts(text) > MAX_REPEATED_PARTS:
            size = f"more than {MAX_REPEATED_PARTS:,} parts after its counts such as {{1000}} are written out"
            raise UsageError(f"the regular expression '{(shown or text)[:40]}' has {size}")
        self.text = text if shown is None else shown
        if _FOREIGN.search(_QUOTED.sub("", text)):
            what = "recursion, a reversed search, or approximate matches"
            raise UsageError(f"'{self.text}' is not a regular expression: it has {what}, which are not supported")
        try:
            with counted_work(UsageError):
                self._pattern: Any = regex.compile(text)
        except UsageError:
            raise
        except MemoryError:
            raise UsageError(f"the regular expression '{self.text[:40]}' needs more memory than there is") from None
        except Exception as error:  # the compiler raises many kinds: regex.error, ValueError for flags, OverflowError
            raise UsageError(f"'{self.text}' is not a regular expression: {error}") from error
        self.groups: int = self._pattern.groups

    def found_in(self, text: str) -> bool:
        """Say whether it matches anywhere.

        Raises:
            GraderFault: the search takes too long.
        """
        return bool(self._searched("search", text))

    def fits(self, text: str) -> bool:
        """Say whether it matches the whole text.

        Raises:
            GraderFault: the search takes too long.
        """
        return bool(self._searched("fullmatch", text))

    def matches(self, text: str, group: int = 0) -> list[str]:
        """Return what it finds, from left to right: the whole match, or a group of it.

        Raises:
            GraderFault: the search takes too long.
        """
        return self._searched("finditer", text, group)

    @property
    def matches_everything(self) -> bool:
        """Whether it matches texts that have nothing in common, each found in time."""
        try:
            return all(self._run("search", text, _PROMPT) for text in _UNLIKE)
        except TimeoutError:
            return False

    @property
    def impossibility(self) -> str | None:
        """Why it can match no text, as far as its parts alone tell; None where it may match one."""
        if is_impossible(self.text):
            return "can match no text, so it forbids nothing"
        if "\b" in self.text:
            return "has a backspace in it; write \\\\b in JSON and in double quotes for the end of a word"
        return None

    def mistake(self) -> str | None:
        """Return why it is of no use to tell texts apart, None if nothing is wrong with it.

        It matches no text or every text, or on a text that repeats one of its own characters it takes far longer than
        it should.
        """
        if (impossibility := self.impossibility) is not None:
            return impossibility
        repeated = dict.fromkeys((*filter(str.isprintable, self.text), "a", "0", " "))
        try:
            for character in list(repeated)[:_MAX_REPEATED_CHARACTERS]:
                with counted_work(UsageError):
                    self._run("search", character * _REPEATED + "\x00", _PROMPT)
            matches_all = all(self._run("search", text, _PROMPT) for text in _UNLIKE)
        except TimeoutError:
            return "may backtrack catastrophically; avoid nested quantifiers"
        if matches_all:
            return "matches every text, so it cannot fail"
        return None

    def _searched(self, kind: SearchKind, text: str, group: int = 0) -> Any:
        """Search, and turn a search that takes too long or needs too much memory into an error of the score."""
        try:
            with counted_work():
                return self._run(kind, text, SECONDS, group)
        except TimeoutError as error:
            raise GraderFault(f"/{self.text}/ took longer than {SECONDS:g} s on this text", kind="timeout") from error
        except MemoryError as error:
            raise GraderFault(f"/{self.text}/ needs too much memory on this text", kind="limit") from error

    def _run(self, kind: SearchKind, text: str, seconds: float, group: int = 0) -> Any:
        """Return whether the expression matches, or all texts of a group, within some seconds.

        Raises:
            TimeoutError: it takes longer.
            MemoryError: it needs too much memory.
        """
        source = self._pattern.pattern
        if len(source) > MAX_INTERRUPTIBLE_CHARS or len(source) * len(text) > MAX_INTERRUPTIBLE_PRODUCT:
            return lazy("vivavoce.search_process:search_in_process")(source, kind, text, group, seconds)

        def search(**how: Any) -> Any:
            if kind == "finditer":
                return [match.group(group) or "" for match in self._pattern.finditer(text, **how)]
            return getattr(self._pattern, kind)(text, **how) is not None

        with suppress(TimeoutError):  # it goes on below, and lets other threads in
            return search(timeout=min(seconds, _AT_ONCE), concurrent=False)
        return search(timeout=seconds)


def repeated_parts(pattern: str) -> int:
    """Return at least as many parts as a pattern has once its counts are written out."""
    counts = [int(count[:9]) for count in _COUNT.findall(pattern)]
    if not counts or _COMMENTS.search(pattern):  # a bracket in a comment is not a set: only the compiler can tell
        return len(pattern) * prod(max(count, 1) for count in counts)
    totals, part = [0], 0  # the parts in each open group, and those of the last part, which a count would repeat
    for token in _PARTS.finditer(pattern):
        if token["count"]:
            part *= max(int(token["count"][:9]), 1)
        elif token[0] == ")" and len(totals) > 1:
            part += totals.pop()
        else:
            totals[-1] += part
            part = 1
            if token[0] == "(":
                totals.append(0)
    return sum(totals) + part


@lru_cache(maxsize=512)
def expression(text: str) -> Expression:
    """Return the expression of a text, made once."""
    return Expression(text)


@lru_cache(maxsize=4096)
def telling_expression(text: str) -> Expression:
    """Return the expression of a text that some texts match and others do not.

    Raises:
        UsageError: it is not a regular expression, matches no text, or matches every text.
    """
    found = expression(text)
    if (impossibility := found.impossibility) is not None:
        raise UsageError(f"/{text}/ {impossibility}")
    if found.matches_everything:
        raise UsageError(f"/{text}/ matches every text; write an expression that needs at least one character")
    return found


@lru_cache(maxsize=4096)
def check_expression(text: str) -> str:
    """Return the text of a regular expression that can match, can fail to match, and takes its time for neither.

    Raises:
        ValueError: it is not one.
    """
    try:
        mistake = expression(text).mistake()
    except UsageError as error:
        raise ValueError(str(error)) from error
    if mistake is not None:
        raise ValueError(f"/{text}/ {mistake}")
    return text
