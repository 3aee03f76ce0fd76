"""Numbers in text: which numbers a text states, with exact decimal values, units, signs, and separators of thousands.

`numbers_in` is the only reader. It never takes a part of something longer for a number: not of another number, a date,
also one with the name of its month, a time, a version, a phone number, an address, or a code. Where a text may mean
several numbers (`1,234`), the number has all its `readings`; the first is the one that counts. A `locale` such as `de`
or `en-IN` settles such cases.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import lru_cache
from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator

from vivavoce.comparing.text import GAP, MIN_CODE_CHARS, PlainText, inline_marks, plain_readings
from vivavoce.errors import GraderFault, UsageError, did_you_mean
from vivavoce.work_time import counted_work

MAX_TEXT_CHARS = 200_000
"""Characters of a text in which numbers are read."""
MAX_EXPONENT = 999_999
"""The largest power of ten that is read as it is written; a larger one counts as this one."""
MAX_GROUPS = 30
"""Groups of digits with spaces between them that are one number."""
MAX_SUMMANDS = 8
"""Parts of one number that is written with several scales: `2 crore 25 lakh 300`."""
MAX_SHOWN_DIGITS = 40
"""Characters of a number that a message shows."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text: its value, its place and its words there, its unit, and everything that it may mean.

    `text` has the sign. `unit` is what touches the number: `kg`, `%`, `€`, `EUR`; it does not change the value, except
    for `k`, `M`, `B`, `bn`, 万 and 億, which are part of the number. `readings` are the values of this text as one
    number, beginning with `value`; an `ambiguous` text has several without regard to their signs, or may be several
    numbers. `scale` is what follows, is not read, and makes the number larger: ` million` in `5 million`. `factor` is
    the sign at its end that is part of its value: `k` in `10k`. `summands` are the values that make up the number, each
    with whether an unknown scale makes it larger: 2 and 500 in `2 thousand 500`.
    """

    value: Decimal
    start: int
    end: int
    text: str
    unit: str
    readings: tuple[Decimal, ...]
    ambiguous: bool = False
    scale: str = ""
    factor: str = ""
    summands: tuple[tuple[Decimal, bool], ...] = ()

    @property
    def is_scaled(self) -> bool:
        """Whether its value does not count, because `scale` makes it larger, or that of a summand."""
        return bool(self.scale or self.summands)


def numbers_in(text: str, locale: str | None = None) -> Sequence[Number]:
    """Return the numbers that a text states, in order, without those that a word makes larger, such as `5 million`.

    Raises:
        UsageError: the locale is unknown.
        GraderFault: the text is too long.
    """
    return tuple(number for number in _read_numbers(text, locale) if not number.is_scaled)


def all_numbers_in(text: str, locale: str | None = None) -> Sequence[Number]:
    """Return all numbers of a text in order; the values of those that are `is_scaled` do not count.

    Raises:
        UsageError: the locale is unknown.
    """
    return _read_numbers(text, locale)


@lru_cache(maxsize=16)
def _read_numbers(text: str, locale: str | None) -> tuple[Number, ...]:
    convention = None if locale is None else convention_of(locale)
    if not _DIGIT.search(text):
        return ()
    if len(text) > MAX_TEXT_CHARS:
        raise GraderFault(
            f"a text has {len(text):,} characters; numbers can be read in at most {MAX_TEXT_CHARS:,}", kind="limit"
        )
    with counted_work():
        return tuple(_join_numbers(text, list(_Reader(text, convention).numbers())))


def read_number(text: str, locale: str | None = None) -> Decimal | None:
    """Return the value of a text that is one number; None for other texts.

    Space around it and the end of a sentence do not count.
    """
    numbers = all_numbers_in(text, locale)
    if len(numbers) != 1 or numbers[0].unit or numbers[0].is_scaled:
        return None
    before, behind = _fold(text[: numbers[0].start]), _fold(text[numbers[0].end :])
    return numbers[0].value if not before.strip() and _END_OF_SENTENCE.fullmatch(behind) else None


def states(text: str, expected: float | Decimal, locale: str | None = None) -> bool:
    """Say whether a text states a number as a whole."""
    value = exact(expected)
    return any(number.value == value for number in numbers_in(text, locale))


def may_state(text: str, expected: float | Decimal, locale: str | None = None) -> bool:
    """Return whether a text may state a number in any way to read it, as `find_possible` says."""
    return find_possible(text, expected, locale) is not None


def find_possible(text: str, expected: float | Decimal, locale: str | None = None) -> tuple[int, int] | None:
    """Return where a text may state a number, which is what a ban has to assume; None where no reading states it.

    A number may mean any of its `readings`, with and without its sign; one that is scaled may mean its digits and any
    power of ten of them. Digits outside of numbers (codes, dates, versions) may be a number, and so may a whole part
    before a fraction or a sign that is part of the value: 4711 in `4711万`. So may what a power or a mixed fraction
    amounts to, and four digits or more with marks and spaces between them: `47-11`.
    """
    value = exact(expected)
    for span, amount in _computed_numbers(text):
        if abs(amount) == abs(value) and (value >= 0 or amount < 0):
            return span
    for reading in plain_readings(text):
        if (span := _find_possible(reading.text, value, locale)) is not None:
            return reading.span(*span)
    return None


def _find_possible(text: str, expected: Decimal, locale: str | None) -> tuple[int, int] | None:
    for number in all_numbers_in(text, locale):
        if any(_may_be(reading, expected, number) for reading in number.readings):
            return number.start, number.end
        if number.summands and expected.is_finite() and _may_be_sum(number.summands, expected):
            return number.start, number.end
    for match in _possible_digits(text, expected, locale):
        return match.span()
    return None


def _computed_numbers(text: str) -> Iterator[tuple[tuple[int, int], Decimal]]:
    """Yield what powers and mixed fractions in a text amount to, such as 1024 for `2^10` and 5.5 for `5 1/2`."""
    for match in _POWER.finditer(text):
        raised = match["raised"] or match["exponent"]
        base, exponent = Decimal(match["base"]), _small_integer(raised)
        if exponent is not None and abs(base.adjusted() * exponent) <= _MAX_WRITTEN_DIGITS:
            with localcontext(_EXACT):
                try:
                    yield match.span(), base**exponent
                except ArithmeticError:
                    continue
    for match in _MIXED_FRACTION.finditer(text):
        with localcontext(_EXACT):
            part = Decimal(match["numerator"]) / Decimal(match["denominator"])
            yield match.span(), Decimal(match["whole"]) + part


def find_amount(text: str, words: str, locale: str | None = None) -> tuple[int, int] | None:
    """Return where a text may state the amount that some words are, which is what a ban on these words has to assume.

    An amount is one number with a unit or a currency (`20%`, `24.90 €`, `5 kg`), or one with a mark for decimals or
    thousands (`1.5`). Its parts may be written in any way: `€24.90`, `24,90 €`, `EUR 24.90`. None where the words are
    not an amount, or the text states it nowhere.
    """
    amount = _amount_of(words, locale)
    if amount is None:
        return None
    values, unit = amount
    for plain in plain_readings(text):
        for number in all_numbers_in(plain.text, locale):
            if any(_may_be(reading, value, number) for value in values for reading in number.readings) and (
                not unit or unit in _units_beside(plain.text, number)
            ):
                return plain.span(number.start, number.end)
    return None


@lru_cache(maxsize=4096)
def _amount_of(words: str, locale: str | None) -> tuple[set[Decimal], str] | None:
    """Return the values and the unit of words that are one amount, None for digits only and for other words.

    The values of `1.500 €` are 1.5 and 1500.
    """
    if len(words) > _CUT_CHARS:
        return None
    plain = PlainText(words).text
    numbers = all_numbers_in(plain, locale)
    if len(numbers) != 1 or numbers[0].is_scaled:
        return None
    number = numbers[0]
    unit = _unit_name(f"{plain[: number.start]} {plain[number.end :]}".strip())
    is_amount = unit in _units_beside(plain, number) if unit else not number.text.isdecimal()
    return ({number.value, max(number.readings)}, unit) if is_amount else None


def _units_beside(text: str, number: Number) -> set[str]:
    """Return the names of the unit behind a number and of the currency before it."""
    before = _UNIT_BEFORE.search(text, max(0, number.start - _MAX_UNIT_CHARS), number.start)
    behind = _UNIT_BEHIND.match(text, number.end)
    return {_unit_name(match["unit"]) for match in (before, behind) if match}


def _unit_name(unit: str) -> str:
    """Return one name for the ways to write a unit."""
    name = unit.casefold().rstrip(".")
    return _UNIT_NAMES.get(name, name)


def _small_integer(text: str) -> int | None:
    plain = unicodedata.normalize("NFKC", text).replace("−", "-")
    return int(plain) if re.fullmatch(r"[-+]?[0-9]{1,3}", plain) else None


def _may_be_sum(summands: Iterable[tuple[Decimal, bool]], expected: Decimal) -> bool:
    """Return whether numbers with unknown scales may add up to another: 2500 for `2 thousand 500`."""
    rest = abs(expected)
    with localcontext(_EXACT):
        for value, is_scaled in summands:
            summand = abs(value)
            if is_scaled and 0 < summand <= rest:
                power = rest.adjusted() - summand.adjusted()
                largest = summand.scaleb(power)
                summand = largest if largest <= rest else summand.scaleb(power - 1)
            if summand > rest:
                return False
            rest -= summand
    return not rest


def _may_be(reading: Decimal, expected: Decimal, number: Number) -> bool:
    if not reading or not expected:
        return reading == expected
    if expected < 0 < reading:
        return False
    larger, smaller = abs(expected), abs(reading)
    if larger == smaller:
        return True
    if larger < smaller or not (number.is_scaled or number.unit in _UNCERTAIN_UNITS):
        return False
    mantissas = {canonical(size).partition("E")[0] for size in (larger, smaller)}
    return len(mantissas) == 1 or is_within(larger, 12 * smaller)  # five million, or five dozen


def _possible_digits(text: str, expected: Decimal, locale: str | None) -> Iterator[re.Match[str]]:
    """Yield digits of a text that may be a number, and that `all_numbers_in` reads as none or as its whole part."""
    if not expected.is_finite() or abs(expected.adjusted()) > _MAX_WRITTEN_DIGITS:
        return
    whole, _, fraction = format(abs(expected), "f").partition(".")
    fraction = fraction.rstrip("0")
    sign = "[-–]" if expected < 0 else ""
    if fraction:
        pattern = rf"(?<![0-9]){sign}0*{whole.lstrip('0') or '0'}{_DECIMAL_MARK}{fraction}0*(?![0-9])"
    else:
        gap = GAP if len(whole) >= MIN_CODE_CHARS else ""
        pattern = rf"(?<![0-9]){sign}0*{gap.join(whole)}(?![0-9])"
    numbers = all_numbers_in(text, locale)
    starts = [number.start for number in numbers]
    for match in re.finditer(pattern, text):
        first, last = match.span()
        place = bisect_right(starts, first) - 1
        number = numbers[place] if place >= 0 and last <= numbers[place].end else None
        if number is None or _may_be_part(match, number, expected):
            yield match


def _may_be_part(match: re.Match[str], number: Number, expected: Decimal) -> bool:
    """Return whether digits inside a number may be a number of their own: 250 in `1 250`, 24 in `24.90`, 5 in `5万`."""
    if number.ambiguous and ("." in format(expected, "f") or match[0].isdecimal()):
        return True
    if expected and any(int(abs(size)) == abs(expected) for size in number.readings):
        return True
    before, after = number.text[: match.start() - number.start], number.text[match.end() - number.start :]
    return not _MARK_AFTER_DIGIT.search(before) and not _MARK_BEFORE_DIGIT.match(after) and not number.text.isdecimal()


def exact(value: float | Decimal) -> Decimal:
    """Return a number as the decimal that it is written as: 0.1 is one tenth."""
    return value if isinstance(value, Decimal) else Decimal(repr(value))


def width_of(expected: float | Decimal, tolerance: float | Decimal = 0, relative: float | Decimal = 0) -> Decimal:
    """Return how far a number may be from the expected one: the tolerance, or that share of it if that is more."""
    with localcontext(_EXACT):
        return max(exact(tolerance), exact(relative) * abs(exact(expected)))


def is_within(
    number: float | Decimal,
    expected: float | Decimal,
    tolerance: float | Decimal = 0,
    relative: float | Decimal = 0,
) -> bool:
    """Say whether |number - expected| ≤ max(tolerance, relative · |expected|), counted exactly in decimals."""
    number, expected = exact(number), exact(expected)
    if not (number.is_finite() and expected.is_finite()):
        return False
    width = width_of(expected, tolerance, relative)
    with localcontext(_EXACT):
        low, high = expected - width, expected + width
    return low <= number <= high  # comparing is exact in any context, and cheap for a number of any length


def canonical(value: float | Decimal) -> str:
    """Return one text for all ways to write a number, exactly: `1.5E+3` for 1500, 1500.0, and 1.5e3."""
    number = exact(value)
    if not number.is_finite():
        return str(number).lstrip("-") if number.is_nan() else str(number)
    if not number:
        return "0"
    digits, _, exponent = f"{number:E}".partition("E")
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}E{exponent}"


def show_number(value: float | Decimal) -> str:
    """Return a number as people write it: without an exponent where that is short, and without needless zeros."""
    number = exact(value)
    text = str(number).lower()
    if number.is_finite() and (not number or -20 < number.adjusted() < 21):
        text = format(number, "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        text = text.lstrip("-") if not number else text
    return text if len(text) <= MAX_SHOWN_DIGITS else f"{text[:MAX_SHOWN_DIGITS]}…"


def cuts_number(text: str, place: int) -> bool:
    """Return whether a place in a text is inside a number, or inside something else that is written with digits.

    A number goes from its sign or currency to its unit and scale: `-40`, `€20`, `12.5 %`, `5 million`. Dates, times,
    versions, phone numbers, and codes such as `A-17-B` are not cut either. Of a date with the name of its month, only
    the numbers are not taken alone.
    """
    first = max(0, place - _CUT_CHARS)
    window = text[first : place + _CUT_CHARS]
    folding = _Folded(window)
    folded = folding.text
    original = place - first
    inner = folding.place(original)
    if _is_apart_from_digits(folded, inner):
        return False
    before, after = folded[max(0, inner - 3) : inner], folded[inner : inner + 3]
    if _CUT_AFTER.search(before) and _CUT_BEFORE.match(after):
        return True
    if before[-1:].isdecimal() and _POWER_BEFORE.match(after):
        return True
    left, right = _CODE_AFTER.search(before), _CODE_BEFORE.match(after)
    if left and right and any(map(str.isdigit, left[0] + right[0])):
        return True
    longer = [match.span() for pattern in (_PHONE_IN_TEXT, _ACCOUNT, _POWER) for match in pattern.finditer(folded)]
    if before[-1:].isdigit() or after[:1].isdigit():
        longer += [match.span() for match in (*_named_dates(folded), *_TIME_OF_DAY.finditer(folded))]
    if any(start < inner < end for start, end in longer):
        return True
    return any(start < original < end for start, end in [_extent(window, number) for number in all_numbers_in(window)])


def _is_apart_from_digits(text: str, place: int) -> bool:
    """Return whether the nearest digits on both sides of a place, if any, are behind a word that no number contains."""
    before, after = _LAST_DIGIT.search(text, 0, place), _DIGIT.search(text, place)
    if before is None and after is None:
        return True
    return (
        (before is None or _OTHER_WORD.search(text, before.start() + 1, place) is not None)
        and (after is None or _OTHER_WORD.search(text, place, after.start()) is not None)
        and "iban" not in text.casefold()  # which groups of letters follow
    )


def _extent(text: str, number: Number) -> tuple[int, int]:
    """Return where a number starts and ends in a text, with its currency, unit, and scale."""
    start, end = number.start, number.end
    if number.scale:
        end += len(number.scale) if text.startswith(number.scale, end) else 1  # 5 in "5 to 10 million"
    elif number.unit and text.startswith(number.unit, end):
        end += len(number.unit)
    if percent := _SPACED_PERCENT.match(text, end):
        end = percent.end()
    if number.unit and text.endswith(number.unit, 0, start):
        start -= len(number.unit)
    return start, end


def has_unread(text: str, locale: str | None = None) -> bool:
    """Say whether a text may state a number that `numbers_in` does not read, or a larger one than it reads.

    These are digits that are not part of a number (`1,234,5`, `2^10`, dates, codes), words for numbers (`fifty`), and
    `5m`, metres or millions, and numbers that only a page joins (`1**50**`). A scale right after a number does not
    count here: the number says that it has one.
    """
    marks = [mark.start for mark in inline_marks(text)]
    if any(
        bisect_left(marks, number.start) < bisect_left(marks, number.end) for number in all_numbers_in(text, locale)
    ):
        return True
    if _METRES_OR_MILLIONS.search(_fold(text)):
        return True
    rest = _fold(_without_numbers(text, locale))
    return bool(_DIGIT.search(rest) or _LARGER_WORD.search(rest))


def has_other_words(text: str, locale: str | None = None) -> bool:
    """Return whether a text has letters besides those of its numbers, their units, scales, and currencies."""
    return bool(re.search(r"[^\W\d_]", _ONLY_CODES.sub(" ", _without_numbers(text, locale))))


def _without_numbers(text: str, locale: str | None) -> str:
    """Return a text without its numbers, their units, and their scales."""
    parts: list[str] = []
    place = 0
    for number in all_numbers_in(text, locale):
        parts.append(text[place : number.start])
        behind = next((words for words in (number.scale, number.unit) if text.startswith(words, number.end)), "")
        place = number.end + len(behind)
    return " ".join([*parts, text[place:]])


_EXACT = Context(prec=5000, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""Exact for sums and products of what people and JSON write as wanted numbers and tolerances."""


# How people of a locale write numbers


@dataclass(frozen=True, slots=True)
class Convention:
    """The decimal mark of a locale, and what it puts between groups of digits; spaces that do not break always may."""

    decimal: str
    group: str


_CONVENTIONS = {
    name: convention
    for convention, names in (
        (
            Convention(".", ","),
            "en zh ja ko th he ms fil sw cy ga mt km my ne si am hi bn mr ta te kn ml gu pa ur ar fa es-419 es-mx es-us"
            " es-br es-bz es-cu es-do es-gt es-hn es-ni es-pa es-pe es-pr es-sv",
        ),
        (
            Convention(",", "."),
            "de es it nl pt id tr da el vi hr sl sr bs ro mk sq ca gl eu is az lo ar-dz ar-lb ar-ly ar-ma ar-mr ar-tn"
            " en-at en-be en-de en-dk en-es en-id en-it en-nl en-pl en-ro en-si fr-lu ms-bn ms-id sw-cd",
        ),
        (
            Convention(",", " "),
            "fr ru uk be bg cs sk pl sv nb nn no fi et lv lt hu hy kk ka af pt-ao pt-ch pt-mz pt-pt fr-ch en-cz en-ee"
            " en-fi en-fr en-ge en-hu en-lt en-lv en-no en-pt en-se en-sk en-ua en-za",
        ),
        (Convention(".", "'"), "de-ch de-li it-ch en-ch"),
        (Convention(",", "'"), "rm"),
    )
    for name in names.split()
}
"""How numbers are written, by language, and by language and region where that differs."""


def convention_of(locale: str) -> Convention:
    """Return how a locale such as `de`, `de-CH`, or `pt_BR` writes numbers.

    Raises:
        UsageError: the language is unknown.
    """
    tags = locale.replace("_", "-").lower().split("-")
    language = tags[0]
    regional = f"{language}-{tags[-1]}" if len(tags) > 1 else language
    convention = _CONVENTIONS.get(regional) or _CONVENTIONS.get(language)
    if convention is None or not all(tag.isalnum() for tag in tags):
        languages = sorted(name for name in _CONVENTIONS if "-" not in name)
        hint = did_you_mean(language, languages) or f"; known languages: {', '.join(languages)}"
        raise UsageError(f"unknown locale '{locale}', expected a language such as de, or de-CH{hint}")
    return convention


def _check_locale(locale: str) -> str:
    try:
        convention_of(locale)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return locale


Locale = Annotated[str, AfterValidator(_check_locale)]
"""The locale of numbers, an option of everything that reads numbers in text."""


# One form for all characters: digits of other scripts, full-width signs, spaces, dashes, and characters nobody sees

_DIGIT = re.compile(r"[\d½¼¾⅐-⅞]")
_LAST_DIGIT = re.compile(r"[\d½¼¾⅐-⅞](?=[^\d½¼¾⅐-⅞]*\Z)")
_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")
_FULL_WIDTH_COMMA = re.compile(r"(?<=[０-９])，(?=[０-９])")
_INVISIBLE = re.compile(
    "[\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\u034f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001"
    "\U000e0020-\U000e007f]"
)
"""The characters of category Cf, and those that only join or style others."""
_NO_BREAK = "\u00a0"
_SIGNS = {
    **dict.fromkeys("’‘ʼ′´٬", "'"),
    **dict.fromkeys("\u202f\u2009\u2007\u2006\u2008\u205f", _NO_BREAK),
    **dict.fromkeys("−﹣‐‑", "-"),
    "‒": "–",
    "⁄": "/",
    "٪": "%",
    "﹪": "%",
}
_UNIT_RANGE = re.compile(r"(?<=[0-9])( ([^\W\d_]{1,12}))-(?=[0-9]++(?:[.,][0-9]++)* \2(?![\w-]))")
"""A hyphen between two numbers with the same unit, as in `5 kg-7 kg`: it does not continue a word."""
_FOLDED = str.maketrans(
    {**{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if code != 0xFF0C}, "＇": "'", **_SIGNS}
)


class _Folded:
    """A text as a page shows it, in which every digit is ASCII, with the place of each character in the original."""

    def __init__(self, original: str) -> None:
        text = original
        self._starts: Sequence[int] | None = None
        self._ends: Sequence[int] | None = None
        if marks := inline_marks(original):
            parts: list[str] = []
            starts: list[int] = []
            ends: list[int] = []
            place = 0
            for start, end, replacement in (*marks, (len(original), len(original), "")):
                parts += [original[place:start], replacement]
                starts += range(place, start)
                starts += [start] * len(replacement)
                ends += range(place + 1, start + 1)
                ends += [end] * len(replacement)
                place = end
            text, self._starts, self._ends = "".join(parts), starts, ends
        if "-" in text:
            text = _UNIT_RANGE.sub(r"\1–", text)
        if not text.isascii():
            text = _FULL_WIDTH_COMMA.sub(",", text).translate(_FOLDED)
            text = _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)
            if _INVISIBLE.search(text):
                places = [place for place, character in enumerate(text) if not _INVISIBLE.match(character)]
                self._ends = (
                    [place + 1 for place in places] if self._ends is None else [self._ends[place] for place in places]
                )
                self._starts = places if self._starts is None else [self._starts[place] for place in places]
                text = _INVISIBLE.sub("", text)
        self.text = text

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of the text is in the original."""
        if self._starts is None or self._ends is None:
            return start, end
        return self._starts[start], self._ends[end - 1]

    def place(self, original: int) -> int:
        """Return where a place in the original is in the text."""
        return original if self._starts is None else bisect_left(self._starts, original)


def _fold(text: str) -> str:
    return text if (text.isalnum() and text.isascii()) or text == " " else _Folded(text).text


# The grammar: a run of words with a digit is cut into tokens, and a token that may be numbers into parts

_CODES = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTC BTN BWP BYN BZD CAD"
    " CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB ETH EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ"
    " GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KRW KWD KYD KZT LAK LBP LKR LRD LSL"
    " LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR"
    " PLN PYG QAR RMB RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND"
    " TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW Rs Rp RM kr Fr"
)
_CODE = rf"(?:{'|'.join(_CODES.split())})"
_SYMBOLS = "$€£¥₹₩₽₺₫₪₦₱฿₴₸¢₡₲₵₼₾₿"
_CURRENCIES = "$¢-¥֏؋৲৳૱௹฿៛₠-₿﷼"
"""The signs of all currencies; `_SYMBOLS` are those that units may be."""
_CAPITAL_UNITS = frozenset((_CODES + " KB MB GB TB PB KG G MG KM M CM MM L ML W KW MW KWH V A HZ MHZ GHZ").split())
"""Words in capitals that follow a number and a hyphen without making them a code, as in `30-GB`."""
_L = "A-Za-zªµº\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0300-\u036f\u0370-\u052f\u1e00-\u1fff"
"""Letters that make a code of the digits next to them: Latin, Greek, and Cyrillic ones."""
_W = f"0-9{_L}"
_RAISED = "²³¹⁰⁴-⁹"
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u312f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua000-\ua4cf\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)
"""Letters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Chinese, Japanese, Yi."""
_FRACTIONS = "½¼¾⅐-⅞"
_TEN_THOUSANDS = "[百千]?[万萬億亿]{1,2}"

_RUN = re.compile(
    rf"(?<!\S)[^\s0-9{_FRACTIONS}]*+[0-9{_FRACTIONS}]\S*+(?:[ {_NO_BREAK}](?:[×x*·⋅] )?+[+(]?[0-9{_FRACTIONS}]\S*+)*+"
)
_PHONE = (
    rf"\+[0-9]{{1,3}}(?:[ {_NO_BREAK}./-]?\(?[0-9]{{1,5}}\)?){{2,6}}(?![{_W}])"
    rf"|(?:\([0-9]{{3}}\) ?|[0-9]{{3}}[-. ])[0-9]{{3}}[-. ][0-9]{{4}}(?![{_W}])"
    rf"|[0-9]{{4}}(?:[ -][0-9]{{4}}){{3}}(?:[ -][0-9]{{1,4}}){{0,4}}(?![{_W}])"
    rf"|0[0-9]{{1,5}}(?:[ /-][0-9]{{2,9}}){{1,6}}(?![{_W}])"
    rf"|\(0[0-9]{{1,5}}\)[ /-]?[0-9]{{2,9}}(?:[ /-][0-9]{{1,9}}){{0,5}}(?![{_W}])"
    rf"|\([0-9]{{2,5}}\)[ -]?[0-9]{{2,4}}(?:-[0-9]{{2,4}})+(?![{_W}])"
)
_ACCOUNT = re.compile(
    rf"(?<![{_W}])(?:[A-Z]{{2}}[0-9]{{2}}(?:[ {_NO_BREAK}][A-Z0-9]{{4}}){{2,7}}"
    rf"|(?i:iban):?[ {_NO_BREAK}]{{0,2}}[A-Za-z]{{2}}[0-9]{{2}}(?:[ {_NO_BREAK}][A-Za-z0-9]{{4}}){{1,7}})"
    rf"(?:[ {_NO_BREAK}][A-Z0-9]{{1,3}})?+(?![{_W}])"
)
"""The number of a bank account in groups of four: `DE89 3704 0044 0532 0130 00`."""
_SIGNED = re.compile(rf"([-+–])(?:[{_SYMBOLS}] ?|{_CODE} ?)?\Z")
_AFTER_NUMBER = re.compile(
    rf"(?P<markup>[*_`~]{{1,3}}|)(?:(?<![{_W}])[-+–]?(?:[{_SYMBOLS}]|{_CODE})? ?)?"
    rf"(?:[0-9][0-9.,' {_NO_BREAK}]{{0,30}})?[0-9{_FRACTIONS}]"
    rf"(?:[ {_NO_BREAK}]?(?:(?:Tsd|Mio|Mrd)\.?[ {_NO_BREAK}]?)?(?:[A-Za-z]{{0,3}}[{_CURRENCIES}℃℉‱″]|{_CODE}))?"
    rf"(?:[”»]|</[A-Za-z]+>)*(?P=markup)\Z"
)
"""A number up to the end of its currency, unit, and markup: a dash that follows is that of a range, not a sign."""
_MAX_AFTER_NUMBER_CHARS = 48
_MAX_SIGN_CHARS = 20
_MINUS_WORDS = "minus|negative|moins|menos|meno|минус|零下|负|負|マイナス|氷点下|영하|마이너스"
_BEFORE_NO_MINUS = "au|du|ou|le|al|o|lo|or|oder|или"
"""Words that make another phrase of one for a minus: `au moins 3`, `plus or minus 3`."""
_SIGN_APART = re.compile(
    rf"(?:(?P<bound>(?:/|\b(?i:{_BEFORE_NO_MINUS})) ?)?(?<![{_W}])(?i:{_MINUS_WORDS})[ {_NO_BREAK}-]?"
    rf"|(?P<dash>[-–])(?:(?P<tie>{_NO_BREAK}+)| {{1,3}}))"
    rf"(?:[{_SYMBOLS}] ?|{_CODE} ?)?\Z"
)
"""A word or a sign that makes the number behind it negative, with a space between."""
_MINUS_SIGNS = "−﹣"
"""Signs that are nothing but a minus."""
_BEFORE_MINUS = re.compile(r"[:=(] ?\Z")
_ONLY_NUMBER = re.compile(rf"\s*[-–] {{1,3}}[0-9][0-9.,' {_NO_BREAK}]*[^\s0-9]{{0,3}}\s*")
_SHORT_UNIT = re.compile(rf"[ {_NO_BREAK}]?[{_L}]{{0,3}}[{_CURRENCIES}]?[ {_NO_BREAK}]?")
_SCALE_STEMS = (
    "dozen docen douzain dutzend hundred hundert hundra honderd hundr centen centinaia centaine ratus száz thousand"
    " tausend duizend tusen tusind tuhat tuhan tysiąc tysięc tisíc tisuć tisoč hiljad ezer tūkst þúsund elfu ribu libo"
    " million millión milión millon millón millier miljo miljard milij milhão milhões milhar milion"
    " milioa miliar milyon milyar milliard millió billion billón billon biljon bilion bilhão bilhões biliard"
    " billiard trilli trillón trilion trilhão trilhões triliun quadrill quintilli zillion juta nghìn ngàn triệu trăm"
    " тысяч тысяц тисяч хиляд хиљад сотен сотн миллион миллиард триллион мільйон мільярд милион милиард"
    " χιλιάδ εκατομμ εκατοντάδ δισεκατομμ ألف آلاف مليون ملايين مليار بليون مئة مائة هزار صد میلیون میلیارد"
    " ہزار لاکھ کروڑ ملین אלף אלפים מאות מיליון מיליארד"
)
_SCALE_SIGNS = (
    "सौ हज़ार हज़ार हजार लाख करोड़ करोड़ अरब खरब मिलियन बिलियन শত হাজার লাখ লক্ষ কোটি মিলিয়ন মিলিয়ন ஆயிரம் லட்சம் கோடி மில்லியன்"
    " వేల లక్ష కోట్ల మిలియన్ ಸಾವಿರ ಲಕ್ಷ ಕೋಟಿ ആയിരം ലക്ഷം കോടി હજાર લાખ કરોડ ร้อย พัน หมื่น แสน ล้าน"
)
_SCALE_SHORT = (
    r"[kKMB]|[kK]{2,3}|MM|(?i:tsd|tys|tis|mio|mrd|mln|mld|mlrd|bn|bln|tn|trn|thsd|thou|cr|lk|mil|mill|mila|mille|mii"
    r"|miles(?= de)|lakhs?|lacs?|crores?|bin|yüz|arab|grand|rb|jt|tỷ|tỉ|тыс|млн|млрд|трлн|тис|хил|εκ|χιλ|δισ|mn)"
)
_NUMBER_WORDS = (
    "twenty thirty forty fifty sixty seventy eighty ninety zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig"
    " neunzig vingt trente quarante cinquante soixante veinte treinta cuarenta cincuenta sesenta setenta ochenta"
    " noventa venti trenta quaranta cinquanta sessanta settanta ottanta novanta cento vinte quarenta cinquenta"
    " sessenta oitenta twintig dertig veertig vijftig zestig tachtig"
)
_BREAK = rf"[*_`~)\]]*\+?[ {_NO_BREAK}-]?[*_`~(\[]*"
_WIDE_BREAK = r"(?:[^\w.,;:!?&<]|_|&nbsp;|&#160;|</?[A-Za-z]{1,9}>){0,12}"
"""What may stand between a number and a word for its scale: white space, markup, quotes, dashes, and plus signs."""
_SCALE_FOLLOWS = re.compile(
    rf"(?:[ {_NO_BREAK}]?(?:[A-Za-z]{{0,3}}[{_CURRENCIES}]|{_CODE}(?![{_W}])))?"
    rf"(?:{_WIDE_BREAK}(?:in )?(?:(?i:{'|'.join(_SCALE_STEMS.split())})|{'|'.join(_SCALE_SIGNS.split())})"
    rf"|{_BREAK}(?:(?:{_SCALE_SHORT})(?![{_L}])"
    r"|[十拾百佰万萬億亿兆]|[千仟](?![克米瓦卡赫公])|[십백천만억조]+(?=[\W\d원달유개명]|\Z)))"
)
"""What makes a number larger, with what may stand between: `5 million`, `5 Mio. €`, `5 € million`, `5千`."""
_BARE_SCALE = re.compile(rf"(?:[kKMB]|bn)(?![{_W}])|{_TEN_THOUSANDS}")
"""What is part of a number if it touches the digits."""
_MONEY_BEFORE = re.compile(rf"(?:[{_CURRENCIES}]|(?<![{_W}]){_CODE}) ?[-+–]?\Z")
_LETTER_FOLLOWS = re.compile(rf" ?(?:mm?|[LT])(?![{_W}])")
_LETTER_AND_MONEY = re.compile(rf" ?(?:mm?|[GLT]) ?(?:[{_CURRENCIES}]|{_CODE}(?![{_W}]))")
"""A letter that is a unit after other numbers: `$5m`, `5 T€`, `₹5 L`."""
_RANGES = "to|through|thru|up to|till|bis(?: zu)?|à|al?|tot|do|til|ile|đến|до|έως|至|到|から|से"
_LISTS = "and|or|versus|vs\\.?|und|oder|et|ou|y|o|e|en|of|i|lub|og|och|eller|ve|và|hoặc|и|или|και|ή|或|和|या"
_ABOUT = r"(?:(?:about|around|roughly|nearly|almost|some|maybe|even|ca\.?|etwa|rund|circa|environ|unos) ?)?"
_MARKUP = r"(?:[*_`~\"'“”„«»()\[\]]|</?[A-Za-z]{1,9}>){0,9}"
_SCALE_CONNECTOR = re.compile(
    rf"(?:[A-Za-z]{{0,3}}[{_CURRENCIES}]|{_CODE})?\+?{_MARKUP}\s{{0,3}}"
    rf"(?:(?:[^\W\d_]{{1,4}}(?: ?[{_CURRENCIES}])?\s{{0,3}})?"
    rf"(?:[-–—―/~〜～→⇒…]|\.{{2,3}}|[-=]>|{_RANGES})|[,&]|{_LISTS})"
    rf"\s{{0,3}}{_ABOUT}"
    rf"{_MARKUP}(?:[A-Za-z]{{0,3}}[{_CURRENCIES}]|{_CODE})?\s?{_MARKUP}",
    re.IGNORECASE,
)
"""What stands between two numbers whose scale follows the second: `5 to 10 million`, `€5–€10 Mio.`, `5-10k`."""
_ADDED = re.compile(r"(?:[^\W\d_]{0,8}|\.)[\s\u00a0]{0,3}(?:(?:and|und|et|y|e|и) )?", re.IGNORECASE)
"""What stands between the scale of a number and one that is added to it."""
_MAX_SHORT_SCALE_CHARS = 4
"""Letters of a scale that may be an abbreviation with a point."""
_POWER_CONNECTOR = re.compile(
    r"\s?\*\*\s?[({]{0,2}|\s?(?:\\?\^|↑+|<sup>)\s?[({]{0,2}"
    r"|\)?\s(?:(?:raised )?to the (?:power(?: of)?|exponent)|hoch|puissance|elevado a(?: la)?)\s"
)
"""What stands between the base and the exponent of a power."""
_BEFORE_EXPONENT = re.compile(r"(?:\^|↑|<sup>)\s?[({]{0,2}\Z|[√∛∜]\s?\(?\Z")
_BEFORE_POWER = re.compile(
    r"\)?\s?\\?\^\s?[({]{0,2}[-+−]?[\w(]|\)?\s[²³⁴-⁹]|\)[²³⁴-⁹]|\s?<sup>\s?[-+−]?(?:[02-9]|1[0-9])"
    r"|\s?[×*·⋅]\s?[0-9.]{1,15}\s?(?:\\?\^|\*\*|[²³⁰⁴-⁹⁻]|<sup>)"
)
"""What follows the base of a power, or the factor before one."""
_MAX_EXPONENT_SIGN_CHARS = 8
_SIGN_OF_PRODUCT = re.compile(r"\s?[×x*·⋅]\s?")
_SIGN_OF_PRICE = re.compile(rf"[{_CURRENCIES}]")
_POWER = re.compile(
    rf"(?<![0-9.,])(?P<base>[0-9]{{1,15}}(?:\.[0-9]{{1,9}})?)"
    rf"(?:(?P<raised>[⁺⁻]?[{_RAISED}]{{1,3}})|(?:{_POWER_CONNECTOR.pattern})"
    r"(?P<exponent>[-+−]?[0-9]{1,3})(?![0-9]))"
)
_MIXED_FRACTION = re.compile(
    r"(?<![0-9.,/-])(?P<whole>[0-9]{1,9})[ -](?P<numerator>[1-9])[/⁄](?P<denominator>[2-9]|1[0-9]|32|64)"
    r"(?![0-9/]|[.,-][0-9])"
)
_DECIMAL_MARK = rf"(?:\s?[.,'٫·]\s?|[{_CURRENCIES}]|<sup>)"
_MARK_AFTER_DIGIT = re.compile(rf"[0-9][.,'٫_ {_NO_BREAK}]\Z")
_MARK_BEFORE_DIGIT = re.compile(rf"[.,'٫_ {_NO_BREAK}][0-9]")
_WORD_STEMS = f"{_SCALE_STEMS} {_NUMBER_WORDS}".split()
_MIN_INNER_CHARS = 6
"""Letters of a word that is looked for inside longer words, too."""
_LARGER_WORD = re.compile(
    rf"(?<![^\W\d_])(?:{'|'.join(_WORD_STEMS)}|(?:mille|mila|lakhs?|lacs?|crores?)(?![{_L}]))"
    rf"|{'|'.join(_SCALE_SIGNS.split())}"
    rf"|{'|'.join(word for word in _WORD_STEMS if len(word) >= _MIN_INNER_CHARS)}"
    r"|[十拾百佰兆]|[千仟](?![克米瓦卡赫公])|(?<![0-9百千])[万萬億亿]|[십백천만억조](?=[\W\d원달유개명]|\Z)",
    re.IGNORECASE,
)
"""A word for a number or its scale, in any place, also inside a longer word: `fünfhundert`."""
_METRES_OR_MILLIONS = re.compile(rf"[0-9{_FRACTIONS}]m(?![{_W}²³])")
_GROUPED_PHONE = re.compile(rf"\+[0-9]{{1,3}}(?:(?: [0-9]{{3}})+|(?:{_NO_BREAK}[0-9]{{3}})+|(?:\.[0-9]{{3}})+)")
_SLASHED_DATE = re.compile(r"[0-9]{1,2}/[0-9]{1,2}/(?:[0-9]{2}|[0-9]{4})|[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}")
_MONTHS = re.compile(r"\S+").findall("""
january february april june july august september october november december
januar jänner februar feber märz juni juli oktober dezember janvier février avril juin juillet août septembre octobre
novembre décembre enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre diciembre
gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre janeiro fevereiro março maio junho julho
setembro outubro novembro dezembro januari februari maart mei augustus december
maj desember augusti stycznia lutego marca kwietnia maja czerwca lipca
sierpnia września października listopada grudnia ledna února března dubna května června července srpna října listopadu
prosince ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık января февраля марта апреля мая июня
июля августа сентября октября ноября декабря січня лютого березня квітня травня червня липня серпня вересня жовтня
листопада грудня ιανουαρίου φεβρουαρίου μαρτίου απριλίου μαΐου ιουνίου ιουλίου αυγούστου σεπτεμβρίου οκτωβρίου
νοεμβρίου δεκεμβρίου يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر जनवरी फ़रवरी मार्च
अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर
""")
_CAPITAL_MONTHS = "May|March|Mai|Mars|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Okt|Nov|Dec|Dez)\\b\\.?"
"""Names and short forms that are other words, too, unless they have a capital."""
_MONTH = rf"(?:(?i:{'|'.join(sorted(set(_MONTHS), key=len, reverse=True))})|{_CAPITAL_MONTHS})(?![{_L}])"
_MONTH_WORDS = frozenset(
    map(str.casefold, (*_MONTHS, *re.findall(r"[A-Z][a-z]+", _CAPITAL_MONTHS), "sep", "sept", "mars", "mai"))
)
_WORD = re.compile(rf"[{_L}]+|[\u0600-\u06ff]+|[\u0900-\u097f]+")
_DAY = rf"(?:0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th|er|º|ª)?+(?![{_W}:])"
_THE = r"(?:(?:the|der|dem|den|le|el|il|o|de) )?"
_DAYS = rf"{_DAY}(?:\.?,? ?(?:[-–/&+]|and|und|et|y|e|en|to|bis) ?{_DAY})?+"
_YEAR = r"[12][0-9]{3}(?![0-9])(?![.,][0-9])"
_OF = "(?:(?:of|de|del|do|di|van) |d['’])"
_NAMED_DATE = re.compile(
    rf"(?<![{_W}.,:]){_DAYS}\.?[ /.-]{{0,2}}{_OF}?(?:{_MONTH}|(?:mai|mars)(?![{_W}]))(?:[ ,/.-]{{1,2}}{_OF}?{_YEAR})?+"
    rf"|(?<![{_W}]){_MONTH}[ .]{{1,2}}{_THE}{_DAYS},? {_YEAR}"
    rf"|(?<![{_W}])(?:{_YEAR}[ ,]{{1,2}}|(?<!\b[IiEe][nm] )){_MONTH}[ .]{{1,2}}{_THE}{_DAYS}(?![.,][0-9])"
    rf"|(?<![{_W}]){_MONTH},?[ -]{_OF}?{_YEAR}"
    r"|(?<![0-9])(?:[0-9]{1,4} ?[年년] ?)?+[0-9]{1,2} ?[月월](?: ?[0-9]{1,2} ?[日號号일])?+"
)
"""A date with the name of its month, such as `24 March 2024`, `March 24th`, or `2024年3月24日`."""
_YEAR_AND_MONTH = re.compile(r"[12][0-9]{3}-(?:0[1-9]|1[0-2])")
_UNCERTAIN_UNITS = frozenset(("m", "mm", "L", "T"))
"""Units that stand for thousands or millions, too."""
_ONLY_CODES = re.compile(rf"(?<![{_W}]){_CODE}(?![{_W}])")
_MAX_WRITTEN_DIGITS = 100
_CUT_CHARS = 120
"""Characters on each side of a place in which the number around it is read."""
_CUT_AFTER = re.compile(r"[0-9]([.,:'/^×٫_~–-]|\*\*)?\Z")
_CUT_BEFORE = re.compile(r"([.,:'/^×٫_~–-]|\*\*)?[0-9]")
"""Digits on both sides of a place, with a mark between them or without one."""
_OTHER_WORD = re.compile(
    rf"(?<!\S)(?!(?i:{'|'.join(_SCALE_STEMS.split())}|(?:{_SCALE_SHORT}|{_MINUS_WORDS}|{_CODE}|{_BEFORE_NO_MINUS}"
    r"|in|and|und|et|raised|to|the|power|of|exponent|hoch|puissance|elevado|la)(?![a-z])))[a-z]{2,}(?=[\s.,;:!?])"
)
"""A word between spaces that is in no number, so not `million`, `minus`, or a word of `to the power of`."""
_POWER_BEFORE = re.compile(rf"[{_RAISED}⁺⁻]")
"""An exponent; a footnote looks like one."""
_CODE_AFTER = re.compile(rf"[{_W}][-_/@.–]?\Z")
_CODE_BEFORE = re.compile(rf"[-_/@–]?[{_W}]|\.[0-9]")
"""Letters or digits on both sides of a place, with a mark between them that continues a code."""
_PHONE_IN_TEXT = re.compile(rf"(?<![{_W}])(?:{_PHONE})")
_TIME_OF_DAY = re.compile(rf"[0-9]{{1,2}}(?:[:.][0-9]{{2}})? ?(?:[aApP](?:[mM](?![{_W}])|\.[mM]\.)|Uhr|h[0-9]{{2}})")
_END_OF_SENTENCE = re.compile(r"\s*[.!。]?\s*")
_MAX_UNIT_CHARS = 24
_UNIT_BEFORE = re.compile(rf"(?P<unit>[A-Z]{{0,2}}[{_CURRENCIES}]|(?<![{_W}])(?i:{_CODE}))[\s*_`~+–-]{{0,4}}\Z")
_UNIT_BEHIND = re.compile(rf"[\s*_`~-]{{0,4}}(?P<unit>[{_CURRENCIES}%‰]|°[CF]?|[^\W\d_]{{1,12}}\.?[²³23]?(?!\w))")
_UNIT_NAMES = {
    name: names[0]
    for names in (
        ("€", "eur", "euro", "euros"),
        ("$", "usd", "us$", "dollar", "dollars"),
        ("£", "gbp", "pound", "pounds"),
        ("¥", "jpy", "yen", "円", "cny", "rmb", "元"),
        ("₹", "inr", "rs", "rupee", "rupees"),
        ("₩", "krw", "원"),
        ("₽", "rub", "руб"),
        ("%", "percent", "pct", "prozent"),
    )
    for name in names
}
"""The first name stands for the others."""
_SPACED_PERCENT = re.compile(rf"[ {_NO_BREAK}\u202f\u2009]?[%‰％٪°]")


def _part(spaces: str) -> str:
    """Return the expression for a number with what touches it; `spaces` is that for groups with spaces between."""
    group = "[0-9]{3}(?![0-9])"
    tens = rf" ?[×x*·⋅] ?10(?:(?:\^|\*\*)\{{?(?P<power>[-+]?[0-9]{{1,6}})\}}?|(?P<raised>[⁺⁻]?[{_RAISED}]{{1,6}}))"
    return (
        rf"(?:10(?:\^\{{?(?P<ten>[-+]?[0-9]{{1,6}})\}}?(?![0-9^]|[.,][0-9])|(?P<below>⁻[{_RAISED}]{{1,6}}))|(?:(?P<spaced>[1-9][0-9]{{0,2}}(?:{spaces}(?:{_NO_BREAK}{group}){{1,{MAX_GROUPS}}}+|(?:_{group}(?![{_W}])){{1,{MAX_GROUPS}}}+(?!_[{_W}]))(?:[.,٫][0-9]++)?+)"
        rf"|(?P<plain>[0-9]++(?:[.,'٫][0-9]++)*+|(?<![\w.)\]])[.٫][0-9]++(?![.,][0-9]))|(?<![{_W}.,'])(?=[{_FRACTIONS}]))"
        rf"(?:[ {_NO_BREAK}]?(?P<fraction>[{_FRACTIONS}]))?+"
        rf"(?:[eE](?P<exponent>[-+]?[0-9]++)(?![0-9_])|{tens})?+)(?:¹(?![{_RAISED}]))?+"
        rf"(?P<unit>{_TEN_THOUSANDS}|[kcmd]?m[23](?![{_W}])|(?![xX][0-9])[{_L}]++[{_RAISED}⁺⁻]*+|[%‰]|°[CFK]?|[{_SYMBOLS}])?+"
    )


def _token(spaces: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the expressions for a token, and for the parts of one that may be numbers."""
    part = _part(spaces)
    bare = re.sub(r"\(\?P<\w+>", "(?:", part)
    join = rf"(?:(?:[-+–/:]|[xX×](?=[0-9]))(?:(?:[{_SYMBOLS}]|{_CODE}) ?)?+(?=[0-9])|(?<=[万萬億亿])(?=[0-9]))"
    begins = rf"[{_W}{_RAISED}⁺⁻]++|(?:[-@]|_++)[{_W}]++|\^[-({{]*+[{_W}]*+"
    token = (
        r"(?P<address>(?i:https?://|www\.)[^\s<>\"'`。，、）]*+)"
        rf"|(?P<hex>0[xX][0-9A-Fa-f]++[{_W}]*+)"
        rf"|(?P<phone>{_PHONE})"
        rf"|(?P<currency>{_CODE})(?=[-+–]?[0-9.])"
        rf"|(?P<word>[{_L}][{_W}]*+(?:(?:[-@]|_++|(?<=[0-9])\.)[{_W}]++)*+)"
        rf"|(?P<parts>{bare}(?:{join}{bare})*+)(?P<tail>(?:(?:{begins})(?:{begins}|[.:+][{_W}]++)*+)?+)"
    )
    return re.compile(token), re.compile(part)


_GRAMMARS = {
    "none": _token(""),
    "free": _token(rf"(?: [0-9]{{3}}(?![0-9])){{1,{MAX_GROUPS}}}+|"),
    "careful": _token(rf"(?: [0-9]{{3}}(?![0-9])){{1,{MAX_GROUPS}}}+(?![.,][0-9]{{3}}(?![0-9]))|"),
}
"""Whether `5 200` is one number: never, as in English; always, as in French; or where `,000` does not follow."""


@dataclass(frozen=True, slots=True)
class _Digits:
    """Digits that make a number, with their place in a part, and what else they may mean as one number."""

    start: int
    end: int
    plain: str
    other: str | None = None
    ambiguous: bool = False


class _Reader:
    """Reads the numbers of one text."""

    def __init__(self, original: str, convention: Convention | None) -> None:
        self.original, self.convention = original, convention
        self.folded = _Folded(original)
        self.text = self.folded.text
        spaces = "careful" if convention is None else "free" if convention.group == " " else "none"
        self.token, self.part = _GRAMMARS[spaces]
        self.currency_end = self.number_end = -1

    def numbers(self) -> Iterator[Number]:
        """Yield the numbers."""
        excluded = _Spans((_named_dates(self.text), _ACCOUNT.finditer(self.text)))
        for run in _RUN.finditer(self.text):
            place, end = run.span()
            while token := self.token.search(self.text, place, end):
                place = token.end()
                kind = token.lastgroup
                if kind == "phone" and not _is_phone(token[0]):
                    place = token.start() + 1
                elif kind == "currency":
                    self.currency_end = place
                elif kind == "tail" and not excluded.have(token.start()):
                    yield from self._chunk(token)

    def _chunk(self, token: re.Match[str]) -> Iterator[Number]:
        """Yield the numbers of a token, none where it is a code, a date, a time, or a phone number."""
        start, end = token.span("parts")
        if not token["tail"] and (whole := token["parts"]).isdecimal() and (whole[0] != "0" or len(whole) == 1):
            yield self._whole(whole, start, end)  # most numbers are like this
            self.number_end = end
            return
        if token["tail"] and not _is_word(token["tail"]):
            return
        parts = list(self.part.finditer(self.text, start, end))
        joins = [self.text[left.end() : right.start()][:1] for left, right in pairwise(parts)]
        if joins and _are_of_a_code(token["parts"], joins):
            return
        if self._is_code_with_scale(parts, joins, token["tail"]):
            return
        numbers: list[Number] = []
        for part, join in zip(parts, [".", *joins], strict=True):
            digits = self._digits(part)
            if digits is None:
                return
            if not join and _scale(part["unit"] or "") < numbers[-1].value.adjusted():  # 1億2000万
                low = self._number(part, digits[-1], last=True)
                if low.scale:  # 3万4千
                    numbers.append(low)
                else:
                    numbers[-1] = self._sum(numbers[-1], low)
            else:
                numbers += [self._number(part, digit, last=digit is digits[-1]) for digit in digits]
        yield from numbers
        self.number_end = end

    def _is_code_with_scale(self, parts: Sequence[re.Match[str]], joins: Sequence[str], tail: str) -> bool:
        """Return whether a letter and a hyphen make a code: 42B-7, 7K-A, 40A-7; not so for 5M-10M and $5M-6."""
        if tail.startswith("-") and parts[-1]["unit"] in _LETTER_SCALES:
            return True
        pairs = zip(pairwise(parts), joins, strict=True)
        return any(
            join in ("-", "/")
            and (left["unit"] in _LETTER_SCALES or _ONE_CAPITAL.fullmatch(left["unit"] or ""))
            and right["unit"] not in (left["unit"], *_LETTER_SCALES)
            and not _MONEY_BEFORE.search(self.text, max(0, left.start() - 6), left.start())
            for (left, right), join in pairs
        )

    def _digits(self, part: re.Match[str]) -> list[_Digits] | None:
        """Return the digits of a part, several where it is a list such as 1,2,3; None where it is not a number."""
        if part["spaced"]:
            if part["fraction"]:
                return None
            return _digits_with_spaces(part["spaced"], self.convention)
        if part["plain"]:
            digits = _digits_with_marks(part["plain"], self.convention)
            return None if part["fraction"] and not part["plain"].isdigit() else digits
        if part["ten"] or part["below"]:
            return [_Digits(0, 2, "1")]
        return [_Digits(0, 0, "0")]

    def _whole(self, digits: str, start: int, end: int) -> Number:
        unit = self._unit_before(start)
        start, sign = self._sign(start)
        value = Decimal(f"-{digits}" if sign == "-" else digits)
        first, behind = self.folded.span(start, end)
        scale = self._scale_behind(start, end, is_bare=True)
        readings = (value, -value) if sign == "?" else (value,)
        source = self.original[first:behind]
        return Number(value, first, behind, source, unit, readings, scale=scale)

    def _scale_behind(self, start: int, end: int, *, is_bare: bool) -> str:
        """Return what follows a number and makes it larger: a word, or a letter that a currency tells from a unit."""
        if is_bare and _BARE_SCALE.match(self.text, end):
            return ""
        match = _SCALE_FOLLOWS.match(self.text, end) or _LETTER_AND_MONEY.match(self.text, end)
        if match is None and _MONEY_BEFORE.search(self.text, max(0, start - 6), start):
            match = _LETTER_FOLLOWS.match(self.text, end)
        if match is None:
            return ""
        return self.original[self.folded.span(end - 1, end)[1] : self.folded.span(end, match.end())[1]]

    def _number(self, part: re.Match[str], digits: _Digits, *, last: bool) -> Number:
        start, end = part.start() + digits.start, part.start() + digits.end
        unit, exponent, scale = "", 0, 0
        fraction = ""
        if last:
            end = part.start("unit") if part["unit"] else part.end()
            unit, exponent = part["unit"] or "", _exponent(part)
            fraction = part["fraction"] or ""
            scale = _scale(unit) if unit else 0
        written_unit = unit
        if scale:
            end, unit = part.end(), ""
        sign_start, doubt = self._sign(part.start()) if start == part.start() else (start, "")
        sign = "-" if doubt == "-" else ""
        values = [_decimal(sign, digits.plain, fraction, exponent + scale)]
        if digits.other is not None:
            values.append(_decimal(sign, digits.other, fraction, exponent + scale))
        if scale and written_unit.isascii():  # 24k gold
            values.append(_decimal(sign, digits.plain, fraction, exponent))
        ambiguous = digits.ambiguous or len(values) > 1
        if doubt == "?":
            values += [-value for value in values]
        if not unit and not scale and start == part.start():
            unit = self._unit_before(start)
        first, behind = self.folded.span(sign_start, end)
        behind_number = self._scale_behind(sign_start, end, is_bare=False) if last else ""
        source = self.original[first:behind]
        factor = written_unit if scale else ""
        return Number(values[0], first, behind, source, unit, tuple(values), ambiguous, behind_number, factor)

    def _sum(self, high: Number, low: Number) -> Number:
        with localcontext(_EXACT):
            value = high.value + low.value
        source = self.original[high.start : low.end]
        return Number(value, high.start, low.end, source, low.unit, (value,), factor=low.factor or high.factor)

    def _sign(self, start: int) -> tuple[int, str]:
        """Return where a number with its sign starts, and its sign: `-`, `?` where it may have one, or nothing."""
        window = self.text[max(0, start - _MAX_SIGN_CHARS) : start]
        touching = None
        if "-" in window[-6:] or "+" in window[-6:] or "–" in window[-6:]:
            touching = _SIGNED.search(self.text, max(0, start - 6), start)
        if touching is None:
            return self._sign_apart(start, window)
        place, sign = touching.start(), touching[1]
        before = self.text[place - 1 : place]
        if re.match(rf"[{_UNSPACED}]", before):
            counts = self.number_end < 0 or place - self.number_end > 3
        elif (sign == "–" and self.text[max(0, place - 2) : place].rstrip()[-1:].isdigit()) or (
            before != " " and self._follows_number(place)
        ):
            counts = False
        elif before in ("'", '"'):
            counts = not self.text[place - 2 : place - 1].isdigit()
        else:
            counts = place == self.currency_end or not re.match(r"[\w)\]}%‰°/.+–-]", before)
        return (place, "" if sign == "+" else "-") if counts else (start, "")

    def _sign_apart(self, start: int, window: str) -> tuple[int, str]:
        """Return the sign of a number that is a word or has a space behind it: `minus 5`, `− 5`, `零下5`.

        After a number, it subtracts. A hyphen or a short dash with a space behind it is more often a bullet or the end
        of a clause.
        """
        match = _SIGN_APART.search(window)
        if match is None or match["bound"]:
            return start, ""
        place = start - len(match[0])
        is_behind_space = self.text[place - 1 : place] in (" ", _NO_BREAK)
        if (0 <= self.number_end <= place and _SHORT_UNIT.fullmatch(self.text, self.number_end, place)) or (
            self._follows_number(place - 1 if is_behind_space else place)
        ):
            return start, ""
        if match["dash"] and self.original[self.folded.span(place, place + 1)[0]] not in _MINUS_SIGNS:
            is_clear = match["tie"] or _BEFORE_MINUS.search(self.text, max(0, place - 2), place)
            if not (is_clear or _ONLY_NUMBER.fullmatch(self.text)):
                return start, "?"
        return place, "-"

    def _follows_number(self, place: int) -> bool:
        return _AFTER_NUMBER.search(self.text, max(0, place - _MAX_AFTER_NUMBER_CHARS), place) is not None

    def _unit_before(self, start: int) -> str:
        """Return the sign or the code of a currency that touches a number from the left."""
        if self.text[start - 1 : start] in ("", " "):
            return ""
        match = _CURRENCY_BEFORE.search(self.text, max(0, start - 5), start)
        return match[1] if match else ""


def _named_dates(text: str) -> Iterable[re.Match[str]]:
    """Return the dates in a text that have the name of their month; most texts have no such name, which is fast."""
    if "月" not in text and "월" not in text and _MONTH_WORDS.isdisjoint(map(str.casefold, _WORD.findall(text))):
        return ()
    return _NAMED_DATE.finditer(text)


class _Spans:
    """Parts of a text in which no number is read; places are asked for in order."""

    def __init__(self, matches: Iterable[Iterable[re.Match[str]]]) -> None:
        self._spans = sorted(match.span() for some in matches for match in some)
        self._next = 0
        self._end = -1

    def have(self, place: int) -> bool:
        """Return whether a place is inside one of them."""
        while self._next < len(self._spans) and self._spans[self._next][0] <= place:
            self._end = max(self._end, self._spans[self._next][1])
            self._next += 1
        return place < self._end


def _join_numbers(text: str, numbers: list[Number]) -> Sequence[Number]:
    """Mark the numbers that share the scale of the next one (`5 to 10k`), and leave out those of powers (`2 ^ 5`)."""
    joined: set[int] = set()
    for place in range(len(numbers) - 2, -1, -1):
        number, following = numbers[place], numbers[place + 1]
        between = text[number.end : following.start]
        if len(between) > _MAX_AFTER_NUMBER_CHARS:
            continue
        between = _fold(between)
        scale = following.scale or following.factor
        if _is_added(number, between, following):
            numbers[place] = _add(text, number, following)
            joined.add(place + 1)
        elif scale and not (number.factor or number.scale) and _SCALE_CONNECTOR.fullmatch(between.strip()):
            numbers[place] = replace(number, scale=scale)
        elif _SIGN_OF_PRICE.fullmatch(between) or _is_power(text, number.start, between):
            joined |= {place, place + 1}
        elif place + 1 in joined and _SIGN_OF_PRODUCT.fullmatch(between):
            joined.add(place)
    fractions = _Spans((_MIXED_FRACTION.finditer(text),))
    return [
        number
        for place, number in enumerate(numbers)
        if place not in joined and not fractions.have(number.start) and not _is_in_power(text, number)
    ]


def _is_added(number: Number, between: str, following: Number) -> bool:
    """Return whether a number is added to the scale of the one before it: `2 thousand 500`, `3万 4,800`."""
    if len(following.summands) == MAX_SUMMANDS:
        return False
    if number.factor and not number.scale:
        is_sign = number.factor not in _LETTER_SCALES
        return is_sign and between in ("", " ", _NO_BREAK) and following.value.adjusted() < _scale(number.factor)
    scale = _fold(number.scale)
    if not scale or not between.startswith(scale):
        return False
    behind = between[len(scale) :]
    is_short = sum(map(str.isalpha, scale)) <= _MAX_SHORT_SCALE_CHARS
    return bool(_ADDED.fullmatch(behind)) and (is_short or not behind.startswith("."))


def _add(text: str, number: Number, following: Number) -> Number:
    """Return a number with a scale and what is added to it as one."""
    summands = (
        (number.value, bool(number.scale)),
        *(following.summands or ((following.value, bool(following.scale)),)),
    )
    source = text[number.start : following.end]
    return replace(
        number, end=following.end, text=source, unit=following.unit, scale=following.scale, summands=summands
    )


def _is_in_power(text: str, number: Number) -> bool:
    """Return whether a number is the base of a power whose exponent is elsewhere, an exponent, or under a root."""
    before = text[max(0, number.start - _MAX_EXPONENT_SIGN_CHARS) : number.start]
    return bool(_BEFORE_EXPONENT.search(before) or _BEFORE_POWER.match(text, number.end + len(number.unit)))


def _is_power(text: str, start: int, between: str) -> bool:
    """Return whether what stands between two numbers makes them a power; a space ends emphasis of the first one."""
    is_emphasis = between == "** " and text[max(0, start - 2) : start] == "**"
    return not is_emphasis and _POWER_CONNECTOR.fullmatch(between) is not None


_CURRENCY_BEFORE = re.compile(rf"([{_SYMBOLS}]|(?<![{_W}]){_CODE})[-+–]?\Z")


def _are_of_a_code(text: str, joins: Sequence[str]) -> bool:
    """Say whether joined numbers are a time, a date, or a code: 10:24, 2024-05-01, 05/01/2024, 2024-05."""
    if ":" in joins or joins.count("-") > 1:
        return True
    return bool(_SLASHED_DATE.fullmatch(text) or _YEAR_AND_MONTH.fullmatch(text))


def _is_phone(text: str) -> bool:
    """Say whether digits that look like a phone number are one: `+1 250 000` is a number with a sign."""
    if not text.startswith("+"):
        return True
    count = sum(character.isdigit() for character in text)
    return count >= (7 if len(text) > count + 1 else 10) and not _GROUPED_PHONE.fullmatch(text)


def _is_word(tail: str) -> bool:
    """Say whether what follows a number and a hyphen is a word, as in `30-day`, which does not make it a code."""
    if not tail.startswith("-") or not re.fullmatch(rf"(?:-[{_L}]+)+", tail):
        return False
    word = tail[1:].partition("-")[0]
    return not word.isupper() or word in _CAPITAL_UNITS


def _digits_with_spaces(text: str, convention: Convention | None) -> list[_Digits]:
    whole, mark, fraction = re.sub("[,٫]", ".", text).partition(".")
    groups = re.split(rf"[ {_NO_BREAK}_]", whole)
    plain = "".join(groups) + (f".{fraction}" if mark else "")
    return [_Digits(0, len(text), plain, ambiguous=" " in whole and convention is None)]


def _digits_with_marks(text: str, convention: Convention | None) -> list[_Digits] | None:
    """Return the digits of a text with points, commas, and apostrophes; None for a version, an address, or a code."""
    groups, marks = re.split("[.,'٫]", text), re.findall("[.,'٫]", text)
    if len(groups[0]) > 1 and groups[0].startswith("0"):
        return None
    if not marks:
        return [_Digits(0, len(text), text)]
    if not groups[0] or marks[0] == "٫":
        return [_Digits(0, len(text), f"{groups[0] or 0}.{groups[1]}")] if len(marks) == 1 else None
    kinds = set(marks)
    if len(kinds) == 1:
        plain = _with_one_mark(text, groups, marks[0], convention)
        return _digits_of_list(text, groups, marks[0], convention) if plain is None else [plain]
    if len(kinds) == 2 and marks.count(marks[-1]) == 1 and marks[-1] != "'" and _are_groups(groups[:-1], marks[0]):
        return [_Digits(0, len(text), f"{''.join(groups[:-1])}.{groups[-1]}")]
    return _digits_of_list(text, groups, ",", convention)


def _with_one_mark(text: str, groups: list[str], mark: str, convention: Convention | None) -> _Digits | None:
    """Return the digits of groups with the same mark between them; None for a list, an address, or a version."""
    joined, decimal = "".join(groups), ".".join(groups)
    if not _are_groups(groups, mark):
        return _Digits(0, len(text), decimal) if len(groups) == 2 and mark != "'" else None
    if mark == "." and len(groups) == 4 and all(int(group) < 256 and str(int(group)) == group for group in groups):
        return None  # the address of a computer
    is_settled = mark == "'" or (convention is not None and mark in (convention.decimal, convention.group))
    if len(groups) > 2:
        return _Digits(0, len(text), joined, ambiguous=mark == "," and not is_settled)
    if mark == (convention.decimal if convention is not None and is_settled else "."):
        return _Digits(0, len(text), decimal, None if is_settled else joined)
    return _Digits(0, len(text), joined, None if is_settled else decimal)


def _digits_of_list(text: str, groups: list[str], mark: str, convention: Convention | None) -> list[_Digits] | None:
    """Return the digits of each number in a list such as 1,2,3; None where that may be a broken number."""
    items = text.split(mark)
    if mark in (".", "'") or len(items) == 1 or any(len(re.split("[.']", item)[0]) == 3 for item in items[1:]):
        return None
    numbers: list[_Digits] = []
    place = 0
    for item in items:
        inner = _digits_with_marks(item, convention)
        if inner is None or len(inner) != 1:
            return None
        numbers.append(_Digits(place, place + len(item), inner[0].plain, inner[0].other, ambiguous=True))
        place += len(item) + len(mark)
    return numbers


def _are_groups(groups: Sequence[str], mark: str) -> bool:
    """Say whether digits are grouped as thousands, or with commas also as lakhs: 12,34,567."""
    head, *rest = groups
    if not rest or not 1 <= len(head) <= 3 or head.startswith("0") or len(rest[-1]) != 3:
        return False
    if all(len(group) == 3 for group in rest):
        return True
    return mark == "," and len(head) < 3 and all(len(group) == 2 for group in rest[:-1])


def _exponent(part: re.Match[str]) -> int:
    exponent = part["exponent"] or part["power"] or part["raised"] or part["ten"] or part["below"]
    if not exponent:
        return 0
    exponent = "".join(str(unicodedata.digit(sign)) if sign in "⁰¹²³⁴⁵⁶⁷⁸⁹" else sign for sign in exponent)
    exponent = exponent.replace("⁻", "-").replace("⁺", "+")
    sign, digits = ("-" if exponent.startswith("-") else ""), exponent.lstrip("-+").lstrip("0")
    return int(sign + (digits or "0")) if len(digits) <= 6 else int(f"{sign}{MAX_EXPONENT}")


_SCALES = {"k": 3, "K": 3, "M": 6, "B": 9, "bn": 9, "百": 2, "千": 3, "万": 4, "萬": 4, "億": 8, "亿": 8}


_ONE_CAPITAL = re.compile("[A-Z]")
_LETTER_SCALES = frozenset(sign for sign in _SCALES if sign.isascii())


def _scale(unit: str) -> int:
    """Return the power of ten that a unit stands for, 0 where it is not one."""
    if unit in _SCALES:
        return _SCALES[unit]
    return sum(_SCALES[sign] for sign in unit) if re.fullmatch(_TEN_THOUSANDS, unit) else 0


def _decimal(sign: str, plain: str, fraction: str, exponent: int) -> Decimal:
    if fraction:
        part = Decimal(repr(unicodedata.numeric(fraction)))
        plain = f"{plain}.{str(part).partition('.')[2]}"
    return Decimal(f"{sign}{plain}e{exponent}")
