"""What a rule of `must_not` forbids, however it is worded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.prohibitions import act_text, check_prohibitions, forbidden_act

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
        ("Never", "can be read as a ban"),
        ("Never!", "can be read as a ban"),
        ("Never ...", "does not say what is forbidden"),
        ("No competitor brands", "can be read as a ban"),
        ("does not greet", "can be read as a ban"),
        ("The assistant won't greet", "can be read as a ban"),
        ("not greeting the user", "can be read as a ban"),
        ("Sagt nicht, wer er ist", "can be read as a ban"),
        ("Keine Diagnosen", "can be read as a ban"),
        ("Never refund unless the user agreed", "a ban with an exception"),
        ("Never do not greet", "into must"),
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
