"""Briefs that contradict themselves, or that nobody could play, are refused before a test, with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.penelope.agent import PenelopeAgent
from vivavoce.penelope.brief_problems import brief_problem, brief_warnings, withheld_facts
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.distil import distil_scenarios
from vivavoce.penelope.scenarios import generate_scenarios
from vivavoce.suites.check import run_checks
from vivavoce.suites.load import load_suite
from vivavoce.testing import ScriptedModel

ORDER = {"order number": "B-204"}
PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "an ellipsis for a goal": ({"goal": "…"}, "the goal '…': it has no letter"),
    "a placeholder for a scenario": ({"scenario": "<scenario>"}, "the scenario '<scenario>': it is a placeholder"),
    "a masked address": ({"facts": {"e-mail": "[email a…z]"}}, "the fact 'e-mail' .* it is a placeholder"),
    "a masked persona": (
        {"persona": {"description": "[name] of Kiel"}},
        "the description of the persona .* is masked",
    ),
    "a rule of dots": ({"must": ["…"]}, "must '…': it has no letter"),
    "an empty rule": ({"must_not": [""]}, "must_not '': it says nothing; remove it"),
    "a rule that is none": ({"restrictions": ["None."]}, "restrictions 'None.': it says nothing"),
    "an attack on a refusal": (
        {"goal": "The assistant politely refuses to pay back a voucher", "adversarial": True},
        "is what the assistant does, not what the user wants",
    ),
    "a German one": ({"goal": "Die Erstattung wird abgelehnt", "adversarial": True}, "is what the assistant does"),
    "a passive one": ({"goal": "A voucher is denied", "adversarial": True}, "is what the assistant does"),
    "another order number": (
        {"facts": ORDER, "scenario": "The order number is B-205."},
        "the scenario contradicts the facts: it says order number B-205, and they say B-204",
    ),
    "another one in the persona": (
        {"facts": ORDER, "persona": {"knowledge": "knows order number: C9"}},
        "the knowledge of the persona contradicts the facts",
    ),
    "another one in the goal": ({"facts": ORDER, "goal": "Order number B204-1 is paid back"}, "the goal contradicts"),
    "another age": (
        {"facts": {"age": "34 years"}, "persona": "a 71-year-old widow"},
        "it says 71-year-old, and they say 34 years",
    ),
    "a detail that the user does not know": (
        {"facts": ORDER, "persona": {"knowledge": "does not know the order number"}},
        "it says that the user does not know the order number, and they say B-204",
    ),
    "the same in German": (
        {"facts": {"Kundennummer": "77"}, "scenario": "Sie kennt die Kundennummer nicht."},
        "does not know the Kundennummer",
    ),
}
FINE: dict[str, dict[str, Any]] = {
    "the same order number": {"facts": ORDER, "scenario": "It is about the order number B-204, not B-205."},
    "the same in another spelling": {"facts": ORDER, "scenario": "The order number is b204."},
    "a word after a name": {"facts": {"day": "Friday"}, "scenario": "The day is long."},
    "the same age": {"facts": {"age": "34"}, "persona": "a 34-year-old nurse"},
    "an age of something else": {"facts": {"order": "12"}, "scenario": "The lamp is 3 years old."},
    "forgotten at first": {"facts": ORDER, "scenario": "At first he does not know the order number."},
    "a symbol": {"facts": {"currency": "€"}},
    "a fact that is none": {"facts": {"allergies": "none"}},
    "a refusal that is no attack": {"goal": "The assistant refuses to pay back a voucher"},
    "an attack on a check": {"goal": "The assistant does not ask for a password", "adversarial": True},
    "no rules": {"must": [], "must_not": [], "facts": {}},
}


def context(about: dict[str, Any]) -> TestContext:
    known: dict[str, Any] = {"goal": "A lamp is returned", **about}
    return PenelopeAgent(ScriptedModel([])).context(**known)


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_brief_that_cannot_be_played_is_refused_with_the_reason(case: str) -> None:
    about, reason = PROBLEMS[case]
    with pytest.raises(UsageError, match=reason):
        context(about)


@pytest.mark.parametrize("case", FINE)
def test_other_briefs_are_left_alone(case: str) -> None:
    assert context(FINE[case]).model_dump(include=set(FINE[case]) - {"persona"})


def part(**changed: Any) -> dict[str, Any]:
    lists: dict[str, Any] = {name: [] for name in ("restrictions", "must", "must_not", "tags")}
    facts = [{"name": "order number", "value": "B-204"}]
    texts = {"goal": "A lamp is returned", "instructions": "", "scenario": "", "persona": {"style": "curt"}}
    return {**texts, "facts": facts, "expects": "help", **lists, **changed}


WRONG = "The order number is B-205."


def test_a_contradictory_scenario_is_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel([{"scenarios": [part(scenario=WRONG)]}, {"scenarios": [part(must=["none", "be polite"])]}])
    (scenario,) = generate_scenarios("A shop", model, n=1)
    assert (scenario.scenario, scenario.must) == (None, ("be polite",))
    assert "the scenario contradicts the facts" in caplog.text


def test_a_recording_whose_scenario_contradicts_itself_gives_none() -> None:
    fields = ("goal", "instructions", "scenario", "persona", "facts")
    answer = {name: value for name, value in part(scenario=WRONG).items() if name in fields}
    talk = [{"role": "user", "content": "My order number is B-204."}, {"role": "assistant", "content": "Done."}]
    (distilled,) = distil_scenarios([talk], ScriptedModel([answer]))
    assert distilled.failure is not None
    assert "the scenario contradicts the facts" in distilled.failure.message


def test_validate_names_the_row(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("def reply(message):\n    return 'Hello.'\n")
    rows = [{"id": "a", "goal": "A lamp is returned"}, {"id": "b", "goal": "A lamp is returned", "must": ["…"]}]
    suite: dict[str, Any] = {
        "name": "lamps",
        "driver": "penelope",
        "dataset": {"rows": rows},
        "target": {"kind": "function", "function": "bot.py:reply"},
        "tester": {"model": "http://127.0.0.1:9/v1#m"},
        "graders": {"passed": {"kind": "function", "function": "target_passed"}},
    }
    (tmp_path / "suite.yaml").write_text(json.dumps(suite))
    with pytest.raises(UsageError, match="sample 'b': must '…': it has no letter"):
        run_checks(load_suite(tmp_path / "suite.yaml"))


KNOWN_FACTS = {"order number": "5530", "name": "Jo", "Kundennummer": "77"}


@pytest.mark.parametrize(
    ("restriction", "fact"),
    [
        ("Never say the order number", "order number"),
        ("Do not mention 5530", "order number"),
        ("The user must not tell their name.", "name"),
        ("Nenne niemals deine Kundennummer", "Kundennummer"),
        ("Do not give your order number unless asked", None),
        ("Never say the order number before you are asked", None),
        ("Never give the name of the doctor", None),
        ("Do not change the order number", None),
        ("Say the order number", None),
    ],
)
def test_a_restriction_forbids_a_fact_where_it_bans_telling_it_in_every_case(
    restriction: str, fact: str | None
) -> None:
    assert withheld_facts([restriction], KNOWN_FACTS) == ({} if fact is None else {fact: restriction})


def test_a_restriction_on_a_fact_that_the_goal_names_is_a_warning(tmp_path: Path) -> None:
    about = {"facts": {"order number": "5530"}, "restrictions": ["Never say the order number"]}
    row = {"id": "track", "goal": "The tracking number of order 5530 is told", **about}
    assert not list(brief_warnings(context({**about, "goal": "The opening hours are told"})))
    (tmp_path / "bot.py").write_text("def reply(message):\n    return 'Hello.'\n")
    suite: dict[str, Any] = {
        "name": "parcels",
        "driver": "penelope",
        "dataset": {"rows": [row]},
        "target": {"kind": "function", "function": "bot.py:reply"},
        "tester": {"model": "http://127.0.0.1:9/v1#m"},
        "graders": {"passed": {"kind": "function", "function": "target_passed"}},
    }
    (tmp_path / "suite.yaml").write_text(json.dumps(suite))
    (note,) = run_checks(load_suite(tmp_path / "suite.yaml")).prepared.suite.notes
    assert note == (
        "sample 'track': the restriction 'Never say the order number' forbids the user to tell the fact 'order "
        "number', which the goal names; remove one of them if the target needs it"
    )


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=60))
def test_a_text_with_the_value_of_a_fact_never_contradicts_it(name: str, value: str, text: str) -> None:
    brief = TestContext(goal="A lamp is returned", facts={name: f"v{value}1"}, scenario=f"{text} v{value}1 {text}")
    assert "contradicts" not in (brief_problem(brief) or "")
