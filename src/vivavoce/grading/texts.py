"""What is wrong with a text, in words: it lacks, differs from, or is not, what it should be; empty if nothing is."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from vivavoce.comparing.json_values import read_strict_json
from vivavoce.comparing.numbers import Number, all_numbers_in, is_within, read_number, show_number, states, width_of
from vivavoce.comparing.text import contains, is_blank, same_text
from vivavoce.expressions import expression
from vivavoce.metrics.exact.refusal import find_refusal
from vivavoce.models.json_schema import mismatch

Take = Literal["last", "first"]
"""Which number of a text counts."""
Amount = float | Decimal
_AROUND = 20
"""Characters on each side of a number that a reason quotes."""
_NAMED = 5
"""Numbers of a text that a reason names."""


def lacks(text: str, wanted: str) -> str:
    """Say that a text does not contain another, in any case and encoding."""
    return "" if contains(text, wanted) else f"does not contain {wanted.strip()!r}"


def differs(text: str, wanted: str) -> str:
    """Say that a text is not another in any encoding, except for white space at their ends."""
    if same_text(text, wanted):
        return ""
    near = "; only case or white space differs" if same_text(text, wanted, ignore_case=True) else ""
    return f"is not {wanted.strip()!r}{near}"


def name_answer(text: str) -> str:
    """Say that an answer is empty or a refusal; empty for other answers."""
    if is_blank(text):
        return "the answer is empty"
    return "the assistant refused" if find_refusal(text) is not None else ""


def mismatches(text: str, pattern: str) -> str:
    """Say that a regular expression matches nowhere in a text.

    Raises:
        UsageError: it is none.
        GraderFault: it takes too long.
    """
    return "" if expression(pattern).found_in(text) else f"does not match /{pattern}/"


def misfits(text: str, schema: dict[str, Any]) -> str:
    """Return in words why a text is not strict JSON, or does not fit a schema."""
    try:
        value = read_strict_json(text)
    except ValueError as error:
        return f"is not JSON: {error.__cause__ or error}"
    problem = mismatch(value, schema)
    return "" if problem is None else f"does not fit the schema: {problem}"


def lacks_number(text: str, wanted: Amount, locale: str | None = None) -> str:
    """Say that a text does not state a number, and which numbers it states instead."""
    if states(text, wanted, locale):
        return ""
    others = list(dict.fromkeys(_written(number) for number in all_numbers_in(text, locale)))
    more = ", …" if len(others) > _NAMED else ""
    instead = f"; its numbers are {', '.join(others[:_NAMED])}{more}" if others else "; it contains no number"
    return f"does not contain {show_number(wanted)}{instead}"


def misses(
    text: str,
    wanted: Amount,
    tolerance: Amount = 0,
    relative: Amount = 0,
    take: Take = "last",
    locale: str | None = None,
) -> str:
    """Say that the last or the first number of a text is not the wanted one, within a tolerance or a share of it."""
    numbers = all_numbers_in(text, locale)
    if not numbers:
        return "contains no number"
    number = numbers[0 if take == "first" else -1]
    if not number.is_scaled and is_within(number.value, wanted, tolerance, relative):
        return ""
    expected = f"expected {show_number(wanted)} ± {show_number(width_of(wanted, tolerance, relative))}"
    if len(numbers) == 1:
        return f"the number is {_read_as(number)}, {expected}"
    around = " ".join(text[max(0, number.start - _AROUND) : number.end + _AROUND].split())
    other = "last" if take == "first" else "first"
    hint = f"use `take: {other}` or `contains: {show_number(wanted)}` for another number"
    return f"the {take} number is {_read_as(number)} (in '{around}'), {expected}; {hint}"


def _written(number: Number) -> str:
    """Return a number as the text has it, and say if its value does not count."""
    return f"{number.text}{number.scale} (not read)" if number.is_scaled else number.text


def _read_as(number: Number) -> str:
    """Return a number as the text has it, and how it was read where that is not plain."""
    if number.is_scaled:
        return _written(number)
    written, value = number.text, show_number(number.value)
    if number.ambiguous:
        return f"{written} (read as {value}; `locale` may say otherwise)"
    return written if read_number(written) is not None and written.isascii() else f"{written} (read as {value})"
