"""Spellings of one value: codes, days of the calendar, and numbers that are spelled out digit by digit.

Codes: all spellings of a code such as `TK-8812` share its letters and digits, whatever their case, marks, and spaces. A
code has a digit. A mark for decimals or times between two digits stays a part of it: `24.90` is not `2490`.

Days: numbers are read in every order that gives a day: `01.05.2024` is 1 May and 5 January. A year of two digits may be
one of 1900 and of 2000. A day with the name of its month may lack the year (`May 1`): it may be of any. Time zones are
not read, and neither are numbers without a year (`05/01`), nor days in words.

Spelled-out numbers, in English and German: "five five three zero" and "fifty-five thirty" are 5530. Each word stands
for the digits of a number below 100, and words that follow each other are one number, as people read a code aloud. Not
read: "hundred", "thousand", ordinal numbers, other languages, and one digit alone, because "one" and "eins" are often
no number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from vivavoce.comparing.text import GAP, MIN_CODE_CHARS, PlainText, fold

_WORD = r"[^\W_]+"
_CODE = re.compile(rf"{_WORD}(?:{GAP}{_WORD})*")
_SIGN = re.compile(r"[^\W_]|(?<=\d)[.,:'](?=\d)(?!\d{3}(?!\d))")
"""What counts in a code: letters, digits, and marks that are not those of thousands."""
_AROUND = "+()[]{}<>\"'`#.,;:!?*_ \t\r\n"
"""Signs around a code that are not a part of it."""
_EMPHASIS = "*_~`"
_MIN_DIGITS = 2
"""Digits of a code that is looked for in longer texts."""
_CENTS = re.compile(r"[.,]\d{1,2}\Z")
"""What ends an amount."""
_MAX_CODE_CHARS = 80
_MAX_CHARS = 4 * _MAX_CODE_CHARS
"""Characters of a code with the marks and spaces in it."""
_MAX_WORDS = 8
"""Words that a code in a longer text is written in: an IBAN has six groups."""


def code_of(text: str) -> str | None:
    """Return what all spellings of a code share, None for a text that is something else, such as a number or words."""
    return _read_code(_plain(text).strip(_AROUND))


def _read_code(plain: str) -> str | None:
    if not _has_digit(plain) or len(plain) > _MAX_CHARS or not _CODE.fullmatch(plain):
        return None
    code = "".join(_SIGN.findall(plain))
    if len(code) > _MAX_CODE_CHARS:
        return None
    if not any(map(str.isalpha, code)) and (len(code) < MIN_CODE_CHARS or _CENTS.search(plain)):
        return None
    return code


def codes_in(text: str) -> Iterator[str]:
    """Yield what `code_of` gives for each code of at least four characters that a text may name anywhere in it.

    Words with digits that follow each other may be one code, with a word of letters before them: `TK 88 12`.
    """
    words = [word.strip(_AROUND) for word in _plain(text).split()]
    for start, word in enumerate(words):
        if not _has_digit(word) and not (start + 1 < len(words) and _has_digit(words[start + 1])):
            continue
        for end in range(start, min(start + _MAX_WORDS, len(words))):
            if end > start and not _has_digit(words[end]):
                break
            text = " ".join(words[start : end + 1])
            if len(text) > _MAX_CHARS:
                break
            if (code := _read_code(text)) is not None and _is_long(code):
                yield code


def _is_long(code: str) -> bool:
    return len(code) >= MIN_CODE_CHARS and sum(map(str.isdecimal, code)) >= _MIN_DIGITS


def _plain(text: str) -> str:
    return fold(PlainText(text, without=_EMPHASIS).text)


def _has_digit(text: str) -> bool:
    return any(map(str.isdecimal, text))


_MONTHS = """
january february march april may june july august september october november december
januar februar märz april mai juni juli august september oktober november dezember
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
januari februari maart april mei juni juli augustus september oktober november december
"""
"""The months in English, German, French, Spanish, Italian, Portuguese, and Dutch."""
_MIN_MONTH_CHARS = 3
"""Letters of the shortest abbreviation of a month."""
_YEARS = range(1900, 2101)
"""Years in which days are read, so that other long numbers are not days."""
_ANY_YEAR = range(1970, 2071)
"""Years that a day without a year may be in."""
_GAP = r"\s{0,2}(?:[-/., ]|\b)\s{0,2}"
_MONTH = r"(?P<month>[^\W\d_]{3,10})"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|[.ºª°])?"
_OF = r"(?:(?:of|de|del|di)\s{1,2})?"
_END = r"(?![\d])"
_YEAR = r"(?P<year>\d{4}|'?\d{2})"
_IN_NUMBERS = (
    r"(?<!\d)(?P<first>\d{1,4})\s{0,2}[-/. 年년]\s{0,2}(?P<second>\d{1,2})"
    rf"\s{{0,2}}[-/. 月월]\s{{0,2}}(?P<third>\d{{1,4}})[日일]?{_END}"
)
_COMPACT = r"(?<!\d)(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})(?!\d)"
_WITH_NAME = (
    rf"(?<!\d){_DAY}{_GAP}{_OF}{_MONTH}\.?(?:{_GAP}{_OF}{_YEAR}{_END})?",
    rf"\b{_MONTH}\.?{_GAP}{_DAY}{_END}(?:,?{_GAP}{_OF}{_YEAR}{_END})?",
    rf"(?<!\d)(?P<year>\d{{4}}){_GAP}{_MONTH}\.?{_GAP}{_DAY}{_END}",
)
_TIME = (
    r"(?:[t,\s]{1,3}(?:at\s)?(?P<hour>\d{1,2})[:.h](?P<minute>\d{2})(?::(?P<seconds>\d{2})(?:\.\d{1,9})?)?"
    r"(?:\s?(?P<half>[ap])\.?m\b\.?)?)?"
)
_WEEKDAY = r"(?:[^\W\d_]{2,12}\.?,?\s{1,2})?"
_ZONE = r"\s?(?:z|utc|gmt|[+-]\d\d:?\d\d)?"
_PATTERNS = [re.compile(f"(?:{pattern}){_TIME}") for pattern in (_IN_NUMBERS, _COMPACT, *_WITH_NAME)]
_WHOLE = [re.compile(f"{_WEEKDAY}{pattern.pattern}{_ZONE}") for pattern in _PATTERNS]


def days_in(text: str) -> frozenset[str]:
    """Return the days that a text may name anywhere, as `2024-05-01`, and with each time as `2024-05-01 14:30`."""
    folded = fold(text)
    if not any(map(str.isdecimal, folded)):
        return frozenset()
    readings = {(parts, _time(match)) for match in _matches(folded) for parts in _parts(match.groupdict())}
    return frozenset(
        reading for parts, time in readings for day in _days_of(*parts) for reading in {day, f"{day}{time}"}
    )


def days_of(text: str) -> frozenset[str]:
    """Return the days that a text may be that names a day and nothing else but its weekday, a time, and a time zone.

    With a time other than midnight, each is a day with that time.
    """
    folded = fold(text)
    if not any(map(str.isdecimal, folded)):
        return frozenset()
    matches = [match for pattern in _WHOLE if (match := pattern.fullmatch(folded))]
    return frozenset(f"{day}{_time(match)}" for match in matches for day in _days(match))


def _matches(folded: str) -> Iterator[re.Match[str]]:
    for pattern in _PATTERNS:
        yield from pattern.finditer(folded)


def _days(match: re.Match[str]) -> Iterator[str]:
    for parts in _parts(match.groupdict()):
        yield from _days_of(*parts)


def _time(match: re.Match[str]) -> str:
    """Return the time that comes after a day, empty without one and for midnight."""
    if match["hour"] is None:
        return ""
    hour = int(match["hour"])
    if match["half"] is not None:
        hour = hour % 12 + (12 if match["half"] == "p" else 0)
    seconds = f":{match['seconds']}" if int(match["seconds"] or 0) else ""
    time = f" {hour:02}:{match['minute']}{seconds}"
    return "" if time == " 00:00" else time


def _parts(groups: Mapping[str, str | None]) -> Iterator[tuple[str | None, int, int]]:
    """Yield the year as it is written, the month, and the day that numbers and names may mean."""
    if (first := groups.get("first")) is not None:
        second, third = int(groups["second"] or 0), groups["third"] or ""
        if len(third) != 4 and len(first) in (2, 4):
            yield first, second, int(third)
        if len(first) <= 2 and len(third) in (2, 4):
            yield from ((third, second, int(first)), (third, int(first), second))
        return
    month, day = groups["month"] or "", int(groups["day"] or 0)
    for number in [int(month)] if month.isdecimal() else _MONTHS_BY_NAME.get(month, ()):
        yield groups.get("year"), number, day


def _days_of(year: str | None, month: int, day: int) -> Iterator[str]:
    for number in _years(year):
        try:
            yield date(number, month, day).isoformat()
        except ValueError:
            continue


def _years(year: str | None) -> Iterable[int]:
    if year is None:
        return _ANY_YEAR
    number = int(year.lstrip("'"))
    if len(year) < 4:
        return (1900 + number, 2000 + number)
    return (number,) if number in _YEARS else ()


def _months_by_name() -> Mapping[str, frozenset[int]]:
    """Return the months that each name, or beginning of one, may mean."""
    months: dict[str, frozenset[int]] = {}
    for names in _MONTHS.strip().splitlines():
        for number, name in enumerate(fold(names).split(), 1):
            for length in range(_MIN_MONTH_CHARS, len(name) + 1):
                months[name[:length]] = months.get(name[:length], frozenset()) | {number}
    return months


_MONTHS_BY_NAME = _months_by_name()


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
_WORDS_FOR_ONE = frozenset(("one", "eins"))
_REPEATS = {"double": 2, "triple": 3, "doppel": 2}
_SEPARATOR = re.compile(r"[\s,./-]*")
_TIGHT = re.compile(r"[ -]?")
_NUMBER_WORD = re.compile(r"[^\W_]+")


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
    digits_by_word = {fold(word): digits for word, digits in words.items()}
    return digits_by_word | {
        word.replace("ü", "ue").replace("ö", "oe"): digits for word, digits in digits_by_word.items()
    }


_DIGITS = _digits_of_words()
_JOINED = re.compile(rf"(?:{'|'.join(sorted((w for w in _DIGITS if len(w) > 2), key=len, reverse=True))})+")
_PART = re.compile("|".join(sorted((w for w in _DIGITS if len(w) > 2), key=len, reverse=True)))


@dataclass(frozen=True, slots=True)
class _NumberWord:
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
    for match in _NUMBER_WORD.finditer(text):
        word = fold(match[0])
        digits = _DIGITS.get(word, "")
        is_unit = len(digits) == 1 and digits != "0"
        if is_unit and tens_end and _TIGHT.fullmatch(text, tens_end, match.start()):
            parts[-1] = parts[-1][0] + digits
            place, tens_end = match.end(), 0
        elif digits and word not in _EXCLAMATIONS and word not in _WORDS_FOR_ONE:
            parts += [text[place : match.start()], digits]
            place = match.end()
            tens_end = place if len(digits) == 2 and digits[1] == "0" and digits != "10" else 0
        else:
            tens_end = 0
    return "".join([*parts, text[place:]])


def _runs(folded: str) -> Iterator[Sequence[_NumberWord]]:
    """Yield the words for numbers that follow each other, with digits between them."""
    run: list[_NumberWord] = []
    for match in _NUMBER_WORD.finditer(folded):
        word = _number_word(match)
        if run and (word is None or not _SEPARATOR.fullmatch(folded, run[-1].end, match.start())):
            yield run
            run = []
        if word is not None:
            run.append(word)
    if run:
        yield run


def _number_word(match: re.Match[str]) -> _NumberWord | None:
    word = match[0]
    if word in _REPEATS:
        return _NumberWord(*match.span(), "", _REPEATS[word], is_certain=False)
    if word in _DIGITS:
        is_tens = len(_DIGITS[word]) == 2 and _DIGITS[word].endswith("0")
        return _NumberWord(*match.span(), _DIGITS[word], is_tens=is_tens, is_certain=word not in _EXCLAMATIONS)
    if word.isdecimal():
        return _NumberWord(*match.span(), word, is_certain=False)
    if _JOINED.fullmatch(word):
        return _NumberWord(*match.span(), "".join(_DIGITS[part] for part in _PART.findall(word)))
    return None


def _digits(run: Sequence[_NumberWord], folded: str) -> str:
    """Return the digits of a run: "fifty-five" is 55, "double five" is 55, too."""
    digits, repeats = "", 1
    previous: _NumberWord | None = None
    for word in run:
        is_unit = len(word.digits) == 1 and word.digits != "0"
        if previous is not None and previous.is_tens and is_unit and _TIGHT.fullmatch(folded, previous.end, word.start):
            digits = digits[:-1] + word.digits
        elif word.digits:
            digits += word.digits * (repeats if len(word.digits) == 1 else 1)
        repeats, previous = word.repeats, word
    return digits
