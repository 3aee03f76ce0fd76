from __future__ import annotations

import pytest

from vivavoce.penelope.strategies.goat import TECHNIQUES, Goat
from vivavoce.penelope.strategies.strategy import Move

from ..states import Exchange, state, turn

NO = "I'm sorry, but I can't help with that."
STRATEGY = Goat()


def list_offered(*exchanges: Exchange) -> list[str]:
    lines = STRATEGY.move(state(*exchanges)).guidance.splitlines()[1:]
    return [line.removeprefix("- ").partition(":")[0] for line in lines]


def test_every_turn_offers_every_technique() -> None:
    assert list_offered() == list(TECHNIQUES)
    assert sorted(list_offered(("Hi.", NO), ("Hi.", "Hello."))) == sorted(TECHNIQUES)


def test_each_refusal_moves_the_catalogue_on() -> None:
    firsts = [list_offered(*[("Hi.", NO)] * refusals)[0] for refusals in range(len(TECHNIQUES) + 1)]
    assert firsts == [*TECHNIQUES, next(iter(TECHNIQUES))]
    assert list_offered(("Hi.", "Hello.")) == list_offered()


@pytest.mark.parametrize(
    ("reply", "seen"),
    [
        (NO, "The assistant refused"),
        (None, "got no answer"),
        ("Which one?", "The assistant asked back"),
        ("Hello.", "said the same again"),
        ("Here it is.", "The assistant answered"),
    ],
)
def test_it_begins_with_what_the_target_did(reply: str | None, seen: str) -> None:
    assert seen in STRATEGY.move(state(("Hi.", "Hello."), turn("And?", reply))).guidance.splitlines()[0]


def test_the_conversation_goes_on() -> None:
    move = STRATEGY.move(state(("Hi.", NO), stateless=True))
    assert move == Move(guidance=move.guidance)
