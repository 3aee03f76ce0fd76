"""Which numbers does a text state? Every reader gives the answer of `comparing/numbers.py`."""

from __future__ import annotations

from typing import Any

import pytest

from conversations import calls, says, user
from vivavoce.comparing.numbers import (
    all_numbers_in,
    exact,
    has_unread,
    is_within,
    may_state,
    numbers_in,
    read_number,
    states,
)
from vivavoce.grading.assertions import Scene
from vivavoce.grading.expected import read_expect
from vivavoce.grading.extractors import View
from vivavoce.grading.graders import Case, numeric
from vivavoce.messages import read_messages
from vivavoce.metrics import RuleMetric, evaluate_conversation
from vivavoce.metrics.exact.arguments import read_matcher
from vivavoce.metrics.rules.sameness import alike, may_mention, mentions
from vivavoce.penelope.facts import MIN_CHARS, may_tell_fact
from vivavoce.penelope.tools.spans import find_spans
from vivavoce.samples.sample import Sample

TEXTS = [
    "EUR 24,000 for 2",
    "24.90",
    " 24,90 ",
    "1,240",
    "1.240,50 EUR",
    "1'250 CHF",
    "1 250 €",
    "1\u202f250",
    "5kg",
    "It takes 250ms.",
    "−5",
    "-5 degrees",
    "EUR-5",
    "5-10",
    "1e3",
    "0.00001",
    "A100 and A-17-B",
    "at 10:24 on 2024-05-01",
    "version 1.2.3",
    "order #1042",
    "共42件。",
    "４２",
    "9007199254740993",
    "10k",
    "5&nbsp;000 €",
    "It is 24.**90**",
    "5<b>0</b>",
    "$1{,}250$",
    "2 thousand 500",
    "3만 4,800원",
    "minus 5",
    "− 5",
    "- 5 apples",
    "10⁻³",
    "42.",
    "12-15",
    "nothing",
    "",
]
NUMBERS: list[Any] = [
    *(
        0,
        1,
        2,
        3,
        5,
        -5,
        10,
        17,
        24,
        24.9,
        90,
        42,
        100,
        240,
        250,
        500,
        1000,
        2500,
        5000,
        1042,
        1240,
        1240.5,
        1250,
        1e-05,
        10000,
    ),
    *(24000, 9007199254740992, 9007199254740993),
]
LOCALES = [None, "en", "de", "fr"]


def held(assertion: dict[str, Any], text: str) -> bool:
    [expected] = read_expect(assertion)
    messages = read_messages([{"role": "user", "content": "?"}, {"role": "assistant", "content": text}])
    return expected.assertion.held(Scene(View([messages]))).passed


def of_case(text: str, truth: Any, **options: Any) -> bool:
    return numeric(Case(Sample(id="a", input="?", ground_truth=truth), text, View([])), **options).value == 1


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("text", TEXTS)
def test_the_assertions_and_the_grader_answer_as_the_reader(text: str, locale: str | None) -> None:
    numbers = numbers_in(text, locale)
    options = {} if locale is None else {"locale": locale}
    for number in NUMBERS:
        stated, whole = states(text, number, locale), read_number(text, locale) == exact(number)
        assert held({"contains": number, **options}, text) is stated
        possible = may_state(text, number, locale)
        assert possible or not stated
        assert held({"not_contains": number, **options}, text) is (not possible and bool(text))
        assert held({"not": {"contains": number, **options}}, text) is (not possible and bool(text))
        assert not (held({"not": {"equals": number, **options}}, text) and whole)
        assert held({"equals": number, **options}, text) is whole
        assert held({"one_of": [number, "no"], **options}, text) is whole
        for place, take in ((0, "first"), (-1, "last")):
            for tolerance in (0.0, 0.1):
                near = bool(numbers) and is_within(numbers[place].value, number, tolerance)
                written = {"numeric": number, "tolerance": tolerance, "take": take, **options}
                assert held(written, text) is near
                assert of_case(text, number, tolerance=tolerance, take=take, locale=locale) is near


@pytest.mark.parametrize("text", TEXTS)
def test_the_rules_answer_as_the_reader(text: str) -> None:
    for number in NUMBERS:
        assert mentions(text, number) is states(text, number)
        assert alike(text, number) is (read_number(text) == exact(number))
        talk = [
            user("?"),
            calls(("b", "refund", {"order": number})),
            {"role": "tool", "tool_call_id": "b", "content": "."},
        ]
        rule = RuleMetric(each={"call": "refund"}, followed_by=[{"assistant_says": ".", "same": "order"}])
        assert rule.evaluate([*talk, says(text)]).passed is states(text, number)
        above = RuleMetric(always={"call": "refund", "where": {"amount": {"above": number}}})
        numbers = all_numbers_in(text)
        if any(stated.is_scaled for stated in numbers):
            continue
        only = numbers[0] if len(numbers) == 1 else None
        wanted = only is not None and not has_unread(text) and all(reading > exact(number) for reading in only.readings)
        assert above.evaluate([user("?"), calls(("b", "refund", {"amount": text}))]).passed is wanted


@pytest.mark.parametrize("text", TEXTS)
def test_the_tester_finds_no_number_that_the_reader_does_not(text: str) -> None:
    spans = [span for span in find_spans(text) if span.kind == "number"]
    assert {read_number(span.value) for span in spans} <= {number.value for number in numbers_in(text)}


@pytest.mark.parametrize(("number", "wanted", "tolerance"), [(24.91, 24.9, 0.01), (1.1, 1, 0.1), (1.11, 1, 0.1)])
def test_the_tolerance_of_tool_calls_is_that_of_numbers(number: float, wanted: float, tolerance: float) -> None:
    near = is_within(number, wanted, tolerance)
    assert read_matcher({"tolerance": tolerance}, "x").agrees(number, wanted) is near
    assert held({"numeric": wanted, "tolerance": tolerance}, f"{number}") is near
    assert of_case(f"{number}", wanted, tolerance=tolerance) is near


def test_a_locale_reaches_the_reader_from_the_options_of_a_metric() -> None:
    talk = [user("?"), says("Es sind 1.234 Stück.")]
    by_locale = {
        locale: evaluate_conversation(talk, [{"metric": "numeric", "config": {"locale": locale}}], reference="1234")
        for locale in ("de", "en")
    }
    assert {locale: result["numeric"].value for locale, result in by_locale.items()} == {"de": 1.0, "en": 0.0}


@pytest.mark.parametrize(
    ("banned", "text"),
    [("20%", "20 %"), ("24.90 €", "€24.90"), ("24.90 €", "24,90 €"), ("1.5", "1,5"), ("5 kg", "5kg"), ("$20", "$ 20")],
)
def test_every_ban_finds_an_amount_however_it_is_written(banned: str, text: str) -> None:
    said = f"That is {text} today."
    assert not held({"not_contains": banned}, said)
    assert not held({"not": {"contains": banned}}, said)
    assert may_mention(said, banned)
    assert may_tell_fact(said, "price", f"{banned} ") or len(banned) < MIN_CHARS
