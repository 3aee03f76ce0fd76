"""Whether two arguments mean the same thing, and whether a message mentions it: 1042 and "1042" are one order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from operator import gt, lt

from pydantic import JsonValue

from vivavoce.comparing.json_values import BrokenJson, read_strict_json
from vivavoce.comparing.numbers import (
    Number,
    all_numbers_in,
    canonical,
    exact,
    has_unread,
    read_number,
    states,
)
from vivavoce.comparing.quotes import cuts_word
from vivavoce.comparing.text import FoldedText, fold, is_blank, without_signs


def identity(value: JsonValue) -> str:
    """Return a text that is the same for all values that mean the same thing, at any depth of lists and objects."""
    parts: list[str] = []
    pending: list[JsonValue | _Mark] = [
        value
    ]  # a list instead of recursion: a model may nest deeper than Python can call
    while pending:
        item = pending.pop()
        if isinstance(item, _Mark):
            parts.append(item.text)
        elif isinstance(item, dict):
            pending.append(_Mark("}"))
            for key in sorted(item, reverse=True):
                pending += [item[key], _Mark(f"{json.dumps(key)}:")]
            pending.append(_Mark("{"))
        elif isinstance(item, list):
            pending += [_Mark("]"), *reversed(item), _Mark("[")]
        elif (number := number_of(item)) is not None:
            parts.append(f"={canonical(number)},")
        else:
            parts.append(f"{json.dumps(fold(item) if isinstance(item, str) else item)},")
    return "".join(parts)


class _Mark:
    """A bracket or a key between values."""

    def __init__(self, text: str) -> None:
        self.text = text


def alike(a: JsonValue, b: JsonValue) -> bool:
    """Say whether two values mean the same thing: equal values, texts in any case, a number and its digits as text."""
    return identity(a) == identity(b)


def is_missing(value: JsonValue) -> bool:
    """Say whether a value says nothing, so that two of them are no same thing: null, a blank text, or only these."""
    if isinstance(value, dict | list):
        return all(map(is_missing, value.values() if isinstance(value, dict) else value))
    return value is None or (isinstance(value, str) and is_blank(value))


def may_equal(value: JsonValue, unwanted: JsonValue) -> bool:
    """Say whether a value may be one that must not be: as text or JSON, in quotes, in a list, or as an expression."""
    if alike(value, unwanted) or alike(inside_json(value), inside_json(unwanted)):
        return True
    items = inside_json(value)
    if isinstance(items, list) and not isinstance(inside_json(unwanted), list):
        return any(may_equal(item, unwanted) for item in items)
    if not isinstance(value, str):
        return False
    if (number := number_of(unwanted)) is not None:
        return _is_expression(value) or any(number in readings for readings in _readings(value))
    return isinstance(unwanted, str) and alike(value.strip(QUOTES), unwanted.strip(QUOTES))


QUOTES = " \t\r\n\"'`<>"
"""Signs around a value that are not a part of it."""


def inside_json(value: JsonValue) -> JsonValue:
    """Return what a text holds that is the JSON text of an object, a list, true, or false; else the value itself."""
    if not isinstance(value, str) or value.strip()[:1] not in ("{", "[", "t", "f", "T", "F"):
        return value
    plain = value.strip()
    try:
        read = read_strict_json(plain.lower() if plain.lower() in ("true", "false") else plain)
    except BrokenJson:
        return value
    return value if isinstance(read, str) else read


_MAX_LEVELS = 5
"""Levels of a value in which texts are read as JSON."""


def opened(value: JsonValue, levels: int = _MAX_LEVELS) -> JsonValue:
    """Return a value in which each text that is JSON itself is what it holds, down to a few levels."""
    value = inside_json(value)
    if levels and isinstance(value, dict):
        return {name: opened(item, levels - 1) for name, item in value.items()}
    return [opened(item, levels - 1) for item in value] if levels and isinstance(value, list) else value


def may_be_alike(a: JsonValue, b: JsonValue) -> bool:
    """Say whether two values may mean the same thing: they do, or they are numbers with a reading in common."""
    return alike(a, b) or not _readings_alone(a).isdisjoint(_readings_alone(b))


def _readings_alone(value: JsonValue) -> set[Decimal]:
    """Return what a value that is one number may mean."""
    if number_of(value) is None:
        return set()
    return {reading for readings in _readings(value) for reading in readings}


def number_of(value: JsonValue) -> Decimal | None:
    """Return the number that a value is, as JSON or as text; None for anything else."""
    if isinstance(value, str):
        return read_number(value)
    return None if isinstance(value, bool) or not isinstance(value, int | float) else exact(value)


def lies_above(value: JsonValue, limit: float) -> bool:
    """Say whether a value is surely above a limit: a number, or a text with one number such as "EUR 150.00"."""
    return _surely(value, limit, gt)


def lies_below(value: JsonValue, limit: float) -> bool:
    """Say whether a value is surely below a limit."""
    return _surely(value, limit, lt)


def may_lie_above(value: JsonValue, limit: float) -> bool:
    """Say whether a value may be above a limit: some number in it is, or it is nothing that can be compared."""
    return _possibly(value, limit, gt)


def may_lie_below(value: JsonValue, limit: float) -> bool:
    """Say whether a value may be below a limit: some number in it is, or it is nothing that can be compared."""
    return _possibly(value, limit, lt)


def _surely(value: JsonValue, limit: float, compare: Callable[[Decimal, Decimal], bool]) -> bool:
    numbers = _readings(value)
    if len(numbers) != 1 or (isinstance(value, str) and has_unread(value)):
        return False
    return all(compare(number, exact(limit)) for number in numbers[0])


def _possibly(value: JsonValue, limit: float, compare: Callable[[Decimal, Decimal], bool]) -> bool:
    numbers = _readings(value)
    if not numbers or (isinstance(value, str) and (has_unread(value) or _is_expression(value))):
        return True
    return any(compare(number, exact(limit)) for readings in numbers for number in readings)


def _is_expression(text: str) -> bool:
    """Say whether a text may be a sum or a product, such as `2*300`: what it amounts to is not known."""
    return _OPERATION.search(fold(text)) is not None


_OPERATION = re.compile(
    r"\d\s{0,3}(?:[%€$£¥]|[a-z]{1,4})?\s{0,3}(?:[*×·^/÷+]|x(?=\s{0,3}\d)|-\s{0,3}(?=\d{1,30}\s{0,3}$))\s{0,3}\(?[€$£]?\d"
)
"""A sign of arithmetic between two numbers."""


def _readings(value: JsonValue) -> list[tuple[Decimal, ...]]:
    """Return for each number of a value what it may mean; none for NaN, and for what is neither a number nor a text.

    A number such as `5 million` lies somewhere between its digits and infinity.
    """
    if isinstance(value, str):
        return [_bounds(number) if number.is_scaled else number.readings for number in all_numbers_in(value)]
    number = number_of(value)
    return [] if number is None or number.is_nan() else [(number,)]


def _bounds(number: Number) -> tuple[Decimal, ...]:
    return (*number.readings, Decimal("Infinity").copy_sign(number.value)) if number.value else number.readings


def mentions(text: str, value: JsonValue) -> bool:
    """Return whether a text contains a value as whole words, in any case and encoding; values are texts or numbers.

    It is no part of a longer one: 24 is in 24.00 and not in 24.90, A-17 is not in A-17-B, Ann is not in Ann-Marie.
    """
    if (number := number_of(value)) is not None:
        return states(text, number)
    if not isinstance(value, str) or not (written := value.strip()):
        return False
    for variant in dict.fromkeys((text, without_signs(text))):
        folded = FoldedText(fold(variant))  # so that places in it are those of the folded text
        places = folded.find_all(written, whole=True)
        if any(not cuts_word(folded.text, start) and not cuts_word(folded.text, end) for start, end in places):
            return True
    return False
