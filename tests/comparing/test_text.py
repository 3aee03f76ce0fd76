"""What a page shows instead of markup, in linear time."""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Literal

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.comparing.text import (
    BOUNDARY,
    FoldedText,
    GuardedText,
    PlainText,
    contains,
    contains_words,
    encoding_note,
    fold,
    fold_encoding,
    hidden_markup,
    is_blank,
    is_boundary,
    link_marks,
    same_text,
    split_words,
)


def show_markup(text: str) -> str:
    """Return a text with the replacements of its markup."""
    parts: list[str] = []
    place = 0
    for mark in hidden_markup(text):
        parts += [text[place : mark.start], mark.replacement]
        place = mark.end
    return "".join([*parts, text[place:]])


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("se<b>cr</b>et", "secret"),
        ("se<wbr/>cret<br>now", "secret now"),
        ("a <a href=\"x>y\" class='z'>link</a>.", "a link."),
        ("a<!-- <b>not</b> shown -->b <!-- open", "ab <!-- open"),
        ("&lt;b&gt; &amp;shy; &#115;&#x65; &nosuch;", "<b> \u00ad se &nosuch;"),
        ('[text](https://x.org/(a)_b "title") ![alt](i.png)', "text alt"),
        ("[1] and [a](b", "[1] and [a](b"),
        (r"\[a](b)", r"\[a](b)"),
        ("- one\n2. two\n> ## three\n- - four", "one\ntwo\nthree\nfour"),
        ("| a | b |", " a b "),
        ("==a== ||b||", "a b"),
        ("-5 and a < b, c > d", "-5 and a < b, c > d"),
        ("", ""),
    ],
)
def test_what_a_page_shows(text: str, page: str) -> None:
    assert show_markup(text) == page


def test_only_links_have_marks_of_links() -> None:
    text = "[a [b](c) d](e)"
    assert [text[mark.start : mark.end] for mark in link_marks(text)] == ["[", "[", "](c)", "](e)"]


@given(st.text("<>!-/ab&#;[]()| \n*\"'x1=", max_size=60) | st.text(max_size=30))
def test_marks_are_in_order_and_in_the_text(text: str) -> None:
    marks = hidden_markup(text)
    assert all(0 <= mark.start < mark.end <= len(text) for mark in marks)
    assert all(left.end <= right.start for left, right in pairwise(marks))


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<a",
        "<a ",
        "<a '",
        '<a "',
        "<!--",
        "<!-- -->",
        "&",
        "&amp;",
        "&a",
        "[",
        "](",
        "[a](b",
        "](a(",
        "|",
        "=",
        "- ",
        "> ",
        "1. ",
    ],
)
def test_a_hostile_text_is_read_in_linear_time(unit: str) -> None:
    text = (unit * 100_000)[:100_000]
    assert all(left.end <= right.start for left, right in pairwise(hidden_markup(text)))


Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD", "NFKC", "NFKD")
CANONICAL_FORMS: tuple[Form, ...] = ("NFC", "NFD")
INVISIBLE = "\u00ad\u034f\u180e\u200b\u200c\u200d\u200e\u200f\u202e\u2060\u2066\ufe0f\ufeff\U000e0041\x00\x07"
SCRIPTS = "abÉß İı-'’„“ \n\u00a0\u3000é\u0301\u0307ﬁ1２²½密码ーガｶﾞกำ่๔서울\u1109\u1165नहिက្"
TEXTS = st.text(st.sampled_from(SCRIPTS) | st.characters(), max_size=30)
WORDS = st.text(st.sampled_from("abzßéÉжשع1密码カ서울กनह '-„’"), min_size=1, max_size=8).filter(
    lambda words: not is_blank(words)
)


def sprinkle(text: str, data: st.DataObject) -> str:
    """Return a text with invisible characters in any places."""
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        text = text[:place] + data.draw(st.sampled_from(INVISIBLE)) + text[place:]
    return text


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("café", "cafe\u0301"),
        ("서울", unicodedata.normalize("NFD", "서울")),
        ("ガ", "ｶﾞ"),
        ("ＶＯＵＣＨＥＲ", "VOUCHER"),
        ("oﬃce", "office"),
        ("m²", "m^2"),
        ("CO₂", "CO2"),
        ("e\u2010mail", "e-mail"),
        ("e\u2011mail", "e–mail"),
        ("„ja“", '"ja"'),
        ("don\u2019t", "don't"),
        ("don\u00b4t", "don`t"),
        ("EUR\u00a020", "EUR 20"),
        ("10〜20", "10～20"),
        ("Versi\u00adcherung", "Versicherung"),
        ("one\r\ntwo", "one\u2028two"),
        ("  Paris\u200b", "Paris"),
    ],
)
def test_texts_that_differ_only_in_encoding_are_the_same(a: str, b: str) -> None:
    assert same_text(a, b)
    assert contains(a, b)
    assert contains(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [("straße", "STRASSE"), ("İstanbul", "istanbul"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("Yes  please", "yes\nPLEASE")],
)
def test_texts_that_differ_in_case_or_the_amount_of_white_space_are_the_same_where_that_does_not_count(
    a: str, b: str
) -> None:
    assert not same_text(a, b)
    assert same_text(a, b, ignore_case=True)
    assert contains(a, b)
    assert contains(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("10²", "102"),
        ("x²", "x2"),
        ("m²", "m2"),
        ("²", "2"),
        ("10⁻³", "10-3"),
        ("1½", "11/2"),
        ("10₂", "102"),
        ("sık", "sik"),
        ("cafe", "café"),
        ("서우", "서울"),
        ('"a"', "'a'"),
        ("ab", "a b"),
    ],
)
def test_texts_that_a_reader_tells_apart_are_not_the_same(a: str, b: str) -> None:
    assert not same_text(a, b, ignore_case=True)
    assert not contains(b, a)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("密码是4711谢谢。", "4711"),
        ("你真是个傻瓜啊。", "傻瓜"),
        ("合計は42円です", "42"),
        ("データー4711です", "4711"),
        ("ฉันชื่อ4711ครับ", "4711"),
        ("รหัสที่4711", "4711"),
        ("ລະຫັດ4711ເດີ", "4711"),
        ("លេខ4711បាទ", "4711"),
        ("ကုဒ်4711ပါ", "4711"),
        ("비밀번호는 4711입니다", "4711"),
        ("私はAnaです", "ana"),
        ("Ana's order", "ana"),
        ("user:Ana", "Ana"),
        ("see(x)", "(x"),
        ("c++ is it", "C++"),
        ("Acme™ phones", "acme"),
        ("हिन्दी में", "हिन्दी"),
        ("Ana¹", "Ana"),
        ("I am Ana², she said", "ana"),
        ("①Ana", "Ana"),
        ("№4711", "4711"),
        ("№4711", "No4711"),
        ("℡4711", "4711"),
        ("4711㎏", "4711"),
        ("4711㎏", "4711kg"),
        ("℅Ana", "Ana"),
        ("Anaª", "Ana"),
        ("Ana½", "Ana"),
        ("AnaⅧ", "Ana"),
        ("₨4711", "4711"),
        ("⑴Ana⒜", "Ana"),
        ("50 m²", "m²"),
        ("ＡＮＡ¹", "Ana"),
        ("ⒶⓃⒶ", "Ana"),
    ],
)
def test_words_are_found_as_whole_words_in_any_script(text: str, words: str) -> None:
    assert contains_words(text, words)
    assert contains(text, words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class", "ass"),
        ("isx4711thanks", "4711"),
        ("naïve", "na"),
        ("nai\u0308ve", "nai"),
        ("हिन्दी", "न"),
        ("Иванов", "Иван"),
        ("darüber", "über"),
        ("๔๗๑๑", "๗"),
        ("密码14711", "4711"),
        ("user_id", "id"),
        ("바보같이", "보"),
        ("x̌", "x"),
    ],
)
def test_a_part_of_a_word_is_not_a_whole_word(text: str, words: str) -> None:
    assert not contains_words(text, words)


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b", "\u2800", "\u3164", "\u00ad\ufeff \u2060", "\x00", "\U000e0041"]
)
def test_a_text_that_shows_nothing_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", "。", "\u200bx", "0", "👍", "…"])
def test_a_text_that_shows_something_is_not_blank(text: str) -> None:
    assert not is_blank(text)


@pytest.mark.parametrize(("text", "words", "there"), [("a\nb", "\n", True), ("a b", "\n", False), ("a", "", False)])
def test_words_that_show_nothing_are_looked_up_as_they_are(text: str, words: str, there: bool) -> None:
    assert contains(text, words) is there
    assert contains(f"{text}\u200b", "\u200b")
    assert not contains(text, "\u200b")


@pytest.mark.parametrize(
    ("text", "words", "note"),
    [
        ("a VOUCHER", "voucher", ""),
        ("credit\ncard", "credit card", ""),
        ("vou\u200dcher", "voucher", "only the encoding differs: 'vou\\u200dcher'"),
        ("ＶＯＵＣＨＥＲ!", "voucher", "only the encoding differs: 'ＶＯＵＣＨＥＲ'"),
        ("nothing", "voucher", ""),
    ],
)
def test_a_note_shows_how_words_are_written_when_only_their_encoding_differs(text: str, words: str, note: str) -> None:
    assert encoding_note(text, words) == note


def test_words_are_split_at_boundaries_and_at_letters_of_scripts_without_spaces() -> None:
    assert split_words("Das Ist 4711: 密码ABC, ไทย! don’t") == [
        "das",
        "ist",
        "4711",
        "密",
        "码",
        "abc",
        *"ไทย",
        "don",
        "t",
    ]


def test_a_word_beside_a_sign_has_its_place_in_the_original_text() -> None:
    text = FoldedText("①Ana, Ana, №4711 and Ana¹; banana¹")
    assert [text.text[start:end] for start, end in text.find_all("ana", whole=True)] == ["Ana", "Ana", "Ana"]
    assert [start for start, _ in text.find_all("ana", whole=True)] == [1, 6, 21]
    assert not contains_words("banana¹", "ana")
    assert not contains_words("ＡｎａＢ", "ana")


@given(TEXTS)
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert fold_encoding(fold_encoding(text)) == fold_encoding(text)


@given(st.text(st.characters(exclude_characters="²³¹⁰⁴⁵⁶⁷⁸⁹⁺⁻₀₁₂₃₄₅₆₇₈₉₊₋½¼¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞⅟↉™℠")))
def test_every_unicode_form_of_a_text_is_the_same_text(text: str) -> None:
    assert {fold(unicodedata.normalize(form, text)) for form in FORMS} == {fold(text)}


@given(TEXTS)
def test_the_canonical_forms_of_a_text_are_the_same_text(text: str) -> None:
    assert all(same_text(unicodedata.normalize(form, text), text) for form in CANONICAL_FORMS)


@given(TEXTS, WORDS, st.data())
def test_invisible_characters_never_change_an_answer(text: str, words: str, data: st.DataObject) -> None:
    hidden = sprinkle(text, data)
    assert is_blank(hidden) is is_blank(text)
    assert same_text(hidden, text)
    assert contains(hidden, words) is contains(text, words) is contains(text, sprinkle(words, data))
    assert contains_words(hidden, words) is contains_words(text, words)


@given(TEXTS, WORDS, TEXTS)
def test_words_between_spaces_are_contained_as_whole_words(before: str, words: str, after: str) -> None:
    text = FoldedText(f"{before} {words} {after}")
    assert text.contains(words)
    assert text.contains(words, whole=True)


@given(TEXTS, WORDS)
def test_what_is_the_same_contains_and_whole_words_are_contained(text: str, words: str) -> None:
    assert not same_text(text, words) or contains(text, words)
    assert not contains_words(text, words) or contains(text, words)


@given(TEXTS, WORDS, TEXTS, st.data())
def test_a_span_covers_the_words_in_the_original_text(before: str, words: str, after: str, data: st.DataObject) -> None:
    text = FoldedText(sprinkle(f"{before} {words} {after}", data))
    span = text.find(words)
    assert span is not None
    assert fold(words) in fold(text.text[span.start : span.end])
    assert fold(text.text[span.start : span.end]) == fold(words) or any(len(fold(letter)) > 1 for letter in text.text)


@given(TEXTS)
def test_each_folded_character_comes_from_a_place_in_the_original(text: str) -> None:
    folded = FoldedText(text)
    for place, character in enumerate(folded.folded):
        start, end = folded.span(place, place + 1)
        assert 0 <= start < end <= len(text)
        assert character in fold(f"x{text[start:end]}x") or character == " "


@given(TEXTS)
def test_the_pattern_of_a_boundary_finds_the_same_boundaries(text: str) -> None:
    pattern = regex.compile(BOUNDARY)
    folded = fold(text)
    inside = range(1, len(folded))
    assert [bool(pattern.match(folded, place)) for place in inside] == [is_boundary(folded, place) for place in inside]


HIDDEN = [
    *("se**cr**et", "se`cr`et", "s_e_c_r_e_t", "se~~cr~~et", "se<wbr>cret", "se<b>cr</b>et", "se<!-- x -->cret"),
    *("se&shy;cret", "&#115;ecret", "se&#x63;ret", "se&amp;shy;cret", "[sec](https://x.org)ret", "![sec](i.png)ret"),
    *("seـcret", "🇸🇪🇨🇷🇪🇹", "🅂🄴🄲🅁🄴🅃", "🅢🅔🅒🅡🅔🅣", "🆂🅴🅲🆁🅴🆃", "ⓢⓔⓒⓡⓔⓣ", "⒮⒠⒞⒭⒠⒯", "ｓｅｃｒｅｔ"),
    *(
        "s\u0336e\u0336c\u0336r\u0336e\u0336t\u0336",
        "s\u035be\u035bc\u035br\u035be\u035bt",
        "se\u200bcret",
        "SECRET",
        "==sec==ret",
    ),
]


@pytest.mark.parametrize("text", HIDDEN)
@pytest.mark.parametrize("whole", [False, True])
def test_a_guard_sees_a_word_through_markup_and_special_characters(text: str, whole: bool) -> None:
    guarded = GuardedText(f"It is {text}, you see.")
    span = guarded.find("secret", whole=whole)
    assert guarded.contains("secret", whole=whole)
    assert list(guarded.matches(regex.compile(r"\bsecret\b")))
    assert span is not None
    assert guarded.text[span.start : span.end] in f" {text},"
    assert any("secret" in reading.casefold() for reading in guarded.readings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("مـــرحبا", "مرحبا"),
        ("مُرُور", "مرور"),
        ("שָׁלוֹם", "שלום"),
        ("- sec\n- ret", "sec ret"),
        ("| sec | ret |", "sec ret"),
        ("> sec\n> ret", "sec ret"),
        ("sec<br>ret", "sec ret"),
        ("sec&nbsp;ret", "sec ret"),
        ("٤٧١١", "4711"),
        ("[1] is it", "[1]"),
        ("**bold**", "**bold**"),
    ],
)
def test_a_guard_sees_what_a_page_shows(text: str, words: str) -> None:
    assert GuardedText(text).contains(words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("scarlet", "secret"),
        ("se-cret x", "sec ret"),
        ("año", "ano"),
        ("1 apple", "[1]"),
        ("bold", "**"),
        ("हिन्दी", "हनद"),
    ],
)
def test_a_guard_tells_other_words_apart(text: str, words: str) -> None:
    assert not GuardedText(text).contains(words)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        *(
            (text, "4711")
            for text in ("4,711", "4.711", "47-11", "47 11", "4 7 1 1", "47\n11", "4'711", "47**11**", "PIN47-11")
        ),
        *((text, "A1742") for text in ("A 17 42", "a-17-42", "A.17.42", "(A)17/42")),
        *((text, "A-17-42") for text in ("A1742", "A–17–42", "A 17 42")),
        ("DE89 3704 0044", "DE8937040044"),
        ("DE8937040044", "DE89 3704 0044"),
        ("4711", "4,711"),
        ("24 . 90", "24.90"),
        ("24,90", "24.90"),
        ("2024/05/01", "2024-05-01"),
    ],
)
def test_a_guard_finds_a_code_with_marks_in_it(text: str, code: str) -> None:
    guarded = GuardedText(f"it is {text} now")
    assert guarded.contains(code, whole=True)
    span = guarded.find(code)
    assert span is not None
    assert guarded.text[span.start].casefold() == code[0].casefold()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("47110", "4711"),
        ("147 11", "4711"),
        ("47 or 11", "4711"),
        ("2490", "24.90"),
        ("1 2", "12"),
        ("in, 2024", "in 2024"),
    ],
)
def test_another_code_is_not_found(text: str, code: str) -> None:
    assert not GuardedText(text).contains(code, whole=True)


@given(st.from_regex("[A-Z0-9]{4,12}", fullmatch=True), st.data())
def test_a_code_is_found_whatever_separates_it(code: str, data: st.DataObject) -> None:
    marks = [
        data.draw(st.sampled_from(["", "", "-", " ", ".", "–", "\u00a0", "**", "\u200b", "<b>", "&shy;"])) for _ in code
    ]
    code_with_marks = "".join(sign + mark for sign, mark in zip(code[:-1], marks, strict=False)) + code[-1]
    has_digits = sum(map(str.isdecimal, code)) >= 2
    assert GuardedText(f"it is {code_with_marks} now").contains(code) or not has_digits


@given(TEXTS, st.sampled_from(HIDDEN), TEXTS)
def test_a_hidden_word_has_its_place_in_the_original_text(before: str, hidden: str, after: str) -> None:
    text = f"{before} {hidden} {after}"
    span = GuardedText(text).find("secret", whole=True)
    assert span is not None
    assert 0 <= span.start < span.end <= len(text)


@given(st.text(max_size=40), st.booleans(), st.booleans())
def test_a_plain_text_has_places_in_the_original(text: str, hide_markup: bool, apart: bool) -> None:
    plain = PlainText(text, hide_markup=hide_markup, apart=apart)
    for place in range(len(plain.text)):
        start, end = plain.span(place, place + 1)
        assert 0 <= start < end <= len(text)


@pytest.mark.parametrize(
    "unit", ["*", "<a", "[a](b)", "&shy;", "🅰", "ـ", "é", "é\u0336", "- ", "|", "1,", "4-7-", "\u0336"]
)
def test_a_guard_reads_a_hostile_text_in_linear_time(unit: str) -> None:
    assert not GuardedText((unit * 100_000)[:100_000]).contains("AB-4711-CD", whole=True)


@pytest.mark.parametrize(
    ("text", "words", "is_there"),
    [
        ("e-mail", "—", False),
        ("yes — no", "—", True),
        ("yes &mdash; no", "—", True),
        ("3-5", "–", False),
        ('say "hi"', "“", False),
        ("say “hi”", '"', True),
        ("it's", "`", False),
        ("yes—no", "-", True),
        ("wait…", "...", True),
        ("ok！", "!", True),
    ],
)
def test_a_dash_or_a_quotation_mark_alone_is_looked_up_as_it_is(text: str, words: str, is_there: bool) -> None:
    guarded = GuardedText(text)
    assert guarded.contains(words) is is_there
    assert (guarded.find(words) is not None) is is_there
    assert "&" in text or contains(text, words) is is_there


@pytest.mark.parametrize("text", ["ıstanbul", "İstanbul", "ISTANBUL", "istanbul"])
@pytest.mark.parametrize("words", ["ıstanbul", "İstanbul", "ISTANBUL", "istanbul"])
def test_a_guard_reads_an_i_with_and_without_its_dot(text: str, words: str) -> None:
    assert GuardedText(f"It is {text}.").contains(words, whole=True)
