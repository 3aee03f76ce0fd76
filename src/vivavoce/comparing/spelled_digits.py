"""Numbers that are spelled out, digit by digit or in pairs: "five five three zero" and "fifty-five thirty" are 5530.

English and German. Each word stands for the digits of a number below 100, and words that follow each other are one
number, as people read a code aloud. Not read: "hundred", "thousand", ordinal numbers, other languages, and one digit
alone, because "one" and "eins" are often no number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vivavoce.comparing.text import fold

_ENGLISH_UNITS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_ENGLISH_TEENS = [
    "ten",
    "eleven",
    "twelve",
    *(f"{stem}teen" for stem in ["thir", "four", "fif", "six", "seven", "eigh", "nine"]),
]
_ENGLISH_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_GERMAN_UNITS = ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]
_GERMAN_TEENS = [
    "zehn",
    "elf",
    "zwölf",
    *(f"{stem}zehn" for stem in ["drei", "vier", "fünf", "sech", "sieb", "acht", "neun"]),
]
_GERMAN_TENS = ["zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]
_ZEROS = ["zero", "nought", "null", "oh", "o"]
_EXCLAMATIONS = frozenset(("oh", "o"))
"""Words for zero that are more often no number."""
_ONES = frozenset(("one", "eins"))
_REPEATS = {"double": 2, "triple": 3, "doppel": 2}
_SEPARATOR = re.compile(r"[\s,./-]*")
_TIGHT = re.compile(r"[ -]?")
_WORD = re.compile(r"[^\W_]+")


def _digits_of_words() -> dict[str, str]:
    words = {**dict.fromkeys(_ZEROS, "0"), "eins": "1", "zwo": "2"}
    for units, teens, tens in (
        (_ENGLISH_UNITS, _ENGLISH_TEENS, _ENGLISH_TENS),
        (_GERMAN_UNITS, _GERMAN_TEENS, _GERMAN_TENS),
    ):
        words |= {word: str(number) for number, word in enumerate(units, 1) if word != "ein"}
        words |= {word: str(number) for number, word in enumerate(teens, 10)}
        words |= {word: str(number * 10) for number, word in enumerate(tens, 2)}
    for ten, tens in enumerate(_GERMAN_TENS, 2):
        words |= {f"{unit}und{tens}": f"{ten}{number}" for number, unit in enumerate(_GERMAN_UNITS, 1)}
    spelled = {fold(word): digits for word, digits in words.items()}
    return spelled | {word.replace("ü", "ue").replace("ö", "oe"): digits for word, digits in spelled.items()}


_DIGITS = _digits_of_words()
_JOINED = re.compile(rf"(?:{'|'.join(sorted((w for w in _DIGITS if len(w) > 2), key=len, reverse=True))})+")
_PART = re.compile("|".join(sorted((w for w in _DIGITS if len(w) > 2), key=len, reverse=True)))


@dataclass(frozen=True, slots=True)
class _Spelled:
    """A word for a number in a folded text, with its digits; a word for a repetition has a count instead."""

    start: int
    end: int
    digits: str
    repeats: int = 1
    is_tens: bool = False
    is_certain: bool = True


def digits_from_words(text: str) -> str:
    """Return a folded text in which numbers of two digits or more that are spelled out stand as digits."""
    folded = fold(text)
    parts: list[str] = []
    place = 0
    for run in _runs(folded):
        digits = _digits(run, folded)
        if len(digits) > 1 and any(word.is_certain for word in run):
            parts += [folded[place : run[0].start], digits]
            place = run[-1].end
    return "".join([*parts, folded[place:]])


def with_numerals(text: str) -> str:
    """Return a text in which each word for a number below 100 stands as its digits: `12 (5)` for `12 (five)`.

    Words that follow each other are numbers of their own, except for `fifty-five`. "One" is often no number, and stays.
    """
    parts: list[str] = []
    place = tens_end = 0
    for match in _WORD.finditer(text):
        word = fold(match[0])
        digits = _DIGITS.get(word, "")
        is_unit = len(digits) == 1 and digits != "0"
        if is_unit and tens_end and _TIGHT.fullmatch(text, tens_end, match.start()):
            parts[-1] = parts[-1][0] + digits
            place, tens_end = match.end(), 0
        elif digits and word not in _EXCLAMATIONS and word not in _ONES:
            parts += [text[place : match.start()], digits]
            place = match.end()
            tens_end = place if len(digits) == 2 and digits[1] == "0" and digits != "10" else 0
        else:
            tens_end = 0
    return "".join([*parts, text[place:]])


def _runs(folded: str) -> Iterator[Sequence[_Spelled]]:
    """Yield the words for numbers that follow each other, with digits between them."""
    run: list[_Spelled] = []
    for match in _WORD.finditer(folded):
        word = _spelled(match)
        if run and (word is None or not _SEPARATOR.fullmatch(folded, run[-1].end, match.start())):
            yield run
            run = []
        if word is not None:
            run.append(word)
    if run:
        yield run


def _spelled(match: re.Match[str]) -> _Spelled | None:
    word = match[0]
    if word in _REPEATS:
        return _Spelled(*match.span(), "", _REPEATS[word], is_certain=False)
    if word in _DIGITS:
        is_tens = len(_DIGITS[word]) == 2 and _DIGITS[word].endswith("0")
        return _Spelled(*match.span(), _DIGITS[word], is_tens=is_tens, is_certain=word not in _EXCLAMATIONS)
    if word.isdecimal():
        return _Spelled(*match.span(), word, is_certain=False)
    if _JOINED.fullmatch(word):
        return _Spelled(*match.span(), "".join(_DIGITS[part] for part in _PART.findall(word)))
    return None


def _digits(run: Sequence[_Spelled], folded: str) -> str:
    """Return the digits of a run: "fifty-five" is 55, "double five" is 55, too."""
    digits, repeats = "", 1
    previous: _Spelled | None = None
    for word in run:
        is_unit = len(word.digits) == 1 and word.digits != "0"
        if previous is not None and previous.is_tens and is_unit and _TIGHT.fullmatch(folded, previous.end, word.start):
            digits = digits[:-1] + word.digits
        elif word.digits:
            digits += word.digits * (repeats if len(word.digits) == 1 else 1)
        repeats, previous = word.repeats, word
    return digits
