"""Whether two arguments mean the same thing, and whether a message mentions it: 1042 and "1042" are one order."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from operator import gt, lt

from pydantic import JsonValue

from vivavoce.comparing.numbers import (
    Number,
    all_numbers_in,
    canonical,
    exact,
    has_unread,
    is_inside_code,
    read_number,
    states,
)
from vivavoce.comparing.text import FoldedText, fold, without_signs


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
    if not numbers or (isinstance(value, str) and has_unread(value)):
        return True
    return any(compare(number, exact(limit)) for readings in numbers for number in readings)


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

    A number or a code is not a part of a longer one: 24 is in 24.00 and not in 24.90, A-17 is not in A-17-B.
    """
    if (number := number_of(value)) is not None:
        return states(text, number)
    if not isinstance(value, str) or not (written := value.strip()):
        return False
    has_digit = any(map(str.isdigit, written))
    for variant in dict.fromkeys((text, without_signs(text))):
        folded = FoldedText(fold(variant))  # so that places in it are those of the folded text
        places = folded.find_all(written, whole=True)
        if any(not has_digit or not is_inside_code(folded.text, start, end) for start, end in places):
            return True
    return False
