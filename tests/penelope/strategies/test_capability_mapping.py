from __future__ import annotations

import pytest

from vivavoce.penelope.strategies.phases import CapabilityMapping

from ..states import Exchange, state, turn

STRATEGY = CapabilityMapping()
ANSWERS: list[Exchange] = [(f"Message {i}.", f"Answer {i}.") for i in range(8)]


def test_a_test_goes_through_every_phase_in_order() -> None:
    guidances = [STRATEGY.move(state(*ANSWERS[:done], max_turns=8)).guidance for done in range(8)]
    assert list(dict.fromkeys(guidances)) == list(STRATEGY.phases.values())


@pytest.mark.parametrize(
    ("reply", "kind"),
    [("I can't help with that.", "refused"), (None, "unanswered"), ("Which one?", "asked"), ("Answer 0.", "repeated")],
)
def test_what_the_target_did_is_taken_up(reply: str | None, kind: str) -> None:
    second = list(STRATEGY.phases.values())[1]
    guidance = STRATEGY.move(state(ANSWERS[0], turn("And?", reply), max_turns=8)).guidance
    assert guidance == {name: f"{words} {second}" for name, words in STRATEGY.after.items()}[kind]


def test_it_explores_and_attacks_nothing() -> None:
    assert (STRATEGY.name, STRATEGY.adversarial) == ("capability_mapping", False)
