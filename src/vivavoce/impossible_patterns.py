"""Regular expressions that no text can match, such as `a^`, `$x`, and `(?!)`, as far as their parts alone tell.

Under a ban they would pass forever. What is not decided here may match: the answer is that it surely does not, or
that nobody knows.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(
    r"(?P<escape>\\(?:[pP]\{[^}]*\}|N\{[^}]*\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.))"
    r"|(?P<set>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])"
    r"|(?P<count>[*+?]|\{\s*\d*\s*(?:,\s*\d*\s*)?\})(?P<greed>[+?]?)"
    r"|(?P<open>\((?:\?(?:P?<[A-Za-z_]\w*>|:|>|=|!|<=|<!|\||[a-zA-Z0-9-]+:?\)?))?)"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_MAX_CHARS = 2_000
"""Characters of a pattern that is looked at."""
_ASSERTIONS = ("b", "B", "A", "Z", "G", "m", "M", "K", "X")
"""Letters that stand for a place after a backslash, or for more than one character."""


class _Part(NamedTuple):
    """What is known of a part of a pattern.

    It consumes at least `least` characters, 2 standing for more. It cannot match at all if it is `impossible`. A part
    with `at_start` matches only at the start of the text, and one with `at_end` only before its last line break, or
    with `at_very_end` at its end. `may_be_break` says whether it may begin with a line break.
    """

    least: int = 0
    impossible: bool = False
    at_start: bool = False
    at_end: bool = False
    at_very_end: bool = False
    may_be_break: bool = True


_NOTHING = _Part()


def is_impossible(pattern: str) -> bool:
    """Return whether no text can match a regular expression, as far as its parts alone tell."""
    if len(pattern) > _MAX_CHARS:
        return False
    try:
        return _Parser(pattern).read().impossible
    except (_UndecidedError, RecursionError):
        return False


class _UndecidedError(Exception):
    """The pattern has a part that is not looked at."""


class _Parser:
    def __init__(self, pattern: str) -> None:
        if re.search(r"\(\?[a-zA-Z0-9]*[xmLa0-9]", pattern) or "(?#" in pattern or "(*" in pattern:
            raise _UndecidedError  # comments, or ^ and $ in the middle of a text
        self._tokens = list(_TOKEN.finditer(pattern))
        self._place = 0

    def read(self) -> _Part:
        part = self._alternatives()
        if self._place < len(self._tokens):
            raise _UndecidedError
        return part

    def _peek(self) -> re.Match[str] | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _alternatives(self) -> _Part:
        branches = [self._sequence()]
        while (token := self._peek()) is not None and token[0] == "|":
            self._place += 1
            branches.append(self._sequence())
        possible = [branch for branch in branches if not branch.impossible]
        if not possible:
            return _Part(impossible=True)
        return _Part(
            least=min(branch.least for branch in possible),
            at_start=all(branch.at_start for branch in possible),
            at_end=all(branch.at_end for branch in possible),
            at_very_end=all(branch.at_very_end for branch in possible),
            may_be_break=any(branch.may_be_break for branch in possible),
        )

    def _sequence(self) -> _Part:
        whole = _Part()
        while (token := self._peek()) is not None and token[0] not in ("|", ")"):
            whole = _joined(whole, self._item())
        return whole

    def _item(self) -> _Part:
        token = self._tokens[self._place]
        self._place += 1
        if token["count"] is not None:
            raise _UndecidedError
        part = self._group(token) if token["open"] is not None else _single(token)
        while (count := self._peek()) is not None and count["count"] is not None:
            self._place += 1
            part = _repeated(part, count["count"])
        return part

    def _group(self, token: re.Match[str]) -> _Part:
        opening = token["open"]
        if opening.endswith(")"):
            return _NOTHING  # flags such as (?i)
        if opening.startswith("(?") and opening[2:3] not in (":", "=", "!", "<", "P", ">", "i", "s", "u"):
            raise _UndecidedError
        start = self._place
        inner = self._alternatives()
        closing = self._peek()
        if closing is None or closing[0] != ")":
            raise _UndecidedError
        is_empty = start == self._place
        self._place += 1
        if opening in ("(?!", "(?<!"):
            return _Part(impossible=is_empty)
        if opening in ("(?=", "(?<="):
            return _Part(impossible=inner.impossible)
        return inner


def _single(token: re.Match[str]) -> _Part:
    text = token[0]
    if text in ("^", "\\A"):
        return _Part(at_start=True)
    if text == "$":
        return _Part(at_end=True)
    if text in ("\\Z", "\\z"):
        return _Part(at_end=True, at_very_end=True)
    if text in ("\\b", "\\B"):
        return _NOTHING
    if text.startswith("\\") and (text[1:2] in _ASSERTIONS or text[1:2].isdigit()):
        raise _UndecidedError
    if text.startswith("["):
        if "--" in text or "&&" in text or "||" in text or "~~" in text:
            raise _UndecidedError
        return _Part(least=1, may_be_break=_matches(text, "\n"))
    return _Part(least=1, may_be_break=_matches(text, "\n") or text == ".")


def _joined(before: _Part, after: _Part) -> _Part:
    """Return what is known of a part that comes right after another."""
    least = min(before.least + after.least, 2)
    past_end = before.at_end and (after.least > 1 or (after.least == 1 and not after.may_be_break))
    impossible = (
        before.impossible
        or after.impossible
        or (before.least > 0 and after.at_start)
        or past_end
        or (before.at_very_end and after.least > 0)
    )
    if before.at_end and after.least:
        return _Part(least=2, impossible=impossible, at_start=before.at_start, at_end=True, at_very_end=True)
    return _Part(
        least=least,
        impossible=impossible,
        at_start=before.at_start or (after.at_start and not before.least),
        at_end=before.at_end or after.at_end,
        at_very_end=before.at_very_end or after.at_very_end,
        may_be_break=before.may_be_break if before.least else after.may_be_break or not after.least,
    )


def _repeated(part: _Part, count: str) -> _Part:
    plain = "".join(count.split())
    least = {"*": 0, "?": 0, "+": 1}.get(plain)
    if least is None:
        low = plain.strip("{}").partition(",")[0]
        least = int(low) if low else 0
    if not least:
        return _NOTHING
    again = part.least > 0 and least > 1 and (part.at_start or part.at_end)
    return part._replace(least=min(part.least * least, 2), impossible=part.impossible or again)


@lru_cache(maxsize=1024)
def _matches(token: str, character: str) -> bool:
    import regex

    try:
        return regex.fullmatch(token, character) is not None
    except regex.error:
        raise _UndecidedError from None
