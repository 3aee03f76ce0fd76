from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.penelope.checks.check import MessageCheck
from vivavoce.penelope.checks.disclosure import DisclosureCheck

from ..states import Exchange, state, turn

CHECK: MessageCheck = DisclosureCheck()
FACTS = {"order_number": "AB-1234 56", "email": "kim@example.com", "seats": "2", "insured": "no"}
HELLO: Exchange = ("Hi.", "Hello, how can I help?")


@pytest.mark.parametrize(
    "message", ["It is AB-1234 56.", "it is ab123456", "It is AB 12-34-56, thanks", "AB‑1234\n56", "(AB-123456)"]
)
def test_a_fact_that_nobody_asked_for_is_named(message: str) -> None:
    said = CHECK.objection(message, state(HELLO, facts=FACTS))
    assert said == "'order_number' is told only when asked for, and nobody did: leave 'AB-1234 56' out of the message"


@pytest.mark.parametrize("message", ["It is AB-1234 567.", "XAB-1234 56", "AB-1234", "My order is late.", ""])
def test_what_only_resembles_a_fact_is_none(message: str) -> None:
    assert CHECK.objection(message, state(HELLO, facts=FACTS)) is None


@pytest.mark.parametrize(
    "reply", ["Which order is it?", "Your ORDERS?", "Do you have an order-number?", "The numbers, please.", "Order’s?"]
)
def test_a_fact_is_told_once_a_word_of_its_name_was_asked(reply: str) -> None:
    assert CHECK.objection("It is AB-1234 56.", state(("Hi.", reply), HELLO, facts=FACTS)) is None


@pytest.mark.parametrize("reply", ["Are you bordering?", "Of the user?", "Which one?"])
def test_other_words_do_not_ask_for_it(reply: str) -> None:
    facts = {"order of the user": "AB-1234 56"}
    assert CHECK.objection("It is AB-1234 56.", state(("Hi.", reply), facts=facts)) is not None


@pytest.mark.parametrize(("name", "reply"), [("e_mail", "Your email?"), ("email", "Your e-mail?"), ("eMail", "Email?")])
def test_a_hyphen_makes_no_difference(name: str, reply: str) -> None:
    assert CHECK.objection("kim@example.com", state(("Hi.", reply), facts={name: "kim@example.com"})) is None


@pytest.mark.parametrize("name", ["orderNumber", "order-number", "Order number", "größe_order"])
def test_names_are_read_in_any_spelling(name: str) -> None:
    assert CHECK.objection("AB-1234 56", state(("Hi.", "Which order?"), facts={name: "AB-1234 56"})) is None


def test_a_target_that_asks_for_details_may_be_told_anything() -> None:
    asked = state(("Hi.", "Please give me your account details."), facts=FACTS)
    assert CHECK.objection("AB-1234 56 and kim@example.com", asked) is None


def test_what_was_asked_in_a_turn_that_was_taken_back_was_never_asked() -> None:
    asked = turn("Hi.", "Which order?", forgotten=True)
    assert CHECK.objection("It is AB-1234 56.", state(asked, HELLO, facts=FACTS)) is not None


def test_a_short_value_is_found_as_a_word_of_its_own() -> None:
    assert CHECK.objection("We are 2.", state(facts=FACTS)) is not None
    assert CHECK.objection("We are 22, at 2nd street.", state(facts=FACTS)) is None
    assert CHECK.objection("a b", state(facts={"code": "ab"})) is None


def test_a_yes_or_no_gives_nothing_away() -> None:
    assert CHECK.objection("No, thanks.", state(facts=FACTS)) is None


@pytest.mark.parametrize(
    "known", [{"goal": "Return order ab123456"}, {"scenario": "AB-1234 56 broke"}, {"openings": ("AB 123456",)}]
)
def test_what_the_test_itself_says_is_no_secret(known: dict[str, Any]) -> None:
    assert CHECK.objection("It is AB-1234 56.", state(facts=FACTS, **known)) is None


def test_what_the_target_said_is_no_secret() -> None:
    assert CHECK.objection("Yes, AB123456.", state(("Hi.", "Is it about AB-1234 56?"), facts=FACTS)) is None


@given(st.text(), st.text())
def test_any_fact_is_looked_for(name: str, value: str) -> None:
    about = state(HELLO, facts={name: value})
    assert CHECK.objection(f"({value})", about) == CHECK.objection(f"({value})", about)


@given(st.text("abcdefghij0123456789 -", min_size=1).filter(lambda value: len(value.strip(" -")) >= 4))
def test_a_value_is_found_in_any_capitals(value: str) -> None:
    assert CHECK.objection(f"It is {value.upper()}.", state(facts={"zz": value})) is not None
