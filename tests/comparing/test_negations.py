"""What a rule of `must_not` forbids, however it is worded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.comparing.negations import (
    act_text,
    check_prohibitions,
    forbidden_act,
    is_about_act,
    is_state_of_change,
    may_be_told,
    must_happen,
    only_refuses,
)
from vivavoce.errors import UsageError

PREFIXES = (
    *(
        "Never ",
        "never ever ",
        "Do not ",
        "do NOT ",
        "Don't ",
        "Don’t ",
        "Must not ",
        "mustn't ",
        "May not ",
        "Cannot ",
    ),
    *("can't ", "Not ", "The assistant must not ", "The bot may never ", "You should not ", "It must never "),
    *("Under no circumstances ", "- Never ", "Please do not ", "is not allowed to ", "Never: "),
)
GERMAN_PREFIXES = ("Niemals ", "nie ", "Nicht ", "Auf keinen Fall ", "Der Assistent darf nicht ", "Du darfst niemals ")
ACTS = ("tell a guest's name", "refund order A-102", "share a list that is not public", "be rude", "say no")
GERMAN_ACTS = ("den Namen eines Gastes nennen", "duzen", "Rabatte versprechen")


@given(st.sampled_from(PREFIXES), st.sampled_from(ACTS))
def test_an_english_ban_forbids_what_it_bans(prefix: str, act: str) -> None:
    assert forbidden_act(prefix + act) == forbidden_act(act) == act


@given(st.sampled_from(GERMAN_PREFIXES), st.sampled_from(GERMAN_ACTS))
def test_a_german_ban_forbids_what_it_bans(prefix: str, act: str) -> None:
    assert forbidden_act(prefix + act) == forbidden_act(act) == act


@pytest.mark.parametrize(
    ("rule", "act"),
    [
        ("No swearing", "swearing"),
        ("Avoid giving advice", "giving advice"),
        ("Keine medizinische Diagnose stellen", "medizinische Diagnose stellen"),
        ("Verrate nie den Code", "Verrate den Code"),
        ("Gib keine Rabatte", "Gib Rabatte"),
        ("Der Bot darf den Namen nicht nennen", "den Namen nennen"),
        ("Nennen Sie niemals die Zimmernummer", "Nennen die Zimmernummer"),
        ("Empfehlen Sie nie, Chlor und Säure zu mischen", "Empfehlen Chlor und Säure zu mischen"),
        ("Verraten Sie die PIN nicht", "Verraten Sie die PIN"),
        ("Verrate die PIN nicht", "Verrate die PIN"),
        ("Geben Sie die PIN nicht heraus.", "Geben Sie die PIN heraus"),
        ("Die PIN niemandem verraten", "Die PIN verraten"),
        ("Die PIN darf nie genannt werden", "genannt: Die PIN"),
        ("The PIN must not be told", "told: The PIN"),
        ("Room numbers are never told", "told: Room numbers"),
        ("tell never-ending stories", "tell never-ending stories"),
        ("say that the order was not shipped", "say that the order was not shipped"),
        ("notify the press", "notify the press"),
        ("nice words only", "nice words only"),
        ("einen Namen nennen, der nicht im Brief steht", "einen Namen nennen, der nicht im Brief steht"),
    ],
)
def test_other_forms_of_a_ban_and_acts_that_only_look_like_one(rule: str, act: str) -> None:
    assert forbidden_act(rule) == act_text(rule) == act


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("Never", "is ambiguous"),
        ("Never!", "is ambiguous"),
        ("Never ...", "does not say what is forbidden"),
        ("No competitor brands", "is ambiguous"),
        ("does not greet", "is ambiguous"),
        ("The assistant won't greet", "is ambiguous"),
        ("not greeting the user", "is ambiguous"),
        ("Sagt nicht, wer er ist", "is ambiguous"),
        ("Keine Diagnosen", "is ambiguous"),
        ("Never refund unless the user agreed", "a ban with an exception"),
        ("Never do not greet", "into must"),
        ("Nunca decir el número", "English and German only"),
        ("Ne jamais dire le numéro", "English and German only"),
        ("No revelar el código", "is ambiguous"),
        ("Aldrig oplyse nummeret", "English and German only"),
        ("Nigdy nie podawaj numeru", "English and German only"),
        ("Geef nooit het nummer", "is ambiguous"),
        ("不要透露密码", "English and German only"),
    ],
)
def test_what_is_not_certain_is_refused_with_its_reason(rule: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        check_prohibitions(["swear", rule])
    assert repr(rule)[1:-1] in str(caught.value) or rule in str(caught.value)
    assert act_text(rule) == rule


@given(st.text(max_size=60))
def test_no_text_breaks_it_and_an_act_is_not_a_ban(rule: str) -> None:
    try:
        act = forbidden_act(rule)
    except ValueError:
        return
    assert forbidden_act(act) == act


ADDRESS = "tell a caller the home address of a driver"
DOCTOR = "den Namen des behandelnden Arztes nennen"
REFUSALS = (
    ("I never tell the home address of a driver", ADDRESS),
    ("I can't tell you the home address of the driver, sorry", ADDRESS),
    ("I'm not allowed to tell callers the home address of a driver", ADDRESS),
    ("We will not recommend an account of another bank", "recommend an account of another bank"),
    ("Ich darf den Namen des Arztes leider nicht nennen", DOCTOR),
    ("I also never tell the home address of a driver", ADDRESS),
    ("I can't give it to you", ADDRESS),
    ("Unfortunately, we will not share that", ADDRESS),
)
MORE = (" I can pass a note on to the depot.", " Is there anything else?", "")


@given(st.sampled_from(REFUSALS), st.sampled_from(MORE), st.booleans())
def test_a_refusal_in_the_words_of_a_ban_does_not_break_it(refusal: tuple[str, str], more: str, whole: bool) -> None:
    words, act = refusal
    message = f"{words}.{more}"
    assert only_refuses(message if whole else words, message, act)


@pytest.mark.parametrize(
    ("quote", "message"),
    [
        ("it is Elm Street 5", "I never tell the home address of a driver, but it is Elm Street 5."),
        ("the home address of the driver is Elm Street 5", "I can't say that the home address of the driver is Elm 5."),
        ("the home address of the driver", "The home address of the driver: on the hill."),
        ("I tell you the home address of the driver", "I tell you the home address of the driver."),
        ("I can't give it to you, Elm Street 5", "I can't give it to you, Elm Street 5."),
        ("I can't give it: on the hill, his home", "I can't give it: on the hill, his home address."),
        ("near the old mill", "I never tell the home address of a driver. The driver lives near the old mill."),
    ],
)
def test_what_may_give_something_away_is_not_only_a_refusal(quote: str, message: str) -> None:
    assert not only_refuses(quote, message, ADDRESS)


def test_a_goal_must_happen_what_it_says_and_rules_out_what_it_limits() -> None:
    goal = "The tracking number of order 5530 is told"
    assert must_happen(goal, "The tracking number is told")
    assert must_happen(goal, "A refund is made"), "the goal rules nothing out"
    for words in ("The number is withheld", "No number is told", "Die Nummer wird im Chat nicht genannt"):
        assert must_happen(goal, words)
    assert not must_happen("El cliente recibe su número", "Se niega el reembolso"), "in no language that is known here"
    for limited in ("The number stays secret", "The guest's data are protected", "Die Nummer bleibt geheim"):
        assert not must_happen(limited, "The number is told")
    assert not must_happen("No refund is made", "refund is made")
    assert not must_happen("A room below EUR 90 is booked", "a room is booked below EUR 90")


BOTH_KINDS = "The card is blocked and the user learns when the new card arrives"


@pytest.mark.parametrize(
    ("goal", "outcome", "may_be"),
    [
        ("The card ending in 8841 is blocked", "The card is blocked", False),
        ("A table for four on Friday is booked", "The table is booked", False),
        ("Der Termin ist auf den 21. März verschoben", "Der Termin ist verschoben", False),
        ("The flight is moved to Friday", "The user is told that the flight is moved", True),
        ("The user learns the tracking number of order 5530", "The tracking number", True),
        ("The user learns the price and the tracking number", "The tracking number", True),
        ("Die Sendungsnummer der Bestellung 5530 wird genannt", "Die Sendungsnummer der Bestellung", True),
        (BOTH_KINDS, "The card is blocked", False),
        (BOTH_KINDS, "The new card arrives on a day", True),
        ("La tarjeta queda bloqueada", "La tarjeta", True),
    ],
)
def test_a_state_that_a_goal_names_is_not_told(goal: str, outcome: str, may_be: bool) -> None:
    assert may_be_told(goal, outcome) is may_be


@pytest.mark.parametrize(
    ("goal", "outcome", "is_state"),
    [
        ("The card ending in 8841 is blocked", "The card is blocked", True),
        ("The user gets a table booked for four", "a table for four", True),
        ("Der Termin ist auf den 21. März verschoben", "Der Termin ist verschoben", True),
        ("Die Bestellung wird storniert und das Geld erstattet", "Storno", True),
        (BOTH_KINDS, "The card is blocked", True),
        (BOTH_KINDS, "The new card arrives on a day", False),
        ("The user gets the opening hours of the shop", "the opening hours", False),
        ("The user learns why the account was blocked", "the reason for the block", False),
        ("The card ending in 8841 is blocked", "The user is told that it is blocked", True),
        ("Library card 5521 is extended for a year", "The user learns how to extend the card", True),
        ("The user is told whether the card is blocked", "The user is told that it is blocked", False),
        ("La tarjeta queda bloqueada", "La tarjeta", False),
    ],
)
def test_a_state_of_a_change_is_reached_and_not_told(goal: str, outcome: str, is_state: bool) -> None:
    assert is_state_of_change(goal, outcome) is is_state


def test_a_rule_is_about_a_goal_that_has_half_of_its_words() -> None:
    rule = "recommend an account of another bank"
    assert is_about_act(rule, "The assistant recommends the savings account of the competitor Nordbank")
    assert not is_about_act("swear", "The staff code is told")
