"""Days in text: which days of the calendar a text may name, in the spellings of people and programs.

Numbers are read in every order that gives a day: `01.05.2024` is 1 May and 5 January. A year of two digits may be one
of 1900 and of 2000. A day with the name of its month may lack the year (`May 1`): it may be of any. Time zones are not
read, and neither are numbers without a year (`05/01`), nor days in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from vivavoce.comparing.text import fold

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
"""Years in which days are read, so that other long numbers are none."""
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
