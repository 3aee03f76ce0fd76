"""The reader of numbers in text: what it reads, what it leaves alone, and how it compares."""

from __future__ import annotations

import json
import sys
import unicodedata
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vivavoce.comparing.numbers import (
    MAX_TEXT_CHARS,
    all_numbers_in,
    canonical,
    exact,
    find_amount,
    find_possible,
    has_unread,
    is_within,
    may_state,
    numbers_in,
    read_number,
    show_number,
    states,
    width_of,
)
from vivavoce.comparing.quotes import cuts_word
from vivavoce.errors import UsageError


def values(text: str, locale: str | None = None) -> list[str]:
    return [show_number(number.value) for number in numbers_in(text, locale)]


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("5kg", "5", "kg"),
        ("100ms", "100", "ms"),
        ("24.90EUR", "24.9", "EUR"),
        ("€20", "20", "€"),
        ("20€", "20", "€"),
        ("CHF1250.-", "1250", "CHF"),
        ("Rs500", "500", "Rs"),
        ("US$20", "20", "$"),
        ("12.5%", "12.5", "%"),
        ("٪٤٢ is ٤٢٪", "42", ""),
        ("5°C", "5", "°C"),
        ("30GB", "30", "GB"),
        ("24h", "24", "h"),
        ("50m²", "50", "m²"),
        ("50m2", "50", "m2"),
        ("7th", "7", "th"),
        ("£3.50/month", "3.5", "£"),
        ("42개", "42", ""),
        ("共42件。", "42", ""),
        ("合計は42円です", "42", ""),
        ("ราคา42บาท", "42", ""),
    ],
)
def test_a_unit_touches_a_number_without_hiding_it(text: str, number: str, unit: str) -> None:
    first = numbers_in(text)[0]
    assert (show_number(first.value), first.unit) == (number, unit)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2 boxes of 5kg", ["2", "5"]),
        ("-5", ["-5"]),
        ("−5", ["-5"]),
        ("‐5", ["-5"]),
        ("–5", ["-5"]),
        ("+5", ["5"]),
        ("-0", ["0"]),
        ("EUR-5", ["-5"]),
        ("EUR -5", ["-5"]),
        ("$-5, -$5, -€ 5", ["-5", "-5", "-5"]),
        ("(-5)", ["-5"]),
        ("x=-5", ["-5"]),
        ("±5, +/-5, - 5", ["5", "5", "5"]),
        ("5-10, 5–10, 5 – 10, 5 –10", ["5", "10", "5", "10", "5", "10", "5", "10"]),
        ("5kg-10kg, 5%-10%, $5-$10, USD5-USD10", ["5", "10", "5", "10", "5", "10", "5", "10"]),
        ("2+2=4", ["2", "2", "4"]),
        ("1e3, 1e-05, 1.5E+3, 1e+21", ["1000", "0.00001", "1500", "1e+21"]),
        ("1.5×10^3, 1.5 x 10^{3}, 2·10⁻³", ["1500", "1500", "0.002"]),
        ("10^3, -10^{2}, 10^-3 kg, 5-10^2", ["1000", "-100", "0.001", "5", "100"]),
        ("42¹, 42¹ kg", ["42", "42"]),
        ("5 kg-7 kg, 5 days-7 days, 1.5 m-2,5 m", ["5", "7", "5", "7", "1.5", "2.5"]),
        ("In March 15 people paid EUR 24 in May.", ["15", "24"]),
        ("Sales in January 24,000; in May 24.5 t", ["24000", "24.5"]),
        ("You may 5 times march 7 steps", ["5", "7"]),
        (".5, 0.5, -.5", ["0.5", "0.5", "-0.5"]),
        ("2½, ½", ["2.5", "0.5"]),
        ("10k, $5M, 2bn", ["10000", "5000000", "2000000000"]),
        ("3万円, 1億2000万円, 5百万, 3千克", ["30000", "120000000", "5000000", "3"]),
        ("4/5, 42/50, 24/7", ["4", "5", "42", "50", "24", "7"]),
        ("1920x1080, 3×5", ["1920", "1080", "3", "5"]),
        ("1,2,3; 5,10,15", ["1", "2", "3", "5", "10", "15"]),
        ('{"total":42,"b":-2.5e-3}', ["42", "-0.0025"]),
        ("#1042, no.42, No. 42, §5", ["1042", "42", "42", "5"]),
        ("**42**, _42_, <b>42</b>, `42`", ["42", "42", "42", "42"]),
        ("30-day, 30-Tage-Frist, 30-GB", ["30", "30", "30"]),
        ("ב-5", ["5"]),
        ("温度是-5度", ["-5"]),
        ("5件-10件", ["5", "10"]),
        ("第3章，第4节", ["3", "4"]),
        ("42。43", ["42", "43"]),
        ("9007199254740993", ["9007199254740993"]),
    ],
)
def test_what_a_text_states(text: str, numbers: list[str]) -> None:
    assert values(text) == numbers


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-01",
        "1.5.2024",
        "24 March 2024",
        "24th of March",
        "24-26 March 2024",
        "24 and 25 March",
        "Mar. 24, 2024",
        "in March 24, 2024",
        "March 24",
        "March 2024",
        "2024 March 24",
        "24-Mar-2024",
        "24. März 2024",
        "24 mars 2024",
        "1er mai",
        "5 d’août 2024",
        "24 de marzo de 2024",
        "24 maart",
        "2024年3月24日",
        "3月24日",
        "2024년 3월 24일",
        "10²",
        "42¹²",
        "2^10",
        "10^2^3",
        "kg-7",
        "05/01/2024",
        "5/1/24",
        "2024/5/1",
        "2024-05",
        "10:24",
        "10:24:30",
        "10:24Z",
        "1h30",
        "2024-05-01T10:24:00.5+02:00",
        "1.2.3",
        "1.2.3-beta.4",
        "v2",
        "v1.2",
        "python3.11",
        "A100",
        "A-17-B",
        "17-B",
        "COVID-19",
        "order_1042",
        "x2",
        "0x1F",
        "12ab34",
        "550e8400-e29b-41d4-a716-446655440000",
        "192.168.0.1",
        "10.100.200.250",
        "555-123-4567",
        "(555) 123-4567",
        "555 123 4567",
        "+49 30 1234567",
        "+493012345678",
        "030 1234567",
        "4111 1111 1111 1111",
        "DE89 3704 0044 0532 0130 00",
        "ana5@example.org",
        "5@example.org",
        "https://shop.example/orders/1042?page=5",
        "5^2",
        "007",
        "1,234,5",
        "1_00",
        "",
        "none",
    ],
)
def test_dates_times_versions_codes_and_addresses_are_not_numbers(text: str) -> None:
    assert values(text) == []
    assert values(f"see {text}, please") == []


INSIDE = [
    (24, "24,000"),
    (0, "24,000"),
    (240, "1,240"),
    (1, "1,240"),
    (24, "24,90"),
    (90, "24,90"),
    (24, "24.90"),
    (1, "1e3"),
    (3, "1e3"),
    (5, "-5 degrees"),
    (100, "A100"),
    (10, "10:24"),
    (24, "10:24"),
    (250, "1'250"),
    (250, "1 250"),
    (250, "1\u00a0250"),
    (250, "1\u202f250"),
    (17, "A-17"),
    (2024, "2024-05-01"),
    (9007199254740992, "9007199254740993"),
    (10, "10k"),
    (2, "2½"),
]


@pytest.mark.parametrize(("number", "text"), INSIDE)
def test_a_number_inside_another_is_not_stated(number: int, text: str) -> None:
    assert not states(f"It is {text}.", number)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (24.9, "24.90"),
        (24.9, "24,90"),
        (1240, "1,240"),
        (1240.5, "1.240,50"),
        (1250, "1'250"),
        (1250, "1’250"),
        (1250, "1 250"),
        (1250, "1\u2009250"),
        (1234567, "12,34,567"),
        (1234, "１，２３４"),
        (42, "٤٢"),
        (12345.67, "١٢٬٣٤٥٫٦٧"),
        (123, "१२३"),
        (0.00001, "0.00001"),
        (1e16, "10000000000000000"),
        (1e16, "1e16"),
        (0, "-0"),
        (5, "+5"),
        (124, "1\u200b24"),
        (1042, "order #1042"),
    ],
)
def test_a_number_is_stated_however_it_is_written(number: float, text: str) -> None:
    assert states(f"It is {text}.", number)


@pytest.mark.parametrize(
    ("text", "by_locale"),
    [
        ("1,234", {None: ["1234"], "en": ["1234"], "de": ["1.234"], "fr": ["1.234"], "en-IN": ["1234"]}),
        ("1.234", {None: ["1.234"], "en": ["1.234"], "de": ["1234"], "de-CH": ["1.234"], "pt_BR": ["1234"]}),
        ("5 200", {None: ["5200"], "en": ["5", "200"], "de": ["5", "200"], "fr": ["5200"]}),
        ("2 100,000", {None: ["2", "100000"], "en": ["2", "100000"], "fr": ["2100"]}),
        ("24,90", {None: ["24.9"], "en": ["24.9"], "de": ["24.9"]}),
        ("1.240,50", {None: ["1240.5"], "en": ["1240.5"], "de": ["1240.5"]}),
    ],
)
def test_a_locale_settles_what_a_text_leaves_open(text: str, by_locale: dict[str | None, list[str]]) -> None:
    assert {locale: values(text, locale) for locale in by_locale} == by_locale


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("1,234", ["1234", "1.234"]),
        ("1.234", ["1.234", "1234"]),
        ("10k", ["10000", "10"]),
        ("1 250", ["1250"]),
        ("100,200,300", ["100200300"]),
    ],
)
def test_an_ambiguous_text_says_so(text: str, readings: list[str]) -> None:
    [number] = numbers_in(text)
    assert number.ambiguous
    assert [show_number(reading) for reading in number.readings] == readings


@pytest.mark.parametrize("dash", ["-", "–", "−"])
@pytest.mark.parametrize(
    "bound",
    [
        "{}€",
        "{} €",
        "{}$",
        "{}£",
        "{}¥",
        "{}₹",
        "{}৳",
        "{} EUR",
        "{} US$",
        "{} Mio. €",
        "{}℃",
        "**{}**",
        "**{} €**",
        "`{}`",
        "_{}_",
        "~{}~",
        "<b>{}</b>",
        "“{}”",
        "**${}**",
    ],
)
def test_a_dash_after_a_number_and_its_unit_is_that_of_a_range(bound: str, dash: str) -> None:
    text = f"it costs {bound.format(5)}{dash}{bound.format(7)} today"
    assert [number.value for number in all_numbers_in(text)] == [5, 7]


@pytest.mark.parametrize(
    "scale",
    [
        *(
            " million",
            " Mio.",
            " thousand",
            " Tsd.",
            " Mrd. €",
            " hundred",
            " lakh",
            " crore",
            " тыс.",
            " मिलियन",
            "MM",
        ),
        *(
            "千",
            "百",
            "兆",
            "만",
            "억 원",
            "million",
            "-million",
            " € million",
            " dozen",
            " K",
            " mil",
            "** million",
            " ล้าน",
        ),
    ],
)
def test_a_number_with_a_scale_is_not_read_as_its_digits(scale: str) -> None:
    text = f"costs 5{scale}"
    assert not numbers_in(text)
    assert read_number(text.removeprefix("costs ")) is None
    [number] = all_numbers_in(text)
    assert number.is_scaled


@pytest.mark.parametrize("text", ["5 to 10 million", "5-10 Mio. €", "€5–€10 million", "5 oder 10 Tsd.", "$5m", "5 T€"])
def test_numbers_may_share_a_scale(text: str) -> None:
    assert not numbers_in(text)


@pytest.mark.parametrize(
    "text", ["5 miles", "5m", "5 m", "5 mm", "5千克", "5 cents", "5 minutes", "5 books", "5 liters", "5 km", "5 Märkte"]
)
def test_a_unit_is_not_a_scale(text: str) -> None:
    assert [number.value for number in numbers_in(text)] == [5]


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        *(
            (text, True)
            for text in ("50 or 1,234,5", "5 or 500,000,00", "50 or 2^10", "5 or DM500", "5 or 555-123-4567")
        ),
        *(
            (text, True)
            for text in ("5 now, fünfhundert later", "five hundred", "5m", "5 or A100", "5 and fifty", "10²")
        ),
        *(
            (text, False)
            for text in ("EUR 150.00", "1.500", "10k", "5kg", "-5", "2½", "5 m", "5 million", "all", "5万")
        ),
    ],
)
def test_what_may_state_a_number_that_is_not_read(text: str, unread: bool) -> None:
    assert has_unread(text) is unread


@pytest.mark.parametrize(
    ("text", "expected", "may"),
    [
        *((text, 1234, True) for text in ("1,234", "1234", "1,234 or 7", "1234 million", "1.234", "EUR-1234", "-1234")),
        *((text, 1234, True) for text in ("A-1234", "12-34", "1234.5", "on 1234-05-01", "pin1234", "1234x", "01234")),
        *((text, 1234, True) for text in ("PIN_1234", "1-2-3-4", "1 2 3 4", "12**34**", "1234k", "v1234", "12:1234")),
        *((text, 1234, True) for text in ("１２３４", "१२३४", "①②③④", "12\u200b34", "a1234@x.org", "/1234", "1234/4")),
        *((text, 1234, True) for text in ("1.234 million", "+49 1234", "1234.0.0.1", "“1234”", "1'234", "1\u202f234")),
        *((text, 1234, False) for text in ("12,345", "5 or 6", "12345", "01235", "1,234,567", "x", "12 or 34")),
        ("5 million", 5, True),
        ("5 million", 5_000_000, True),
        ("50 lakh", 5_000_000, True),
        ("5 dozen", 60, True),
        ("$5m", 5_000_000, True),
        ("5 million", 6, False),
        ("A-24.90", 24.9, True),
        ("24,9", 24.9, True),
        ("A5", 5, True),
        ("15", 5, False),
        ("1-5", 15, False),
        ("0.5", 0, False),
        ("24", -24, False),
        ("EUR-24", -24, True),
    ],
)
def test_what_may_state_a_forbidden_number(text: str, expected: float, may: bool) -> None:
    assert may_state(text, expected) is may


@given(
    st.integers(1000, 10**9),
    st.sampled_from(
        ["{}", "PIN-{}", "EUR-{}", "x{}y", "{:,}", "{}.50", "**{}**", "({})", "v{}.1", "{}-05-01", "-{}", "{}k"]
    ),
    st.sampled_from(["it is ", "密码", "مثال ", ""]),
)
def test_a_guard_finds_a_number_however_it_is_written(number: int, form: str, before: str) -> None:
    text = before + form.format(number)
    place = find_possible(text, number)
    assert place is not None
    assert str(number) in "".join(filter(str.isdecimal, text[slice(*place)]))


@given(st.text(max_size=40), st.one_of(st.integers(-(10**6), 10**6), st.floats(-1000, 1000)))
def test_what_a_text_states_it_may_state(text: str, number: float) -> None:
    assert may_state(text, number) or not states(text, number)
    assert may_state(f"{text} {show_number(number)}", number) or abs(number) < 1e-6


@pytest.mark.parametrize("text", ["2>-7", "$2, $-7", "2 or $-7", "[2,-7]", "**2**: -7", "2€ -7€", "x = **-7**"])
def test_a_dash_after_anything_else_is_a_sign(text: str) -> None:
    assert numbers_in(text)[-1].value == -7


@pytest.mark.parametrize("text", ["24.90", "24,90", "1.240,50", "1,240.50", "1'250", "1\u00a0250", "5kg", "0.500"])
def test_a_plain_text_is_not_ambiguous(text: str) -> None:
    assert not numbers_in(text)[0].ambiguous


def test_an_unknown_locale_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="unknown locale 'ed', expected a language such as de"):
        numbers_in("1,234", "ed")
    assert values("1,234", "zh-Hans-CN") == ["1234"]


def test_a_number_has_its_place_in_the_original_text() -> None:
    text = "共\u200b４2\u00ad件, −€ 1\u202f250.50!"
    assert [text[number.start : number.end] for number in numbers_in(text)] == ["４2", "−€ 1\u202f250.50"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 24.90 ", "24.9"),
        ("1,240", "1240"),
        ("-0", "0"),
        ("42\u200b", "42"),
        ("5kg", None),
        ("$5", None),
        ("42.", "42"),
        ("42!", "42"),
        ("- 5", "-5"),
        ("5&nbsp;000", "5000"),
        ("42?", None),
        ("42 or 43", None),
        ("007", None),
        ("", None),
        ("NaN", None),
    ],
)
def test_a_text_that_is_one_number(text: str, number: str | None) -> None:
    parsed_number = read_number(text)
    assert (None if parsed_number is None else show_number(parsed_number)) == number


SPACES = (" ", "\u00a0", "\u202f", "\u2009")
CONVENTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "en": (".", (",", "\u202f", "")),
    "ja": (".", (",", "")),
    "de": (",", (".", "\u00a0", "")),
    "de-AT": (",", (".", "\u00a0", "")),
    "es": (",", (".", "\u202f", "")),
    "pt-BR": (",", (".", "")),
    "id": (",", (".", "")),
    "fr": (",", (*SPACES, "")),
    "ru": (",", (*SPACES, "")),
    "sv": (",", (*SPACES, "")),
    "pt-PT": (",", (*SPACES, "")),
    "de-CH": (".", ("'", "’", "")),
    "it-CH": (".", ("'", "’", "")),
    "en-IN": (".", ("lakh", "")),
    "hi": (".", ("lakh", "")),
}
PLAIN = st.decimals(min_value=-(10**15), max_value=10**15, allow_nan=False, allow_infinity=False, places=3)


def group_digits(digits: str, mark: str) -> str:
    """Return digits in groups from the right: of three, or the last of three and all others of two."""
    size, mark = (2, ",") if mark == "lakh" else (3, mark)
    if not mark or len(digits) <= 3:
        return digits
    head, groups = digits[:-3], [digits[-3:]]
    while head:
        groups.insert(0, head[-size:])
        head = head[:-size]
    return mark.join(groups)


def write_number(value: Decimal, locale: str, choice: int) -> str:
    """Return a number as people of a locale write it."""
    decimal, marks = CONVENTIONS[locale]
    whole, _, fraction = f"{abs(value):f}".partition(".")
    fraction = fraction if choice % 2 else fraction.rstrip("0")
    text = group_digits(whole, marks[choice % len(marks)]) + (f"{decimal}{fraction}" if fraction else "")
    return ("-", "−", "–")[choice % 3] + text if value < 0 else text


@given(PLAIN | st.integers(-(10**15), 10**15).map(Decimal), st.sampled_from(sorted(CONVENTIONS)), st.integers(0, 23))
def test_every_number_of_a_locale_is_read_back_under_it(value: Decimal, locale: str, choice: int) -> None:
    text = write_number(value, locale, choice)
    assert read_number(text, locale) == value
    for sentence in (
        f"It is {text}.",
        f"({text})",
        f"共{text}件",
        f"Cost: {text} EUR, thanks",
        f"{text}kg",
        f'"{text}"',
    ):
        assert [number.value for number in numbers_in(sentence, locale)] == [value], sentence


@given(st.integers(0, 10**9), st.sampled_from(sorted(CONVENTIONS)), st.integers(0, 23), st.data())
def test_no_number_is_found_inside_another(value: int, locale: str, choice: int, data: st.DataObject) -> None:
    text = write_number(Decimal(value) + Decimal("0.25") * (choice % 3), locale, choice)
    start = data.draw(st.integers(0, len(text) - 1))
    inner = text[start : data.draw(st.integers(start + 1, len(text)))]
    for number in numbers_in(inner, locale):
        assert states(f"it is {text} then", number.value, locale) == (number.value == read_number(text, locale))


ALPHABET = "0123456789019,.' -+–−eEkx:/_#@aA$€%件\u00a0\u202f½²\u200b٣३４(\n"


@given(st.text(ALPHABET, max_size=40), st.sampled_from([None, "en", "de", "fr", "de-CH"]))
def test_every_number_of_any_text_stands_alone_in_its_place(text: str, locale: str | None) -> None:
    numbers = numbers_in(text, locale)
    for number in numbers:
        assert text[number.start : number.end] == number.text
        assert not text[number.start - 1 : number.start].isdecimal() or number.start == 0
        assert not text[number.end : number.end + 1].isdecimal()
        assert number.readings[0] == number.value
    assert all(left.end <= right.start for left, right in pairwise(numbers))


@given(st.text("0123456789,.' -+–ekxA€%件½(", max_size=30))
def test_the_form_of_characters_changes_no_value(text: str) -> None:
    values = [number.value for number in numbers_in(text)]
    devanagari = text.translate({ord("0") + digit: chr(0x966 + digit) for digit in range(10)})
    assert [number.value for number in numbers_in(devanagari)] == values
    hidden = "\u200b".join(text)
    assert [number.value for number in numbers_in(hidden)] == values
    other = text.replace("'", "’")
    if "- " not in text and "-\u00a0" not in text:  # a minus with a space behind it is not a bullet
        other = other.replace("-", "−")
    assert [number.value for number in numbers_in(other)] == values


def test_all_characters_of_category_cf_are_invisible() -> None:
    hidden = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Cf"]
    assert [character for character in hidden if values(f"4{character}2") != ["42"]] == []


def test_the_decimal_digits_of_every_script_are_digits() -> None:
    digits = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Nd"]
    assert [digit for digit in digits if values(f"1{digit}") != [f"1{unicodedata.decimal(digit)}"]] == []


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_what_json_writes_is_read_exactly(number: float) -> None:
    assert read_number(json.dumps(number)) == exact(number)
    assert states(f"[{json.dumps(number)}]", number)


TENTHS = st.integers(-(10**6), 10**6).map(lambda value: Decimal(value).scaleb(-3))


@given(TENTHS, TENTHS, TENTHS.map(abs), st.integers(0, 300).map(lambda value: Decimal(value).scaleb(-2)))
def test_a_tolerance_is_counted_in_fractions(
    number: Decimal, expected: Decimal, tolerance: Decimal, relative: Decimal
) -> None:
    width = max(Fraction(tolerance), Fraction(relative) * abs(Fraction(expected)))
    holds = abs(Fraction(number) - Fraction(expected)) <= width
    assert is_within(number, expected, tolerance, relative) == holds
    assert is_within(*map(float, (number, expected, tolerance, relative))) == holds
    assert Fraction(width_of(expected, tolerance, relative)) == width


def test_a_tolerance_reaches_exactly_as_far_as_it_says() -> None:
    assert is_within(24.91, 24.90, 0.01)
    assert is_within(1.1, 1, 0.1)
    assert not is_within(111, 100, 0, 0.1)
    assert is_within(110, 100, 0, 0.1)
    assert not is_within(190, 100, 0, 0.5)
    assert not is_within(10**6, 1, 0, 1)
    assert not is_within(9007199254740993, 9007199254740992)
    assert not is_within(float("nan"), 1, 5)
    assert not is_within(float("inf"), 1, 5)
    assert not is_within(Decimal("1e999999"), 1, 5)


@given(TENTHS, TENTHS)
def test_equal_numbers_have_one_canonical_text(first: Decimal, second: Decimal) -> None:
    assert (canonical(first) == canonical(second)) == (first == second)
    assert canonical(first) == canonical(first * Decimal("1.00")) == canonical(float(first))


def test_a_number_is_shown_as_people_write_it() -> None:
    texts = [show_number(number) for number in (24.9, 1e-05, 1e16, 100.0, -0.0, 1e300, Decimal("1.50"), float("nan"))]
    assert texts == ["24.9", "0.00001", "10000000000000000", "100", "0", "1e+300", "1.5", "nan"]
    assert show_number(10**100 + 1).startswith("1")
    assert len(show_number(10**100 + 1)) < 50


@pytest.mark.parametrize(
    ("text", "part", "inside"),
    [
        ("A-17-B", "A-17", True),
        ("A-17", "A-17", False),
        ("A-17.", "A-17", False),
        ("A-17: it", "A-17", False),
        ("XA-17", "A-17", False),
        ("X-A-17", "A-17", True),
        ("A-17/2", "A-17", True),
        ("24,000", "24", True),
        ("007.5", "007", True),
        ("0,007", "007", True),
    ],
)
def test_a_part_of_a_longer_code(text: str, part: str, inside: bool) -> None:
    start = text.index(part)
    assert any(cuts_word(text, place) for place in (start, start + len(part))) is inside


@pytest.mark.parametrize(
    "unit",
    [
        *("9", ",", ".", " ", "'", "-", "+", "1,", "1 ", "111 ", "1-", "01 ", "1.", "1111 ", "1e", "a1", "1_", "+1 "),
        *("-件", "(555) ", "1:", "EUR", "1^", "1a-", "1@", "http://", "1\u00a0", "\u200b", "1億", ".1", "½", "1½"),
        *("111 111,111 ", "1 x ", "1 x 1"),
    ],
)
def test_a_hostile_text_is_read_in_linear_time(unit: str) -> None:
    length = MAX_TEXT_CHARS if len(numbers_in(unit * 1000)) < 10 else 50_000
    numbers = numbers_in((unit * length)[:length])
    assert all(left.end <= right.start for left, right in pairwise(numbers))


@given(
    st.dates(min_value=date(1000, 1, 1), max_value=date(2999, 12, 31)),
    st.sampled_from(["{0:%d %B %Y}", "{0.day} {0:%b} {0.year}", "{0:%B} {0.day}, {0.year}", "{0.day}-{0:%b}-{0.year}"]),
    st.sampled_from(["It is {} today.", "{}", "{}: ok", "({})", "due {}."]),
)
def test_no_part_of_a_named_date_is_a_number(day: date, form: str, sentence: str) -> None:
    text = sentence.format(form.format(day))
    assert values(text) == []
    assert values(f"7, {text}; 8") == ["7", "8"]


@pytest.mark.parametrize(
    "text", ["42B-7", "40A-7", "5M-3", "7K-A", "12K-9", "3B/7", "7k-a", "Seat 42B-7X", "7K-run", "5bn-2"]
)
def test_a_letter_for_a_scale_before_a_hyphen_makes_a_code(text: str) -> None:
    assert numbers_in(text) == ()


@pytest.mark.parametrize(
    ("text", "values"),
    [("5M-10M", [5_000_000, 10_000_000]), ("$5k-6k", [5000, 6000]), ("$5k-6", [5000, 6]), ("5k - 6", [5000, 6])],
)
def test_a_range_of_scaled_numbers_is_two_numbers(text: str, values: list[int]) -> None:
    assert [number.value for number in numbers_in(text)] == values


@given(
    st.integers(1, 999),
    st.sampled_from(["k", "K", "M", "B", "bn"]),
    st.from_regex("[A-Za-z][A-Za-z0-9]{0,3}|[0-9]{1,3}", fullmatch=True),
)
def test_no_identifier_is_a_scaled_number(number: int, scale: str, rest: str) -> None:
    assert all(abs(stated.value) < 1000 for stated in numbers_in(f"{number}{scale}-{rest}"))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "5-10k",
            "5 to 10k",
            "5–10 million",
            "5—10k",
            "5 - 10 k",
            "5..10k",
            "5→10k",
            "€5–€10k",
            "$5 to $10k",
            "5 or 10k",
        ),
        *(
            "**5**–**10k**",
            "between 5 and 10k",
            "5-10万",
            "5 to about 10k",
            "5, 10 million",
            "5 bis zu 10 Mio.",
            "5k million",
        ),
        *("5kk", "5 KK", "5+ million", "5+million", "5–million", "5 US$ million", "5 HK$ million", "5\nthousand"),
        *("5\n\nmillion", "5\tmillion", "5 'million'", "5&nbsp;million", "5 <b>million</b>", "5 (in millions)"),
        *(
            "2**5",
            "2 ^ 5",
            "2^5",
            "2^{5}",
            "2<sup>5</sup>",
            "2⁵",
            "2 to the power of 5",
            "(2)^5",
            "2^ 5",
            "5 ^ 2",
            "5**2",
        ),
        *("5 × 10**3", "5 × 2^3", "√5", "5½", "5 1/2", "5-1/2", "5€50", "5'11"),
        *(
            "(030) 1234-5",
            "(012) 345-5",
            "May the 5th",
            "May 5",
            "5th of May",
            "the 5th of May",
            "5月",
            "5 月",
            "12월 5일",
        ),
        *("令和6年5月", "5 мая", "5 maja", "5 maj", "5 Mayıs", "5 مايو", "5 मई", "5. května"),
    ],
)
def test_a_part_of_another_number_or_date_is_not_stated_but_may_be(text: str) -> None:
    sentence = f"It is {text} there"
    assert not states(sentence, 5)
    assert may_state(sentence, 5)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("(030) 1234-567", 567),
        ("(030) 123456", 123456),
        ("(0301) 123 456", 456),
        ("(12) 345-678", 678),
        ("DE89 3704 0044 0532 0130 00", 3704),
        ("DE89 3704 0044", 3704),
        ("IBAN: DE89 3704", 3704),
        ("GB29 NWBK 6016 1331 9268 19", 6016),
        ("GB29 NWBK 6016 1331 9268 19", 19),
        ("2**10", 10),
        ("10**6", 10),
    ],
)
def test_a_group_of_a_phone_number_or_an_account_is_not_stated_but_may_be(text: str, number: int) -> None:
    assert not states(f"see {text}, please", number)
    assert may_state(f"see {text}, please", number)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("5k-10k", ["5000", "10000"]),
        ("3 cats and 10k dogs", ["3", "10000"]),
        ("**5** 10", ["5", "10"]),
        ("5 kg to 7 kg", ["5", "7"]),
        ("24/7 or 4/5", ["24", "7", "4", "5"]),
        ("5 people in May", ["5"]),
        ("FY24 1000 units", ["1000"]),
        ("(12) people", ["12"]),
        ("2.5×10**3", ["2500"]),
        ("5. Million-dollar ideas", ["5"]),
        ("5 <b>books</b>", ["5"]),
    ],
)
def test_numbers_of_their_own_are_still_stated(text: str, stated: list[str]) -> None:
    assert values(text) == stated


@given(
    st.integers(2, 999),
    st.sampled_from(["-", "–", "—", " - ", " to ", " or ", " bis ", " à ", "~", "…", "..", " & ", "/", "→"]),
    st.sampled_from(["k", "K", "M", "B", "bn", "万", "億", "kk", " million", " Mio.", " thousand", " k", "\nmillion"]),
    st.sampled_from(["{}", "**{}**", "`{}`", "€{}", "“{}”"]),
)
def test_the_first_number_of_a_range_shares_the_scale(first: int, dash: str, scale: str, form: str) -> None:
    second = first + 7 if first + 7 != 1000 else first + 8
    text = f"It takes {form.format(first)}{dash}{form.format(f'{second}{scale}')} steps"
    assert not states(text, first), text
    assert may_state(text, first)
    assert may_state(text, second)


@given(
    st.integers(2, 99),
    st.integers(2, 9),
    st.sampled_from(["^", " ^ ", "**", " ** ", "^{", "↑", "<sup>", " to the power of ", " hoch "]),
)
def test_neither_part_of_a_power_is_stated_and_a_guard_knows_what_it_amounts_to(base: int, up: int, sign: str) -> None:
    closing = {"^{": "}", "<sup>": "</sup>"}.get(sign, "")
    text = f"It is {base}{sign}{up}{closing} now"
    assert base == 10 or not (states(text, base) or states(text, up))
    assert all(may_state(text, number) for number in (base, up, base**up))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(
            (text, 4711)
            for text in ("4711万", "4711億", "4711½", "4711²", "4711^2", "4711k", "4711 1/2", "4711€50", "½4711")
        ),
        *((text, 4711) for text in ("47&nbsp;11", "47<b>11</b>", "4<wbr>711", "&#52;711", "❹❼❶❶", "④⑦①①", "[47](x)11")),
        *((text, 4711) for text in ("4\ufe0f\u20e37\ufe0f\u20e31\ufe0f\u20e31", "4\u03367\u03361\u03361", "47`11`")),
        *((text, 24.9) for text in ("24 . 90", "24€90", "24,<b>90</b>", "２４．９０")),
        ("5½", 5.5),
        ("5 1/2", 5.5),
        ("2**10", 1024),
        ("10³", 1000),
    ],
)
def test_a_guard_finds_what_could_be_the_number(text: str, number: float) -> None:
    assert may_state(f"It is {text}.", number)


@pytest.mark.parametrize(
    "unit",
    [
        "May 5 ",
        "(030) ",
        "(030) 12-",
        "DE89 3704 ",
        "5^2 ",
        "5 1/2 ",
        "2**",
        "2^",
        "5 to ",
        "5k-",
        "5 +",
        "√5",
        "&#5",
        "<a>5",
        "5月",
        "**5** ",
        "5*5*",
        "5`",
        "~~5",
        "[5](x)",
        "5&nbsp;",
        "1{,}5",
        "5 thousand ",
        "3만 ",
        "- 5 ",
        "minus 5 ",
    ],
)
def test_a_text_that_repeats_a_part_of_a_number_is_read_in_linear_time(unit: str) -> None:
    text = (unit * 50_000)[:50_000]
    assert all(left.end <= right.start for left, right in pairwise(all_numbers_in(text)))
    assert not may_state(text, 4712.5)


MARKUP = [
    *("**{}**", "*{}*", "`{}`", "~~{}~~", "<b>{}</b>", "<span class='x'>{}</span>", "[{}](https://x.org/7)"),
    *("{}<!-- 7 -->", "<wbr>{}"),
]
AMOUNTS = st.integers(100, 10**7).map(lambda cents: f"{Decimal(cents).scaleb(-2):,}")


@given(AMOUNTS, st.sampled_from(MARKUP), st.data())
def test_a_number_is_read_as_a_page_shows_it(amount: str, markup: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(amount) - 1))
    end = data.draw(st.integers(start + 1, len(amount)))
    assume("*" not in markup or not (amount[start - 1 : start].isdigit() and amount[end : end + 1].isdigit()))
    text = f"Pay {amount[:start]}{markup.format(amount[start:end])}{amount[end:]} now, or 7."
    plain = numbers_in(f"Pay {amount} now, or 7.")
    assert [number.value for number in numbers_in(text)] == [number.value for number in plain]
    assert may_state(text, plain[0].value)
    assert all(text[number.start : number.end] == number.text for number in numbers_in(text))


@given(AMOUNTS, st.data())
def test_entities_inside_a_number_are_read(amount: str, data: st.DataObject) -> None:
    forms = st.sampled_from(["{0}", "&#{1};", "&#x{1:x};"])
    text = "".join(data.draw(forms).format(sign, ord(sign)) for sign in amount)
    assert [number.value for number in numbers_in(f"${text}$")] == [Decimal(amount.replace(",", ""))]


@given(AMOUNTS, st.sampled_from(["\\{0}", "{{{0}}}"]))
def test_escapes_inside_a_number_are_read(amount: str, form: str) -> None:
    text = "".join(sign if sign.isdigit() else form.format(sign) for sign in amount)
    assert [number.value for number in numbers_in(f"${text}$")] == [Decimal(amount.replace(",", ""))]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("5&nbsp;000 €, 5&#8239;000, 5&thinsp;000", ["5000", "5000", "5000"]),
        ("24.**90**, **24**.90, 24\\.90, 24.<sup>90</sup>", ["24.9", "24.9", "24.9", "24.9"]),
        ("$1{,}500$ and 1\\,500 and 24{.}5", ["1500", "1500", "24.5"]),
        ("-**5**, -~~5~~, &minus;5", ["-5", "-5", "-5"]),
        ("5<b>0</b>, 5**0**, [5](x)0", ["50", "50", "50"]),
        ("<td>1</td><td>250</td>", ["1", "250"]),
        ("5<br>000", ["5"]),
        ("2**10, 2**10 and 3**4, 2**3**0.5", []),
        ("2*3*4 and 5 * 6", ["2", "3", "4", "5", "6"]),
        ("5_000, snake_5", ["5000"]),
        ("a 4*-Hotel, a 5*-Hotel", ["4", "5"]),
        ("24<sup>90</sup>, 10<sup>3</sup>", []),
        ("10⁻³, 5×10⁻³", ["0.001", "0.005"]),
        ("2⁻¹, 10³", []),
        ("1 ½ cups", ["1.5"]),
    ],
)
def test_markup_changes_what_a_number_is(text: str, numbers: list[str]) -> None:
    assert values(text) == numbers


SPOKEN_SCALES = {
    **dict.fromkeys((" thousand ", " thousand and ", " Tausend ", " Tsd. ", " тыс. ", " тысяч ", "千", " mil "), 3),
    **dict.fromkeys(("만 ", "만", " 만 ", "万 ", "萬 "), 4),
    " lakh ": 5,
    **dict.fromkeys((" million ", " Mio. ", " млн "), 6),
}


@given(st.integers(2, 99), st.sampled_from(sorted(SPOKEN_SCALES)), st.integers(100, 999), st.sampled_from("원 €,."))
def test_what_follows_a_scale_is_a_part_of_its_number(high: int, scale: str, low: int, behind: str) -> None:
    text = f"It costs {high}{scale}{low}{behind}"
    whole = high * 10 ** SPOKEN_SCALES[scale] + low
    assert not states(text, low)
    assert not states(text, high)
    assert all(may_state(text, number) for number in (low, high, whole))
    assert not may_state(text, whole + 1)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("3만 4,800원, 3万4千800円, 2 crore 25 lakh 300", []),
        ("3万5000円, 1億2000万", ["35000", "120000000"]),
        ("5 million users. 300 people", ["300"]),
        ("5 million users and 300 people", ["300"]),
        ("3万 5万", ["30000", "50000"]),
        ("10k 0.5%", ["10000", "0.5"]),
    ],
)
def test_numbers_with_several_scales(text: str, numbers: list[str]) -> None:
    assert values(text) == numbers


@given(
    st.integers(1, 999),
    st.sampled_from(
        [
            "minus ",
            "Minus ",
            "negative ",
            "moins ",
            "menos ",
            "минус ",
            "− ",
            "-\u00a0",
            "零下",
            "负",
            "マイナス",
            "영하 ",
        ]
    ),
    st.sampled_from(["", "It is ", "(", "Now: "]),
)
def test_a_sign_may_be_a_word_or_stand_apart(number: int, sign: str, before: str) -> None:
    text = f"{before}{sign}{number} degrees"
    assert values(text) == [str(-number)]
    assert may_state(text, -number)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("10 - 5, 10 minus 5, 10 € − 5 €, 5 kg - 3 kg", ["10", "5", "10", "5", "10", "5", "5", "3"]),
        ("12-15, 12 – 15", ["12", "15", "12", "15"]),
        ("- 5 apples\n- 6 pears", ["5", "6"]),
        ("Lyon - 5 nights, Bonn – 3", ["5", "3"]),
        ("Balance: - 5", ["-5"]),
        ("au moins 3, plus ou moins 4, al menos 5, plus or minus 6, plus/minus 7", ["3", "4", "5", "6", "7"]),
        ("负责3个项目", ["3"]),
    ],
)
def test_a_dash_or_a_word_before_a_number_is_not_always_its_sign(text: str, numbers: list[str]) -> None:
    assert values(text) == numbers


def test_a_bullet_may_be_a_sign_which_a_ban_has_to_assume() -> None:
    assert may_state("- 5 apples", -5)
    assert not may_state("10-5", -5)


CURRENCIES = ["€{}", "€ {}", "{}€", "{} €", "EUR {}", "EUR{}", "{} Euro", "{}&nbsp;€", "**{}** €"]


@given(
    st.integers(1000, 999_999).filter(lambda cents: cents % 10),
    st.sampled_from(CURRENCIES[:6]),
    st.sampled_from(CURRENCIES),
    st.booleans(),
)
def test_a_banned_amount_is_found_however_it_is_written(cents: int, banned: str, form: str, comma: bool) -> None:
    price = str(Decimal(cents).scaleb(-2))
    text = f"It costs {form.format(price.replace('.', ',') if comma else price)} now"
    assert find_amount(text, banned.format(price)) is not None
    assert find_amount(text, banned.format(Decimal(cents + 1).scaleb(-2))) is None
    assert find_amount(f"It weighs {price} kg", banned.format(price)) is None


@pytest.mark.parametrize(
    ("words", "text", "is_there"),
    [
        *(("20%", text, True) for text in ("20 %", "20.0%", "**20**%", "20 percent", "20&nbsp;%")),
        *(("20%", text, False) for text in ("20", "120 %", "2.0 %", "20 kg")),
        *(("1.5", text, True) for text in ("1,5", "1.50", "$1.5")),
        *(("1.5", text, False) for text in ("15", "1.55", "11,5")),
        ("$20", "20$", True),
        ("5 kg", "5kg", True),
        ("5 m²", "5m²", True),
        ("1.500 €", "1500 €", True),
        ("1,500", "1.5 kg", False),
        ("4711", "4,711", False),
        ("hello", "5 kg", False),
    ],
)
def test_what_is_an_amount_and_where_it_is(words: str, text: str, is_there: bool) -> None:
    assert (find_amount(f"It is {text}.", words) is not None) is is_there
