"""What a call may be about: its name and its arguments in every way to read them, which a ban has to assume.

Names of tools and arguments have many spellings (`order_id`, `orderId`, `Order ID`), and a model may write an object
as JSON text, in a code fence, encoded twice, cut off, in a list, or one level too deep.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pydantic import JsonValue

from vivavoce.comparing.numbers import is_within
from vivavoce.comparing.text import fold
from vivavoce.metrics.exact.arguments import (
    ArgumentRule,
    Arguments,
    Exact,
    Fuzzy,
    Matcher,
    Regex,
    Subset,
    Tolerance,
    WantedPart,
)
from vivavoce.metrics.rules.sameness import (
    Meanings,
    is_missing,
    leaves_of,
    may_be_alike,
    may_match_whole,
    number_readings,
    open_value,
)
from vivavoce.records.agents import key_of

_WRAPPERS = frozenset(("args", "arguments", "input", "kwargs", "params", "parameters", "payload"))
"""Arguments in which a model may put all of them."""
_NAMESPACE = re.compile(r"[.:/]|__")
"""What stands between the name of a tool and where it comes from: `functions.pay`, `mcp__bank__pay`."""
_STATES_FIELDS = re.compile(r"[{\[=:]")
"""What a text has that may hold named values."""
_MAX_LEVELS = 50
"""Levels at which values are compared; deeper ones may be anything."""


@lru_cache(maxsize=4096)
def spellings_of(tool: str) -> frozenset[str]:
    """Return what the spellings of the name of a tool share, with and without where it comes from."""
    return frozenset((fold(tool), key_of(tool), key_of(_NAMESPACE.split(tool)[-1] or tool)))


def may_name(tool: str, name: str) -> bool:
    """Return whether a call of a tool may be one of the tool of that name."""
    return not spellings_of(tool).isdisjoint(names_of(name))


@lru_cache(maxsize=4096)
def names_of(tool: str) -> frozenset[str]:
    """Return the spellings of a tool's name: a call by any of them may be of this tool."""
    return frozenset((fold(tool), key_of(tool)))


class Possible(NamedTuple):
    """What may be at a path; with `is_unread`, it may be anything, because a text on the way cannot be read."""

    values: Sequence[JsonValue]
    is_unread: bool = False


class PossibleArguments:
    """The arguments of a call, looked up in every spelling of their names."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments: JsonValue = dict(arguments)
        self._keys: dict[int, Mapping[str, Sequence[str]]] = {}
        self._opened: list[JsonValue] = []  # so that no other value gets the id of one of them
        self._known: dict[str, Possible] = {}
        self._meanings: dict[str, Sequence[Meanings]] = {}

    def at(self, path: str) -> Possible:
        """Return what may be at a path: in the items of a list, in JSON text, or in an object of all arguments, too."""
        if path not in self._known:
            self._known[path] = self._find(path)
        return self._known[path]

    def meanings_at(self, path: str) -> Sequence[Meanings]:
        """Return the values that may be at a path, each in every way to read it."""
        if path not in self._meanings:
            self._meanings[path] = [Meanings(value) for value in self.at(path).values]
        return self._meanings[path]

    def _find(self, path: str) -> Possible:
        words = path.split(".")
        possible = self._look_up(self._arguments, words)
        if possible.values or possible.is_unread or not isinstance(self._arguments, dict):
            return possible
        wrapped = [self._look_up(value, words) for name, value in self._arguments.items() if name.lower() in _WRAPPERS]
        return Possible([value for part in wrapped for value in part.values], any(part.is_unread for part in wrapped))

    def other_than(self, names: Iterable[str]) -> Iterator[JsonValue]:
        """Yield the arguments that none of some paths may lead to."""
        known = {key_of(name.split(".")[0]) for name in names}
        if isinstance(self._arguments, dict):
            yield from (value for name, value in self._arguments.items() if key_of(name) not in known)

    def _look_up(self, start: JsonValue, words: Sequence[str]) -> Possible:
        values: list[JsonValue] = []
        is_unread = False
        pending, seen = [(start, 0)], set[tuple[int, int]]()
        while pending:
            value, place = pending.pop()
            if place == len(words):
                values.append(value)
                continue
            if isinstance(value, str):
                value, is_broken = open_value(value)
                self._opened.append(value)
                is_unread = is_unread or _may_have_any_fields(value, is_broken)
            if not isinstance(value, dict | list) or (id(value), place) in seen:
                continue
            seen.add((id(value), place))
            if isinstance(value, dict):
                pending += [(value[key], end) for end, key in self._steps(value, words, place)]
            else:
                word = words[place]
                if word.isascii() and word.isdecimal() and len(word) < 10 and int(word) < len(value):
                    pending.append((value[int(word)], place + 1))
                pending += [(item, place) for item in value]
        return Possible(values, is_unread)

    def _steps(self, value: dict[str, JsonValue], words: Sequence[str], place: int) -> Iterator[tuple[int, str]]:
        """Yield the keys of an object that may be the next words of a path, each with the place after them."""
        spellings = self._spellings(value)
        longest, name = max(map(len, spellings), default=0), ""
        for end in range(place + 1, len(words) + 1):
            name += key_of(words[end - 1])
            if len(name) > longest:
                return
            yield from ((end, key) for key in spellings.get(name, ()))

    def _spellings(self, value: dict[str, JsonValue]) -> Mapping[str, Sequence[str]]:
        if id(value) not in self._keys:
            spellings = defaultdict[str, list[str]](list)
            for key in value:
                spellings[key_of(key)].append(key)
            self._keys[id(value)] = spellings
        return self._keys[id(value)]


class BannedArguments:
    """The arguments of a banned call, and a rule that says which of them count, and how.

    With the rule `exact`, a call with further arguments is another call.
    """

    def __init__(self, banned: Arguments, rule: ArgumentRule) -> None:
        self._parts = [(part, Meanings(part.wanted)) for part in rule.parts_of(banned)]
        self._is_exact = rule.others == "exact"
        self._named = (*banned, *rule.named, *rule.ignored)

    def may_be(self, possible: PossibleArguments) -> bool:
        """Return whether a call may have these arguments."""
        if not all(self._may_agree(possible, part, wanted) for part, wanted in self._parts):
            return False
        return not self._is_exact or all(map(is_missing, possible.other_than(self._named)))

    def _may_agree(self, possible: PossibleArguments, part: WantedPart, wanted: Meanings) -> bool:
        there = possible.at(part.path)
        if there.is_unread:
            return True
        if isinstance(part.matcher, Exact | Subset) and wanted.is_plain:
            return any(value.may_be(wanted) for value in possible.meanings_at(part.path))
        return any(_may_agree(part.matcher, value, part.wanted) for value in there.values)


def _may_agree(matcher: Matcher, value: JsonValue, wanted: JsonValue) -> bool:
    """Return whether a value may match."""
    if isinstance(matcher, Regex):
        return may_match_whole(value, matcher.pattern)
    if may_include(value, wanted):
        return True
    if isinstance(matcher, Tolerance) and isinstance(wanted, int | float):
        return any(is_within(number, wanted, matcher.amount) for number in number_readings(value))
    return isinstance(matcher, Fuzzy) and any(matcher.agrees(leaf, wanted) for leaf, _ in leaves_of(value))


def may_include(actual: JsonValue, banned: JsonValue, level: int = 0) -> bool:
    """Return whether a value may be, or may have in it, all of a value that must not be there."""
    banned = open_value(banned)[0]
    if level > _MAX_LEVELS:
        return True
    if isinstance(banned, dict) and banned:
        value, is_broken = open_value(actual)
        if not isinstance(value, dict | list):
            return _may_have_any_fields(value, is_broken) or may_be_alike(actual, banned)
        holders = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
        return any(_may_have_fields(holder, banned, level) for holder in holders)
    if isinstance(banned, list) and banned:
        value, is_broken = open_value(actual)
        items = value if isinstance(value, list) else [value]
        return is_broken or all(any(may_include(item, part, level + 1) for item in items) for part in banned)
    return may_be_alike(actual, banned)


def _may_have_fields(actual: dict[str, JsonValue], banned: dict[str, JsonValue], level: int) -> bool:
    possible = PossibleArguments(actual)
    for name, wanted in banned.items():
        there = possible.at(name)
        if not there.is_unread and not any(may_include(value, wanted, level + 1) for value in there.values):
            return False
    return True


def _may_have_any_fields(value: JsonValue, is_broken: bool) -> bool:
    """Return whether a value is a text in which there may be named values that nobody can read."""
    return isinstance(value, str) and (is_broken or _STATES_FIELDS.search(value) is not None)
