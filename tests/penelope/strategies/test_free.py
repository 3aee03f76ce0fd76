from __future__ import annotations

from vivavoce.penelope.strategies.free import Improvise
from vivavoce.penelope.strategies.strategy import Move

from ..states import state


def test_the_tester_is_left_alone() -> None:
    assert Improvise().move(state()) == Improvise().move(state(("Hi.", "Hello."))) == Move()
