"""Dates, times, money, quantities and the like in a text: each character belongs to one of them at most."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal, get_args

import regex

from vivavoce.comparing.numbers import numbers_in, read_number, show_number
from vivavoce.comparing.text import NOT_AFTER_WORD, NOT_BEFORE_WORD
from vivavoce.metrics.exact.personal_data import find_personal_data

Kind = Literal["url", "email", "phone", "date", "time", "money", "quantity", "code", "number"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In order of precedence: text that belongs to one kind is not searched for a later one."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something found in a text; `value` is the same for all its spellings, and `unit` what a quantity counts."""

    kind: Kind
    start: int
    text: str
    value: str
    unit: str = ""

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


def find_spans(text: str, region: str | None = None) -> list[Span]:
    """Return what a text holds, in order.

    `region` is the country in whose plan phone numbers without `+` are looked up; those written in the usual groups of
    digits, as in `555-123-4567`, are found without. Names of months, weekdays and units are English.
    """
    spans: list[Span] = []
    for kind in KINDS:
        new = list(_personal(text, region)) if kind == "email" else list(_FINDERS[kind](text))
        spans += new
        text = _without(text, new)
    return sorted(spans, key=lambda span: span.start)


def _without(text: str, spans: list[Span]) -> str:
    """Return a text of the same length in which these spans are blanked out."""
    parts: list[str] = []
    end = 0
    for span in sorted(spans, key=lambda span: span.start):
        if span.start >= end:
            parts += [text[end : span.start], "\0" * len(span.text)]
            end = span.end
    return "".join([*parts, text[end:]])


_URL = regex.compile(NOT_AFTER_WORD + r"(?:https?://|www\.)[^\s<>\"'`\\^{}|\0]+", regex.IGNORECASE)


def _urls(text: str) -> Iterator[Span]:
    for match in _URL.finditer(text):
        url = match[0].rstrip(".,;:!?*_]")
        url = url.rstrip(")") if "(" not in url else url
        yield Span("url", match.start(), url, url)


def _personal(text: str, region: str | None) -> Iterator[Span]:
    for datum in find_personal_data(text, ("email", "phone"), region):
        if datum.kind in ("email", "phone"):
            yield Span(datum.kind, datum.start, text[datum.start : datum.end], datum.key)


_PHONE = regex.compile(
    rf"{NOT_AFTER_WORD}(?<![.+/-])(?:"
    r"(?:\+?1[-. ])?(?:\([0-9]{3}\) ?|[0-9]{3}[-. ])[0-9]{3}[-. ][0-9]{4}"
    r"|\+[0-9]{1,3}(?:[ .-]?\(?[0-9]{1,5}\)?){2,6}"
    rf"){NOT_BEFORE_WORD}(?!-)"
)


def _phones(text: str) -> Iterator[Span]:
    for match in _PHONE.finditer(text):
        digits = re.sub(r"[^0-9+]", "", match[0])
        if 7 <= len(digits) <= 16:
            yield Span("phone", match.start(), match[0], digits)


_MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
_MONTH = (
    r"(?P<month>(?i:january|jan|february|feb|march|mar|april|apr|june|jun|july|jul|august|aug|september|sept|sep"
    r"|october|oct|november|nov|december|dec)(?![a-z])\.?|May\b|MAY\b)"  # "you may" is not a month
)
_WEEKDAY = r"(?i:mon|tues|wednes|thurs|fri|satur|sun)day"
_DAY = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12][0-9]{3})(?![0-9])"
_DATES = [
    regex.compile(rf"{NOT_AFTER_WORD}(?<![.-]){expression}{NOT_BEFORE_WORD}(?!-)")
    for expression in (
        r"(?P<year>[12][0-9]{3})(?P<mark>[-/])(?P<month>[01]?[0-9])(?P=mark)(?P<day>[0-3]?[0-9])(?:T[0-9:.]{4,15}Z?)?",
        rf"(?:{_WEEKDAY},? )?{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR})?",
        rf"(?:{_WEEKDAY},? )?{_MONTH} (?:the )?{_DAY}(?![0-9])(?:,? {_YEAR})?",
        rf"{_MONTH},? {_YEAR}",
        r"(?P<first>[0-3]?[0-9])(?P<mark>[/.-])(?P<second>[0-3]?[0-9])(?P=mark)(?P<year>[12][0-9]{3}|(?<=/)[0-9]{2})",
        rf"(?P<weekday>{_WEEKDAY})s?",
    )
]


def _dates(text: str) -> Iterator[Span]:
    for expression in _DATES:
        dated = ((match, _iso_date(match.groupdict())) for match in expression.finditer(text))
        new = [Span("date", match.start(), match[0], value) for match, value in dated if value]
        yield from new
        text = _without(text, new)


def _iso_date(part: dict[str, str | None]) -> str:
    """Return a date in ISO 8601, as far as it is known; where the order of day and month is open, both readings."""
    if weekday := part.get("weekday"):
        return weekday.lower()
    year = part.get("year")
    if (first := part.get("first")) and (second := part.get("second")):
        year = f"20{year}" if year and len(year) == 2 else year
        orders = [(second, first)] if part.get("mark") == "." else [(first, second), (second, first)]
        return " or ".join(dict.fromkeys(iso for month, day in orders if (iso := _iso(year, int(month), day))))
    return _iso(year, _month(part.get("month") or ""), part.get("day"))


def _month(name: str) -> int:
    if name.isdigit():
        return int(name)
    return next(i for i, month in enumerate(_MONTHS, 1) if month.startswith(name.lower().rstrip(".")[:3]))


def _iso(year: str | None, month: int, day: str | None) -> str:
    try:
        day_of_year = date(int(year or 2000), month, int(day or 1))  # any leap year
    except ValueError:
        return ""
    return f"{year or '-'}-{day_of_year.month:02}" + (f"-{day_of_year.day:02}" if day else "")


_TIME = regex.compile(
    rf"{NOT_AFTER_WORD}(?<![.:])"
    r"(?P<hour>[0-2]?[0-9])(?::(?P<minute>[0-5][0-9])(?::[0-5][0-9])?)?"
    rf"(?P<half> ?[ap](?:m{NOT_BEFORE_WORD}|\.m\.))?{NOT_BEFORE_WORD}(?!:)",
    regex.IGNORECASE,
)


def _times(text: str) -> Iterator[Span]:
    for match in _TIME.finditer(text):
        hour, minute, half = int(match["hour"]), match["minute"], (match["half"] or "").strip().lower()
        if hour > 23 or not (minute or half) or (half and not 1 <= hour <= 12):
            continue
        if half:
            hour = hour % 12 + (12 if half.startswith("p") else 0)
        yield Span("time", match.start(), match[0], f"{hour:02}:{minute or '00'}")


_AMOUNT = (
    r"(?:[1-9][0-9]{0,2}(?: [0-9]{3}(?![0-9])){1,9}+(?:[.,][0-9]++)?+"
    r"|[0-9]++(?:[.,'’\u00a0\u202f\u2009][0-9]++)*+)"
)
"""What may be an amount; `read_number` says whether it is one."""
_CURRENCIES = {"$": "$ us$ usd dollar dollars", "€": "€ eur euro euros", "£": "£ gbp", "¥": "¥ jpy yen", "₹": "₹ inr"}
_CURRENCY = {spelling: sign for sign, spellings in _CURRENCIES.items() for spelling in spellings.split()}
_MONEY = regex.compile(
    rf"{NOT_AFTER_WORD}(?<![.,])(?:(?:(?P<before>US\$|[$€£¥₹]|(?:USD|EUR|GBP|JPY|INR|CHF)\b) ?(?P<amount>{_AMOUNT}))"
    rf"|(?P<other>{_AMOUNT}) ?(?P<after>[$€£¥₹]|(?:USD|EUR|GBP|JPY|INR|CHF|dollars?|euros?|yen){NOT_BEFORE_WORD}))",
    regex.IGNORECASE,
)


def _money(text: str) -> Iterator[Span]:
    for match in _MONEY.finditer(text):
        sign = (match["before"] or match["after"]).lower()
        if amount := _plain_number(match["amount"] or match["other"]):
            yield Span("money", match.start(), match[0], f"{amount} {_CURRENCY.get(sign, sign)}")


_UNITS = (
    "percent|per cent|(?:business |working |calendar )?days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|weeks?|months?"
    "|years?|nights?|items?|people|persons?|pieces?|stars?|kg|g|mg|lbs?|pounds?|oz|km|cm|mm|m|miles?|feet|ft|inch(?:es)?"
    "|kb|mb|gb|tb|ml|l|kwh|mbps|gbps"
)
_NO_UNITS = "this|thus|its|has|was|does|less|plus|minus|times|perhaps|always|unless|across|versus|towards|besides|yes"
_QUANTITY = regex.compile(
    rf"{NOT_AFTER_WORD}(?<![.,-])(?P<amount>{_AMOUNT})(?: ?(?:to|[-–]) ?(?P<up_to>{_AMOUNT}))?"
    rf"(?:(?:[ -]?|\u00a0)(?P<unit>(?i:{_UNITS})){NOT_BEFORE_WORD}|[ \u00a0]?(?P<sign>%|°[CF]?)"
    rf"| (?!(?:{_NO_UNITS})\b)(?P<plural>[a-z]{{3,20}}s){NOT_BEFORE_WORD})"
)


def _quantities(text: str) -> Iterator[Span]:
    for match in _QUANTITY.finditer(text):
        amounts = [_plain_number(amount) for amount in (match["amount"], match["up_to"]) if amount]
        if all(amounts):
            unit = _unit((match["unit"] or match["sign"] or match["plural"]).lower())
            yield Span("quantity", match.start(), match[0], f"{'-'.join(amounts)} {unit}", unit)


def _unit(text: str) -> str:
    return "%" if text in ("percent", "per cent") else text.removesuffix("s") if len(text) > 2 else text


_CODE = regex.compile(rf"{NOT_AFTER_WORD}(?<!-)#?(?P<code>[A-Za-z0-9]++(?:-[A-Za-z0-9]++)*+){NOT_BEFORE_WORD}")


def _codes(text: str) -> Iterator[Span]:
    for match in _CODE.finditer(text):
        code = match["code"]
        digits = sum(map(str.isdigit, code))
        if 4 <= len(code) <= 40 and digits >= 2 and not code.replace("-", "").isdigit() and not code[0].islower():
            yield Span("code", match.start("code"), code, code.upper())


_MARKER = re.compile(r"^[ \t]{0,12}+(?:[>*#-][ \t]{0,3}+){0,3}+(?:\*\*)?[0-9]{1,3}[.)](?=[ \t*])", re.MULTILINE)


def _numbers(text: str) -> Iterator[Span]:
    text = _MARKER.sub(lambda marker: "\0" * len(marker[0]), text)
    for number in numbers_in(text):
        yield Span("number", number.start, number.text, show_number(number.value))


def _plain_number(text: str) -> str:
    """Return a number without separators of groups and with a decimal point; empty for a text such as `1.2.3`."""
    value = read_number(text)
    return "" if value is None else show_number(value)


_FINDERS: dict[Kind, Callable[[str], Iterator[Span]]] = {
    "url": _urls,
    "phone": _phones,
    "date": _dates,
    "time": _times,
    "money": _money,
    "quantity": _quantities,
    "code": _codes,
    "number": _numbers,
}
