"""Regular expressions of the user on untrusted texts: a search that takes too long is stopped.

The standard library's cannot be interrupted: one hostile reply would block the whole program forever.

An expression that no text can match, such as `a^`, `$x`, or `(?!)`, is named as far as its parts alone tell, because
under a ban it would pass forever. One that is not decided here may match.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from vivavoce.errors import GraderFault, UsageError
from vivavoce.lazy_names import lazy
from vivavoce.work_time import counted_work

if TYPE_CHECKING:
    from vivavoce.search_process import SearchKind


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
            whole = _join_parts(whole, self._item())
        return whole

    def _item(self) -> _Part:
        token = self._tokens[self._place]
        self._place += 1
        if token["count"] is not None:
            raise _UndecidedError
        part = self._group(token) if token["open"] is not None else _single(token)
        while (count := self._peek()) is not None and count["count"] is not None:
            self._place += 1
            part = _repeat_part(part, count["count"])
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


def _join_parts(before: _Part, after: _Part) -> _Part:
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


def _repeat_part(part: _Part, count: str) -> _Part:
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

_UNSHARED_SECONDS = 0.005
"""The time that a search may take before other threads are let in; to let them in costs more than most searches."""
_TEST_CHARS = 2_000
_MAX_REPEATED_CHARACTERS = 100
_PROMPT = 0.5
_COUNT = re.compile(r"\{\s*(\d+)")
_COMMENTS = re.compile(r"\(\?(?:#|[a-zA-Z0-9]*x)")
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\s*(?P<count>\d+)[^}]*\}|.", re.DOTALL)
_LITERALS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""What stands for itself in a pattern: escaped characters and sets."""
_FOREIGN = re.compile(
    r"\(\?(?:R|[+-]?\d+|&|P>|r\))|\(\?[a-zA-Z]*r[a-zA-Z]*[:)]"
    r"|\{\s*(?:\d+\s*<=?\s*)?\d*\s*[eids]\s*(?:<=?\s*\d+\s*)?[,+:}]"
)
"""Recursion, a search from the end, and approximate matches, which only the library has: they need much memory."""
_UNLIKE = ("", "a", "Z9 _-", "\u2603", "0\n")
"""Texts with nothing in common."""


class Expression:
    """A regular expression, in the syntax of Python's `re`; `display_text` is what errors quote in its place.

    Raises:
        UsageError: the text is not a regular expression.
    """

    def __init__(self, text: str, display_text: str | None = None) -> None:
        import regex

        if len(display_text or text) > MAX_PATTERN_CHARS:
            size = f"{len(display_text or text):,} characters, at most {MAX_PATTERN_CHARS:,} allowed"
            raise UsageError(f"the regular expression '{(display_text or text)[:40]}…' has {size}")
        if repeated_parts(text) > MAX_REPEATED_PARTS:
            size = f"more than {MAX_REPEATED_PARTS:,} parts after its counts such as {{1000}} are written out"
            raise UsageError(f"the regular expression '{(display_text or text)[:40]}' has {size}")
        self.text = text if display_text is None else display_text
        if _FOREIGN.search(_LITERALS.sub("", text)):
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
        return bool(self._search("search", text))

    def fits(self, text: str) -> bool:
        """Say whether it matches the whole text.

        Raises:
            GraderFault: the search takes too long.
        """
        return bool(self._search("fullmatch", text))

    def matches(self, text: str, group: int = 0) -> list[str]:
        """Return what it finds, from left to right: the whole match, or a group of it.

        Raises:
            GraderFault: the search takes too long.
        """
        return self._search("finditer", text, group)

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
                    self._run("search", character * _TEST_CHARS + "\x00", _PROMPT)
            matches_all = all(self._run("search", text, _PROMPT) for text in _UNLIKE)
        except TimeoutError:
            return "may backtrack catastrophically; avoid nested quantifiers"
        if matches_all:
            return "matches every text, so it cannot fail"
        return None

    def _search(self, kind: SearchKind, text: str, group: int = 0) -> Any:
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
            return search(timeout=min(seconds, _UNSHARED_SECONDS), concurrent=False)
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
    pattern = expression(text)
    if (impossibility := pattern.impossibility) is not None:
        raise UsageError(f"/{text}/ {impossibility}")
    if pattern.matches_everything:
        raise UsageError(f"/{text}/ matches every text; write an expression that needs at least one character")
    return pattern


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
