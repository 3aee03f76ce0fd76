from __future__ import annotations

import pytest

from vivavoce.penelope.strategies.pair import Pair

from ..states import state, turn

STRATEGY = Pair()


def test_the_first_attempt_needs_no_new_session_and_every_other_does() -> None:
    assert not STRATEGY.move(state()).new_session
    assert STRATEGY.move(state(("Hi.", "Hello."))).new_session
    assert STRATEGY.move(state(("Hi.", "Hello."), turn("Hi!", "Yes.", fresh=True))).new_session


@pytest.mark.parametrize(
    ("reply", "seen"),
    [
        ("I'm sorry, but I can't help with that.", "was refused"),
        (None, "got no answer"),
        ("Which one?", "met with a question"),
        ("Hello.", "the same answer"),
        ("Here it is.", "was answered"),
    ],
)
def test_an_attempt_is_adapted_to_what_became_of_the_one_before(reply: str | None, seen: str) -> None:
    told = STRATEGY.move(state(("Hi.", "Hello."), turn("And?", reply, fresh=True))).guidance
    assert seen in told
    assert told.endswith(STRATEGY.move(state()).guidance)
