"""Whether two arguments mean the same thing, and whether a message mentions it: 1042 and "1042" are one order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from operator import gt, lt

from pydantic import JsonValue

from vivavoce.comparing.json_values import BrokenJson, read_strict_json
from vivavoce.comparing.numbers import (
    Number,
    all_numbers_in,
    canonical,
    exact,
    find_amount,
    has_unread,
    may_state,
    read_number,
    states,
)
from vivavoce.comparing.quotes import cuts_word, shown_text, without_markup
from vivavoce.comparing.spellings import with_numerals
from vivavoce.comparing.text import FoldedText, GuardedText, fold, is_blank, split_words, without_signs
from vivavoce.lazy_names import lazy
from vivavoce.safe_regex import expression


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


QUOTES = " \t\r\n\"'`<>#"
"""Signs around a value that are not a part of it."""
_SEPARATORS = re.compile(r"[,;|\n]")
"""What stands between the values of a list that is written as text."""
_FENCE = re.compile(r"(```|~~~)[\w+-]*\s*(.*?)\s*(?:\1)?", re.DOTALL)
_PADDED = re.compile(r"0+(\d+)")
"""A number with zeros before it, which is a code elsewhere."""
_MAX_CODE_NUMBER = 10**40
"""Larger numbers are no codes."""
_MAX_ENCODINGS = 5
"""How often a value may be encoded as JSON text."""
_ABOUT_TRUTH: Mapping[bool, tuple[str | int, ...]] = {
    True: ("true", "yes", "on", "1", 1),
    False: ("false", "no", "off", "0", 0),
}


def text_in_fence(text: str) -> str | None:
    """Return what a text holds that is only a code fence, None for another text."""
    fence = _FENCE.fullmatch(text.strip())
    return fence[2] if fence else None


def open_value(value: JsonValue) -> tuple[JsonValue, bool]:
    """Return what a text holds that is JSON, in a code fence or not, and whether it only begins like JSON."""
    for _ in range(_MAX_ENCODINGS):
        if not isinstance(value, str):
            return value, False
        fenced = text_in_fence(value)
        plain = value.strip() if fenced is None else fenced
        if plain.lower() in ("true", "false"):
            return plain.lower() == "true", False
        if plain[:1] not in ("{", "[", '"'):
            return value, False
        try:
            value = read_strict_json(plain)
        except BrokenJson:
            return value, plain[:1] != '"'
    return value, isinstance(value, str)


def leaves_of(value: JsonValue) -> Iterator[tuple[JsonValue, bool]]:
    """Yield each value in a value that is not an object or a list, and whether it is a text of broken JSON."""
    pending = [value]
    while pending:
        item, is_broken = open_value(pending.pop())
        if isinstance(item, dict | list):
            pending += item.values() if isinstance(item, dict) else item
        else:
            yield item, is_broken


def may_be_alike(a: JsonValue, b: JsonValue) -> bool:
    """Return whether two values may mean the same thing: as text or JSON, in quotes, in a list, or as an expression."""
    return Meanings(a).may_be(Meanings(b))


class Meanings:
    """A value in every way to read it, worked out once for many comparisons."""

    def __init__(self, value: JsonValue) -> None:
        self.value = value

    def may_be(self, other: Meanings) -> bool:
        """Return whether two values may mean the same thing."""
        if not self.keys.isdisjoint(other.keys):
            return True
        if self._states_name_of(other) or other._states_name_of(self):
            return True
        return self._may_hold(other) or other._may_hold(self)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The identities of all that the value may be, so that two values may be alike if they share one."""
        keys = {identity(self.value)}
        if not isinstance(self.value, str):
            keys.add(identity(open_value(self.value)[0]))
        for leaf, _ in self._leaves:
            if is_missing(leaf):
                continue
            keys.add(identity(leaf))
            if isinstance(leaf, bool):
                keys.update(map(identity, _ABOUT_TRUTH[leaf]))
            for text in _SEPARATORS.split(leaf) if isinstance(leaf, str) else ():
                keys.update(_identities_of_text(text))
            if isinstance(leaf, str) and number_of(leaf) is not None:
                keys.update(f"={canonical(reading)}," for readings in _readings(leaf) for reading in readings)
        return frozenset(keys)

    @cached_property
    def names(self) -> frozenset[str]:
        """The codes and days that the value, or a part of a list, may be as a whole, in one spelling each."""
        return frozenset(name for leaf, _ in self._leaves for name in _names_of(leaf))

    @cached_property
    def stated_names(self) -> frozenset[str]:
        """The names of the value, and those of the codes and days that a text in it may state anywhere."""
        return self.names.union(*map(_names_in, filter(_has_digit, self._texts)))

    @cached_property
    def number(self) -> Decimal | None:
        """The number that it is, None for anything else."""
        return number_of(self.value)

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is neither an object nor a list, also not as JSON text."""
        return not isinstance(open_value(self.value)[0], dict | list)

    @cached_property
    def may_state_numbers(self) -> bool:
        """Whether a text in it has digits."""
        return any(map(_has_digit, self._texts))

    @cached_property
    def is_broken(self) -> bool:
        """Whether a text in it begins like JSON and cannot be read."""
        return any(is_broken for _, is_broken in self._leaves)

    @cached_property
    def _leaves(self) -> list[tuple[JsonValue, bool]]:
        return list(leaves_of(self.value))

    @cached_property
    def _texts(self) -> list[str]:
        return [leaf for leaf, _ in self._leaves if isinstance(leaf, str)]

    def _may_state(self, number: Decimal) -> bool:
        texts = filter(_has_digit, self._texts)
        return self.may_state_numbers and (self._is_expression or any(may_state(text, number) for text in texts))

    @cached_property
    def _is_expression(self) -> bool:
        return any(map(_is_expression, self._texts))

    def _states_name_of(self, wanted: Meanings) -> bool:
        return bool(wanted.names) and not wanted.names.isdisjoint(self.stated_names)

    def _may_hold(self, wanted: Meanings) -> bool:
        """Return whether it may state a number, or is broken JSON that has a text in it."""
        if wanted.value is None:
            is_text = isinstance(self.value, str)
            return is_missing(self.value) or (is_text and fold(str(self.value).strip(QUOTES)) in ("null", "none"))
        if isinstance(wanted.value, dict | list):
            return False
        number = wanted.number
        if number is not None and self._may_state(number):
            return True
        return self.is_broken and any(mentions(text, wanted.value) for text in self._texts)


def _names_of(leaf: JsonValue) -> Iterator[str]:
    """Yield the codes and days that a value may be; a whole number has the digits of one."""
    if isinstance(leaf, int) and not isinstance(leaf, bool) and 0 <= leaf < _MAX_CODE_NUMBER:
        leaf = str(leaf)
    if not isinstance(leaf, str) or not _has_digit(leaf):
        return
    code_of: Callable[[str], str | None] = lazy("vivavoce.comparing.spellings:code_of")
    days_of: Callable[[str], frozenset[str]] = lazy("vivavoce.comparing.spellings:days_of")
    for piece in dict.fromkeys((leaf, *_SEPARATORS.split(leaf))):
        plain = piece.strip(QUOTES)
        if (code := code_of(plain)) is not None:
            yield f"code {code}"
        yield from (f"day {day}" for day in days_of(plain))


def _names_in(text: str) -> Iterator[str]:
    """Yield the codes and days that a text may state anywhere."""
    codes_in: Callable[[str], Iterator[str]] = lazy("vivavoce.comparing.spellings:codes_in")
    days_in: Callable[[str], frozenset[str]] = lazy("vivavoce.comparing.spellings:days_in")
    yield from (f"code {code}" for code in codes_in(text))
    yield from (f"day {day}" for day in days_in(text))


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _identities_of_text(text: str) -> Iterator[str]:
    plain = text.strip(QUOTES)
    if not plain:
        return
    yield identity(plain)
    if padded := _PADDED.fullmatch(plain):
        yield identity(padded[1])
    words = split_words(without_markup(plain))
    if any(word.isalpha() for word in words):
        yield f"words {' '.join(words)}"


def may_match(text: str, pattern: str) -> bool:
    """Return whether a regular expression may match in any reading of a text: markup hides nothing.

    Raises:
        GraderFault: it takes too long.
    """
    return any(map(expression(pattern).found_in, _ways_to_read(text)))


def may_match_whole(value: JsonValue, pattern: str) -> bool:
    """Return whether a regular expression may match a whole value, one in it, or one of those that a text lists.

    Raises:
        GraderFault: it takes too long.
    """
    fits = expression(pattern).fits
    whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    for leaf in dict.fromkeys((whole, *(_as_text(leaf) for leaf, _ in leaves_of(value)))):
        pieces = (leaf, *_SEPARATORS.split(leaf))
        variants = (variant for piece in pieces for variant in (piece, piece.strip(), piece.strip(QUOTES)))
        if any(fits(reading) for variant in dict.fromkeys(variants) for reading in _ways_to_read(variant)):
            return True
    return False


def _as_text(leaf: JsonValue) -> str:
    return leaf if isinstance(leaf, str) else json.dumps(leaf, ensure_ascii=False)


def _ways_to_read(text: str) -> dict[str, None]:
    readings = GuardedText(text).readings
    return dict.fromkeys((*readings, *(reading.strip() for reading in readings)))


"""Characters that emphasis may put between letters."""


def may_mention(text: str, value: JsonValue) -> bool:
    """Return whether a text may mention a value, in any way to read both."""
    return any(_may_mention(text, leaf) for leaf, _ in leaves_of(value) if not is_missing(leaf))


def _may_mention(text: str, leaf: JsonValue) -> bool:
    number = number_of(leaf)
    if number is not None and may_state(text, number):
        return True
    if mentions(text, leaf) or (isinstance(leaf, str) and _may_contain(text, leaf.strip())):
        return True
    names = frozenset(_names_of(leaf))
    return bool(names) and not names.isdisjoint(_names_in(text))


def _may_contain(text: str, value: str) -> bool:
    """Return whether a text may contain a text or an amount, however it is written."""
    return GuardedText(text).contains(value) or find_amount(text, value) is not None


def number_readings(value: JsonValue) -> Iterator[Decimal]:
    """Yield what each number in a value may mean."""
    for leaf, _ in leaves_of(value):
        for readings in _readings(leaf):
            yield from readings


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
    stated = _readings(with_numerals(value)) if isinstance(value, str) else numbers
    return all(compare(number, exact(limit)) for readings in stated for number in readings)


def _possibly(value: JsonValue, limit: float, compare: Callable[[Decimal, Decimal], bool]) -> bool:
    text = with_numerals(value) if isinstance(value, str) else ""
    numbers = _readings(text or value)
    if not numbers:
        return True
    if isinstance(value, str):
        if has_unread(text) or _is_expression(text) or (compare is lt and _FRACTION_OF.search(fold(text))):
            return True
        numbers += _hidden_readings(value)
    bound = exact(limit)
    return any(compare(number, bound) for readings in numbers for number in readings)


def _hidden_readings(text: str) -> list[tuple[Decimal, ...]]:
    """Return what a text may mean besides its numbers: `(10)` and `10-` are debts, and `1 0 0 0` is one number."""
    plain = fold(text)
    is_debt = _DEBT.search(plain) is not None
    hidden = [tuple(-number for number in readings) for readings in _readings(text)] if is_debt else []
    if _APART.fullmatch(plain):
        hidden.append((Decimal("".join(filter(str.isdecimal, plain))),))
    return hidden


_DEBT = re.compile(r"\(\s*[^()]*\d[^()]*\)|\d\s*-\s*$")
_APART = re.compile(r"\d(?:[\s,.'_-]\d){2,}")
"""Digits with a mark between any two."""
_FRACTION_OF = re.compile(r"\d\s*(?:%|‰|¢|percent|per cent|cents?\b|ct\b|pence\b)")
"""An amount whose unit is a part of another."""


def _is_expression(text: str) -> bool:
    """Say whether a text may be a sum or a product, such as `2*300`: what it amounts to is not known."""
    plain = fold(text)
    if _OPERATION.search(plain) is not None or _is_subtraction(plain):
        return True
    digit = _DIGIT.search(plain)
    return digit is not None and _OPERATION_IN_WORDS.search(plain, digit.end()) is not None


def _is_subtraction(text: str) -> bool:
    """Return whether a text may be a subtraction: `100-95`; `12-15` is a range."""
    match = _DIFFERENCE.search(text)
    if match is None:
        return False
    first, second = read_number(match["first"]), read_number(match["second"])
    return first is None or second is None or first >= second


_UNIT = r"\s{0,3}(?:[%€$£¥]|[a-z]{1,4})?\s{0,3}"
_OPERATION = re.compile(rf"\d{_UNIT}(?:[*×·^/÷+]|x(?=\s{{0,3}}\d))\s{{0,3}}\(?[€$£]?\d")
"""A sign of arithmetic between two numbers."""
_DIFFERENCE = re.compile(rf"(?P<first>\d[\d.,]{{0,30}}){_UNIT}-\s{{0,3}}(?P<second>\d{{1,30}})\s{{0,3}}$")
_OPERATION_IN_WORDS = re.compile(r"\b(?:times|twice|thrice|double|triple|each|every|minus|plus|divided)\b")
_DIGIT = re.compile(r"\d")


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

    It is not part of a longer one as a reader sees it: 24 is in 24.00, but not in 24.90 or `**24**.90`; A-17 is not in
    A-17-B, Ann not in Ann-Marie, and x.org not in x.org/p.
    """
    text = shown_text(text)
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
