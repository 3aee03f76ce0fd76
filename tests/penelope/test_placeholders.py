"""What nobody says: placeholders, masked values, and messages in JSON."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.penelope.brief_problems import placeholder_in, with_made_up_address
from vivavoce.penelope.checks.voice import VoiceCheck
from vivavoce.penelope.context import TestContext, TestState
from vivavoce.penelope.persona import read_persona
from vivavoce.penelope.scenarios import generate_scenarios
from vivavoce.testing import ScriptedModel

MASKED = ("[email a…z]", "Write to [email a…z].")
NOBODY_SAYS = ("…", "...", "<message>", *MASKED, '{"message": "Hello"}', "{{ name }}", "[name]")
PEOPLE_SAY = ("Hello!", "My code is <b>, I think.", '{"error": 12}', "[1] is broken", "42")


@pytest.mark.parametrize("text", NOBODY_SAYS)
def test_the_tester_may_not_send_what_nobody_says(text: str) -> None:
    assert placeholder_in(text) is not None
    objection = VoiceCheck().objection(text, TestState(TestContext(goal="g")))
    assert (objection or "").endswith("; write the words that the user says")


@pytest.mark.parametrize("text", PEOPLE_SAY)
def test_what_people_say_may_be_sent(text: str) -> None:
    assert placeholder_in(text) is None


def test_a_masked_address_is_replaced_by_one_that_belongs_to_nobody() -> None:
    assert with_made_up_address("[email k…g]") == "kim@example.org"
    assert with_made_up_address("order [7]") == "order [7]"


def test_a_persona_is_read_from_json() -> None:
    persona = read_persona('{"description": "a retired teacher", "language": "German"}')
    assert (persona.description, persona.language) == ("a retired teacher", "German")
    for text in ('{"description": ', '{"age": "70"}', '{"description": 7}'):
        with pytest.raises(UsageError, match="persona"):
            read_persona(text)


def part(goal: str, **fields: Any) -> dict[str, Any]:
    lists: dict[str, Any] = {name: [] for name in ("facts", "restrictions", "must", "must_not", "tags")}
    texts = {"instructions": "…", "scenario": "...", "persona": {"description": "…", "style": "curt"}}
    return {"goal": goal, "expects": "help", **texts, **lists, **fields}


def test_scenarios_that_cannot_be_used_are_written_again_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    broken = [
        part("…"),
        part("The assistant refuses to pay back a voucher", expects="refusal"),
        part("Der Assistent zahlt den Gutschein nicht aus", expects="refusal"),
        part("A voucher is denied", expects="refusal"),
        part("A lamp is exchanged", must_not=["No competitor brands"]),
    ]
    facts = [{"name": "e-mail", "value": "[email a…z]"}, {"name": "x", "value": "[card 4…1]"}]
    usable = [
        part("A voucher that is not paid for is paid back", expects="refusal"),
        part("A lamp is returned", must=["…"], must_not=["Never lie"], facts=facts),
    ]
    model = ScriptedModel([{"scenarios": [*broken, usable[0]]}, {"scenarios": [usable[1]]}])
    with caplog.at_level(logging.WARNING):
        first, second = generate_scenarios("A shop", model, n=2)
    assert (first.goal, first.adversarial) == ("A voucher that is not paid for is paid back", True)
    assert (second.instructions, second.scenario, second.must, second.must_not) == (None, None, (), ("Never lie",))
    assert (second.facts, second.left_out) == ({"e-mail": "kim@example.org"}, ("x",))
    assert second.persona is not None
    assert second.persona.describe() == "style: curt"
    assert len([record for record in caplog.records if "requested again" in record.getMessage()]) == len(broken)
