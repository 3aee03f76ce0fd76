from __future__ import annotations

import inspect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stage import Priced
from vivavoce.errors import ModelFault
from vivavoce.penelope.checks.check import MessageCheck
from vivavoce.penelope.checks.disclosure import DisclosureCheck
from vivavoce.penelope.context import TestState
from vivavoce.records.score import Usage
from vivavoce.testing import ScriptedModel

from ..states import Exchange, state, turn

CHECK: MessageCheck = DisclosureCheck()
FACTS = {"order_number": "AB-1234 56", "email": "kim@example.com", "seats": "2", "insured": "no"}
HELLO: Exchange = ("Hi.", "Hello, how can I help?")


@pytest.mark.parametrize(
    "message", ["It is AB-1234 56.", "it is ab123456", "It is AB 12-34-56, thanks", "AB‑1234\n56", "(AB-123456)"]
)
def test_a_fact_that_nobody_asked_for_is_named(message: str) -> None:
    objection = CHECK.objection(message, state(HELLO, facts=FACTS))
    assert (
        objection == "'order_number' is told only when asked for, and nobody did: leave 'AB-1234 56' out of the message"
    )


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
    asking = state(("Hi.", "Please give me your account details."), facts=FACTS)
    assert CHECK.objection("AB-1234 56 and kim@example.com", asking) is None


def test_what_was_asked_in_a_turn_that_was_taken_back_was_never_asked() -> None:
    asking = turn("Hi.", "Which order?", forgotten=True)
    assert CHECK.objection("It is AB-1234 56.", state(asking, HELLO, facts=FACTS)) is not None


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


def test_all_facts_that_are_told_too_early_are_named_at_once() -> None:
    objection = CHECK.objection("AB-1234 56, kim@example.com", state(HELLO, facts=FACTS))
    assert objection == (
        "'order_number' and 'email' are told only when asked for, and nobody did: "
        "leave 'AB-1234 56' and 'kim@example.com' out of the message"
    )


def test_what_the_user_told_already_is_no_secret_unless_it_was_taken_back() -> None:
    telling = turn("It is AB-1234 56.", "Hello.")
    assert CHECK.objection("As I said, AB123456.", state(telling, facts=FACTS)) is None
    taken_back = turn("It is AB-1234 56.", "Hello.", forgotten=True)
    assert CHECK.objection("As I said, AB123456.", state(taken_back, facts=FACTS)) is not None


GERMAN: dict[str, str] = {"customer number": "88231", "birthday": "3. Mai 1990"}
RECHNUNG: Exchange = ("Ich will kündigen.", "Nennen Sie mir bitte die Nummer oben rechts auf Ihrer Rechnung.")
BOTH = "88231, geboren 3. Mai 1990."


async def get_objection(check: DisclosureCheck, message: str, about: TestState) -> str | None:
    objection = check.objection(message, about)
    return await objection if inspect.isawaitable(objection) else objection


async def test_what_was_asked_in_other_words_is_known_to_a_judge() -> None:
    model = Priced([{"asked": ["customer number"]}])
    check, about = DisclosureCheck(model), state(RECHNUNG, facts=GERMAN)
    assert await get_objection(check, "Die 88231.", about) is None
    assert about.usage["judge"] == Usage(calls=1, cost=0.01)
    assert await get_objection(check, "Es ist die 88231.", about) is None
    assert len(model.requests) == 1


async def test_what_nobody_asked_for_is_objected_to_and_asked_about_once_a_turn() -> None:
    model = ScriptedModel([{"asked": ["customer number"]}, {"asked": ["birthday"]}])
    check, about = DisclosureCheck(model), state(RECHNUNG, facts=GERMAN)
    for _ in range(2):
        objection = await get_objection(check, BOTH, about)
        assert (
            objection
            == "'birthday' is told only when asked for, and nobody did: leave '3. Mai 1990' out of the message"
        )
    assert len(model.requests) == 1
    about.turns.append(turn("Die 88231.", "Und wann sind Sie geboren?"))
    assert await get_objection(check, BOTH, about) is None
    assert len(model.requests) == 2
    assert '- "customer number"' not in model.requests[1].messages[-1].text


@pytest.mark.parametrize(
    "about",
    [state(facts=GERMAN), state(turn("Hi.", None), facts=GERMAN), state(("Hi.", "Your details, please"), facts=GERMAN)],
    ids=["nothing said", "no reply", "words say it"],
)
async def test_no_judge_is_asked_where_code_knows(about: TestState) -> None:
    model = ScriptedModel([])
    await get_objection(DisclosureCheck(model), BOTH, about)
    await get_objection(DisclosureCheck(model), "Guten Tag.", about)
    assert model.requests == []


async def test_where_no_judge_can_answer_the_words_decide_and_all_facts_are_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    about = state(RECHNUNG, facts=GERMAN)
    fault = ModelFault("no \x1b[31mroute\nhere", kind="connection")
    objection = await get_objection(DisclosureCheck(ScriptedModel([fault])), BOTH, about)
    assert objection is not None
    assert objection.startswith("'customer number' and 'birthday' are told only when asked for")
    assert about.counts["disclosure_not_judged"] == 1
    assert "whether the target asked could not be judged" in caplog.text
    assert "no route here" in caplog.text


SHORT = {"passengers": "2", "age": "71", "table number": "7"}


@pytest.mark.parametrize(
    "message",
    [
        "I have 2 questions about a flight.",
        "Is gate 2 open, and is it 71 km away?",
        "My order is B-2, from 7:30.",
        "Can I bring 71 kg of luggage on flight 7?",
        "It costs 2.71 euros.",
    ],
)
def test_a_short_number_in_another_role_tells_no_fact(message: str) -> None:
    assert CHECK.objection(message, state(HELLO, facts=SHORT)) is None


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        ("A flight for 2 passengers, please.", "passengers"),
        ("passengers: 2", "passengers"),
        ("My age is 71.", "age"),
        ("We are 2.", "passengers"),
        ("2", "passengers"),
        ("We sit at table 7.", "table number"),
    ],
)
def test_a_short_number_beside_the_name_of_a_fact_or_alone_tells_it(message: str, fact: str) -> None:
    assert str(CHECK.objection(message, state(HELLO, facts=SHORT))).startswith(f"'{fact}' is told only when asked for")


def test_a_short_number_in_another_role_does_not_make_a_fact_known() -> None:
    goal = "A flight is booked within 2 days"
    assert CHECK.objection("We are 2 passengers.", state(HELLO, facts=SHORT, goal=goal)) is not None
    assert CHECK.objection("We are 2 passengers.", state(HELLO, facts=SHORT, goal="2 passengers fly")) is None
