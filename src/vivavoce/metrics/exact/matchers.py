"""Ways to compare one argument of a tool call with the expected value.

The set is closed. A value of another type than a matcher is made for is compared exactly, so that every matcher but
`regex` accepts a value that equals the expected one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Protocol, cast

from pydantic import JsonValue

from vivavoce.comparing.json_values import json_key, same_json
from vivavoce.comparing.numbers import exact, is_within
from vivavoce.comparing.similarity import similarity
from vivavoce.comparing.text import same_text
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.expressions import expression


class Matcher(Protocol):
    """Compares one argument; `alone` says that it needs no expected value."""

    alone: ClassVar[bool]

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Say whether the actual value matches."""
        ...

    def describe(self, expected: str) -> str:
        """Return what is expected, in words; `expected` is the expected value as text."""
        ...


@dataclass(frozen=True, slots=True)
class Exact:
    """`exact`: the same value of the same type."""

    alone: ClassVar[bool] = False

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Compare the values as JSON."""
        return same_json(actual, expected)

    def describe(self, expected: str) -> str:
        """Say the value."""
        return expected


@dataclass(frozen=True, slots=True)
class Subset:
    """`subset`: an object with at least the expected keys, at every depth; whatever else it has is free.

    A list has as many items as expected, each compared likewise; other values are compared exactly.
    """

    alone: ClassVar[bool] = False

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Look for each expected key."""
        return includes(actual, expected, same_json)

    def describe(self, expected: str) -> str:
        """Say the value."""
        return expected


def includes(actual: JsonValue, expected: JsonValue, same: Callable[[JsonValue, JsonValue], bool]) -> bool:
    """Say whether a value has all that is expected, at every depth; `same` compares what is not an object or list."""
    pending = [(actual, expected)]  # a list instead of recursion, as in `same_json`
    while pending:
        a, b = pending.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if not b.keys() <= a.keys():
                return False
            pending += [(a[key], value) for key, value in b.items()]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pending += zip(a, b, strict=True)
        elif not same(a, b):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Casefold:
    """`casefold`: the same text in any case and encoding."""

    alone: ClassVar[bool] = False

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Compare texts in any case and encoding."""
        if isinstance(actual, str) and isinstance(expected, str):
            return same_text(actual, expected, ignore_case=True)
        return same_json(actual, expected)

    def describe(self, expected: str) -> str:
        """Say the value and that case is free."""
        return f"{expected} in any case"


@dataclass(frozen=True, slots=True)
class Unordered:
    """`unordered`: a list with the same items, as often, in any order; the items themselves are compared exactly."""

    alone: ClassVar[bool] = False

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Compare lists as multisets."""
        if not (isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected)):
            return same_json(actual, expected)
        return Counter(map(json_key, actual)) == Counter(map(json_key, expected))

    def describe(self, expected: str) -> str:
        """Say the list and that its order is free."""
        return f"{expected} in any order"


@dataclass(frozen=True, slots=True)
class Fuzzy:
    """`{fuzzy: 0.8}`: a text at least that similar.

    The similarity is 1 − (insertions + deletions) / (length of both), between 0 and 1; case counts.
    """

    at_least: float
    alone: ClassVar[bool] = False

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Compare texts by their similarity."""
        if isinstance(actual, str) and isinstance(expected, str):
            return similarity(actual, expected) >= self.at_least
        return same_json(actual, expected)

    def describe(self, expected: str) -> str:
        """Say the text and how close it must be."""
        return f"text at least {self.at_least:g} similar to {expected}"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """`{tolerance: 0.01}`: a number at most that far away, counted in decimals, so that 1.1 is 0.1 away from 1."""

    amount: Decimal
    alone: ClassVar[bool] = False

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Compare numbers by their distance."""
        if isinstance(actual, int | float) and isinstance(expected, int | float) and _is_number(actual, expected):
            return is_within(actual, expected, self.amount)
        return same_json(actual, expected)

    def describe(self, expected: str) -> str:
        """Say the number and how close it must be."""
        return f"{expected} ± {self.amount}"


@dataclass(frozen=True, slots=True)
class Regex:
    """`{regex: "…"}`: a text that matches as a whole, whatever the reference says.

    It is demanded where the reference has the argument at all, and checked wherever the actual call has it.
    """

    pattern: str
    alone: ClassVar[bool] = True

    def agrees(self, actual: JsonValue, expected: JsonValue) -> bool:
        """Match the whole of the actual text."""
        return isinstance(actual, str) and expression(self.pattern).fits(actual)

    def describe(self, expected: str) -> str:
        """Say the pattern."""
        return f"text matching /{self.pattern}/"


EXACT = Exact()
SUBSET = Subset()
_plain: Mapping[str, Matcher] = {"exact": EXACT, "subset": SUBSET, "casefold": Casefold(), "unordered": Unordered()}


def read_matcher(spec: object, where: str) -> Matcher:
    """Read `exact`, `subset`, `casefold`, `unordered`, `{fuzzy: 0.8}`, `{tolerance: 0.01}` or `{regex: "…"}`.

    `where` is put before the text of an error.

    Raises:
        UsageError: no such matcher, or its value is out of range.
    """
    if isinstance(spec, str):
        if spec in _plain:
            return _plain[spec]
        if spec in _with_value:
            raise UsageError(f"{where}: {spec} needs a value, as in {{{spec}: …}}")
        raise UsageError(f"{where}: no matcher '{spec}'{did_you_mean(spec, ['ignore', *_plain, *_with_value])}")
    if not isinstance(spec, Mapping) or len(cast("Mapping[object, object]", spec)) != 1:
        raise UsageError(f"{where}: a matcher is a name, or one name with its value, got {spec!r}")
    [(name, value)] = cast("Mapping[object, object]", spec).items()
    if not isinstance(name, str) or name not in _with_value:
        raise UsageError(f"{where}: no matcher '{name}' with a value{did_you_mean(str(name), _with_value)}")
    return _with_value[name](value, f"{where}.{name}")


def _read_fuzzy(value: object, where: str) -> Matcher:
    if not (isinstance(value, int | float) and _is_number(value) and 0 < value <= 1):
        raise UsageError(f"{where}: a similarity is above 0 and at most 1, got {value!r}")
    return Fuzzy(float(value))


def _read_tolerance(value: object, where: str) -> Matcher:
    if not (isinstance(value, int | float) and _is_number(value) and 0 <= value < float("inf")):
        raise UsageError(f"{where}: a tolerance is a number of at least 0, got {value!r}")
    return Tolerance(exact(value))


def _read_regex(value: object, where: str) -> Matcher:
    if not isinstance(value, str):
        raise UsageError(f"{where}: a regular expression is text, got {value!r}")
    try:
        expression(value)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    return Regex(value)


_with_value: Mapping[str, Callable[[object, str], Matcher]] = {
    "fuzzy": _read_fuzzy,
    "tolerance": _read_tolerance,
    "regex": _read_regex,
}


def _is_number(*values: object) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
