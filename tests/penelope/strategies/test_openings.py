from __future__ import annotations

from vivavoce.penelope.strategies.openings import Openings
from vivavoce.penelope.strategies.pair import Pair
from vivavoce.penelope.strategies.strategy import Move

from ..states import state, turn

HI, BYE = ("Hi.", "Hello."), ("Bye.", "Goodbye.")
STRATEGY = Openings(["Hi.", "I have a lamp."], Pair())


def test_lines_are_sent_as_they_are_and_in_order() -> None:
    assert STRATEGY.move(state()) == Move(say="Hi.")
    assert STRATEGY.move(state(HI)) == Move(say="I have a lamp.")


def test_a_line_that_was_taken_back_is_sent_again() -> None:
    assert STRATEGY.move(state(HI, turn("I have a lamp.", forgotten=True))) == Move(say="I have a lamp.")


def test_then_the_other_strategy_sees_every_turn() -> None:
    assert STRATEGY.move(state(HI, BYE)) == Pair().move(state(HI, BYE))
    assert (STRATEGY.name, STRATEGY.adversarial) == ("pair", True)


def test_without_lines_there_is_nothing_but_the_other_strategy() -> None:
    assert Openings([], Pair()).move(state()) == Pair().move(state())
