from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vivavoce.metrics.exact.personal_data import KINDS, find_personal_data

SPELLED = ["bob@example.com", "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00"]


def found(text: str, region: str | None = None) -> list[tuple[str, str]]:
    return [(datum.kind, text[datum.start : datum.end]) for datum in find_personal_data(text, KINDS, region)]


@pytest.mark.parametrize(
    ("text", "kind", "datum"),
    [
        ("Write to bob.o'neil+x@mail.example.com.", "email", "bob.o'neil+x@mail.example.com"),
        ("<mailto:Bob@Example.COM>", "email", "Bob@Example.COM"),
        ("'bob@example.com'", "email", "bob@example.com"),
        ("email=bob@example.com&x=1", "email", "bob@example.com"),
        ("住所はbob@example.comです", "email", "bob@example.com"),
        ("IBAN DE89 3704 0044 0532 0130 00, thanks", "iban", "DE89 3704 0044 0532 0130 00"),
        ("ES91 2100 0418 4502 0005 1332 then", "iban", "ES91 2100 0418 4502 0005 1332"),
        ("口座gb29nwbk60161331926819です", "iban", "gb29nwbk60161331926819"),
        ("card 4111 1111 1111 1111 12/27", "card", "4111 1111 1111 1111"),
        ("card 5555-5555-5555-4444.", "card", "5555-5555-5555-4444"),
        ("amex 3782 822463 10005", "card", "3782 822463 10005"),
        ("row 1234 4111 1111 1111 1111", "card", "4111 1111 1111 1111"),
        ("SSN 536-90-4399", "us_ssn", "536-90-4399"),
        ("from 8.8.8.8.", "ip", "8.8.8.8"),
        ("from [2001:4860:4860::8888]", "ip", "2001:4860:4860::8888"),
        ("call +44 20 7946 0958 today", "phone", "+44 20 7946 0958"),
    ],
)
def test_personal_data_is_found_without_what_stands_around_it(text: str, kind: str, datum: str) -> None:
    assert found(text) == [(kind, datum)]


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112 fails its check digit",
        "1234 5678 1234 5670 has no issuer",
        "tracking 4111111111111111000000",
        "code 4006381333931 is on a product",
        "id x4111111111111111 and 0.4111111111111111",
        "on 2024-05-12 12:30, 12/05/2024 - 13/05/2024, at 10:15:30",
        "costs 1,299.00 USD or 1.299,00 EUR, twice 2,598.00",
        "order 20240512123000, flight HAT123, 30 000 000 units",
        "DE89 3704 0044 0532 0130 01",
        "000-12-3456, 666-12-3456, 900-12-3456, 536-00-4399",
        "192.168.0.1, 127.0.0.1, 10.0.0.1, 999.1.1.1, 1.2.3.4.5, 10::15, 10:15:30",
        "me@localhost, a@b, @handle, x..y@example.com, me@1.2.3, bob@host.local, bob @ example.com",
        "ftp://bob@example.com/file",
        "hotline +1 800 829 1040",
        "I know no number: +1 555",
    ],
)
def test_what_only_looks_like_it_is_left_alone(text: str) -> None:
    assert found(text) == []
    assert [kind for kind, _ in found(text, "US")] == []


def test_a_number_without_a_country_needs_a_region() -> None:
    assert found("(212) 736-5000") == []
    assert found("(212) 736-5000", "US") == [("phone", "(212) 736-5000")]
    assert found("030 901820", "DE") == [("phone", "030 901820")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Bob@Example.com", "bob@example.COM"),
        ("DE89370400440532013000", "de89 3704 0044 0532 0130 00"),
        ("4111111111111111", "4111-1111-1111-1111"),
        ("+1 212-736-5000", "(212) 736-5000"),
        ("2001:4860:4860:0:0:0:0:8888", "2001:4860:4860::8888"),
    ],
)
def test_spellings_of_one_datum_have_one_key(one: str, other: str) -> None:
    keys = {datum.key for text in (one, other) for datum in find_personal_data(text, KINDS, "US")}
    assert len(keys) == 1


@given(
    st.lists(
        st.sampled_from(
            ["bob@example.com", "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00", "x", " ", ",", "+", "1"]
        )
    )
)
def test_finds_stand_in_order_and_never_overlap(pieces: list[str]) -> None:
    finds = find_personal_data("".join(pieces), KINDS, "US")
    assert all(one.end <= next_.start for one, next_ in pairwise(finds))


@given(st.text(max_size=200))
def test_any_text_can_be_searched(text: str) -> None:
    for datum in find_personal_data(text, KINDS, "US"):
        assert 0 <= datum.start < datum.end <= len(text)


@given(st.integers(10**15, 10**16 - 1).map(str), st.integers(0, 9))
def test_a_card_with_one_wrong_digit_is_no_card(rest: str, digit: int) -> None:
    number = f"4{rest[1:]}"
    assume(number[-1] != str(digit))
    finds = [bool(find_personal_data(text, ["card"])) for text in (number, f"{number[:-1]}{digit}")]
    assert finds != [True, True]


@given(st.from_regex(r"[a-z]{2,10}@[a-z]{2,10}\.(com|org|de)", fullmatch=True))
def test_a_mask_shows_two_characters_and_no_length(address: str) -> None:
    (one,) = find_personal_data(address, ["email"])
    assert one.masked(address) == f"email {address[0]}…{address[-1]}"


@pytest.mark.parametrize("piece", ["a", "1", "1 ", ":", "4111 ", "@", "a@", "+1 (", "DE89 ", "1.", "-"])
def test_a_hostile_text_takes_no_longer_than_its_length_explains(piece: str) -> None:
    assert len(find_personal_data(piece * 20_000, KINDS, "US")) < 20_000
