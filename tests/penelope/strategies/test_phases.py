from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from vivavoce.penelope.strategies.history import Reaction
from vivavoce.penelope.strategies.phases import Phased

from ..states import state


class Walk(Phased):
    name = "walk"
    phases: Mapping[str, str] = {"first": "one", "second": "two", "third": "three"}
    after: Mapping[Reaction, str] = {"refused": "They declined."}


def phase(done: int, turns: int) -> str:
    exchanges = [(f"Message {i}.", f"Answer {i}.") for i in range(done)]
    return Walk().move(state(*exchanges, max_turns=turns)).guidance


def test_phases_share_out_the_turns() -> None:
    assert [phase(done, 6) for done in range(6)] == ["one", "one", "two", "two", "three", "three"]
    assert [phase(done, 2) for done in range(2)] == ["one", "two"]
    assert phase(0, 1) == "one"


@given(st.integers(0, 30), st.integers(1, 30))
def test_phases_never_go_back(done: int, turns: int) -> None:
    order = list(Walk.phases.values())
    assert order.index(phase(done, turns)) <= order.index(phase(done + 1, turns))


def test_what_the_target_did_is_taken_up_first() -> None:
    about = state(("Hi.", "I'm sorry, but I can't help with that."), max_turns=2)
    assert Walk().move(about).guidance == "They declined. two"
