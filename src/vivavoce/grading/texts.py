"""What is wrong with a text, in words: it lacks, differs from, or is not, what it should be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from vivavoce.comparing.json_values import BrokenJson, decode_exact_from, read_strict_json, same_json
from vivavoce.comparing.numbers import (
    Number,
    all_numbers_in,
    exact,
    find_amount,
    has_other_words,
    is_within,
    may_state,
    read_number,
    show_number,
    states,
    width_of,
)
from vivavoce.comparing.quotes import without_markup
from vivavoce.comparing.text import (
    FoldedText,
    GuardedText,
    contains,
    fold,
    fold_encoding,
    is_blank,
    same_text,
    split_words,
)
from vivavoce.metrics.exact.arguments import show
from vivavoce.metrics.exact.refusal import find_refusal
from vivavoce.models.json_schema import mismatch
from vivavoce.safe_regex import expression

_MAX_ATTEMPTS = 1000
"""Places in a text where an object is looked for: a text of braces alone must not take forever."""


Take = Literal["last", "first"]
"""Which number of a text counts."""
Amount = float | Decimal
Distance = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
"""How far a number may be from another one."""


def differs_as_json(text: str, wanted: JsonValue) -> str:
    """Return how an answer differs from a JSON value, in words; empty where it is that value and nothing else."""
    try:
        value = read_strict_json(text.strip())
    except BrokenJson as error:
        fenced = "; it stands in a code fence" if text.strip().startswith("```") else ""
        return f"is not JSON, and is compared with {show(wanted)}: {error}{fenced}"
    return "" if same_json(value, wanted) else f"is the JSON value {show(value)}, not {show(wanted)}"


def lacks_json(text: str, wanted: JsonValue) -> str:
    """Return that a text has no object or list in it that is the wanted one, in words; empty where it has one."""
    if any(same_json(value, wanted) for value in _values_in(text, "{" if isinstance(wanted, dict) else "[")):
        return ""
    return f"does not contain the JSON value {show(wanted)}"


def _values_in(text: str, bracket: str) -> Iterator[JsonValue]:
    """Yield the values that begin with a bracket, also those inside of others, as far as they are strict JSON."""
    place = -1
    for _ in range(_MAX_ATTEMPTS):
        place = text.find(bracket, place + 1)
        if place < 0:
            return
        try:
            yield decode_exact_from(text, place)[0]
        except (ValueError, RecursionError):
            continue


def says(text: FoldedText, wanted: str | float, locale: str | None = None) -> bool:
    """Return whether a text contains some words, in any case and encoding, or a number as a whole."""
    return text.contains(wanted) if isinstance(wanted, str) else states(text.text, wanted, locale)


def may_say(text: GuardedText, said: str, wanted: str | float, locale: str | None = None) -> bool:
    """Return whether a text, `said`, may contain some words or a number in any way to read it, as a ban assumes."""
    if not isinstance(wanted, str):
        return may_state(said, wanted, locale)
    return text.contains(wanted) or find_amount(said, wanted, locale) is not None


class Answer:
    """An answer that is compared with values; what is known about it is worked out once."""

    def __init__(self, text: str, locale: str | None = None) -> None:
        self.text = text
        self._locale = locale

    def is_value(self, wanted: JsonValue) -> bool:
        """Return whether it is a value and nothing else: a text in any encoding, a number, or JSON of this value."""
        if isinstance(wanted, str):
            return self.text == wanted or self._encoded == fold_encoding(wanted)
        if isinstance(wanted, int | float) and not isinstance(wanted, bool):
            return self._number == exact(wanted)
        return self._json is not None and same_json(self._json[0], wanted)

    def may_be(self, wanted: JsonValue) -> bool:
        """Return whether it may be a value, which a ban has to assume: in any case, markup, and punctuation."""
        if isinstance(wanted, str):
            letters = "".join(split_words(wanted))
            return self._folded == fold(wanted) or (bool(letters) and letters in self._letters)
        if isinstance(wanted, int | float) and not isinstance(wanted, bool):
            return may_state(self.text, wanted, self._locale) and not self._has_other_words
        if isinstance(wanted, dict | list):
            return not lacks_json(self.text, wanted)
        return self.may_be(json.dumps(wanted))

    @cached_property
    def _encoded(self) -> str:
        return fold_encoding(self.text)

    @cached_property
    def _folded(self) -> str:
        return fold(self.text)

    @cached_property
    def _letters(self) -> frozenset[str]:
        """The letters of the whole answer in each way to read it."""
        readings = (without_markup(self.text), *GuardedText(self.text).readings)
        return frozenset("".join(split_words(reading)) for reading in readings)

    @cached_property
    def _number(self) -> Decimal | None:
        return read_number(self.text, self._locale)

    @cached_property
    def _has_other_words(self) -> bool:
        return has_other_words(self.text, self._locale)

    @cached_property
    def _json(self) -> tuple[JsonValue] | None:
        try:
            return (read_strict_json(self.text.strip()),)
        except BrokenJson:
            return None


def may_be_near(text: str, wanted: Amount, width: Amount, locale: str | None = None) -> bool:
    """Return whether any number of a text may lie within a width of another in any way to read it."""
    readings = (reading for number in all_numbers_in(text, locale) for reading in number.readings)
    return may_state(text, wanted, locale) or any(is_within(reading, wanted, width) for reading in readings)


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
        UsageError: it is not one.
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
    return f"{' '.join(f'{number.text}{number.scale}'.split())} (not read)" if number.is_scaled else number.text


def _read_as(number: Number) -> str:
    """Return a number as the text has it, and how it was read where that is not plain."""
    if number.is_scaled:
        return _written(number)
    written, value = number.text, show_number(number.value)
    if number.ambiguous:
        return f"{written} (read as {value}; `locale` may say otherwise)"
    return written if read_number(written) is not None and written.isascii() else f"{written} (read as {value})"
