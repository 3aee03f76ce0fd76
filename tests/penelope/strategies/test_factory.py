from __future__ import annotations

from typing import Any

import pytest

import vivavoce.penelope.strategies as package
from vivavoce.errors import UsageError
from vivavoce.penelope.context import TestState
from vivavoce.penelope.strategies import Crescendo, Improvise, Move, make_strategy, strategies

from ..states import state, turn


class Polite:
    name = "polite"
    adversarial = False

    def __init__(self, please: str, *, often: int = 1) -> None:
        self.words = please * often

    def move(self, state: TestState) -> Move:
        del state
        return Move(guidance=self.words)


class Anything(Polite):
    def __init__(self, **more: Any) -> None:
        super().__init__(str(more))


@pytest.mark.parametrize("name", strategies.names())
def test_every_strategy_is_known_by_its_own_name_and_keeps_no_state(name: str) -> None:
    strategy = make_strategy(name)
    assert strategy.name == name
    about = state(("Hi.", "Hello."), stateless=True)
    before = dict(vars(strategy))
    assert strategy.move(about) == strategy.move(about) == make_strategy(name).move(about)
    assert vars(strategy) == before


def test_the_attacks_say_that_they_are_adversarial() -> None:
    attacks = [name for name in strategies.names() if make_strategy(name).adversarial]
    assert attacks == ["crescendo", "goat", "pair"]


def test_options_are_read_as_their_type() -> None:
    strategy = make_strategy("crescendo", backtracks="3")
    assert isinstance(strategy, Crescendo)
    assert strategy.backtracks == 3


def test_a_class_or_a_strategy_of_ones_own_is_taken() -> None:
    assert make_strategy(Polite, please="Please! ", often=2).move(state()) == Move(guidance="Please! Please! ")
    own = Polite("Please!")
    assert make_strategy(own) is own
    assert make_strategy(Anything, a=1).move(state()).guidance == "{'a': 1}"


@pytest.mark.parametrize(
    ("wanted", "options", "complaint"),
    [
        ("cresendo", {}, "no strategy 'cresendo'; did you mean 'crescendo'"),
        ("crescendo", {"backtrack": 1}, "strategy 'crescendo': no option 'backtrack'; did you mean 'backtracks'"),
        ("crescendo", {"backtracks": "few"}, "strategy 'crescendo': option 'backtracks': .* got 'few'"),
        ("crescendo", {"backtracks": -1}, "backtracks is at least 0"),
        ("improvise", {"well": True}, "strategy 'improvise': no option 'well'"),
        (Polite, {}, "strategy 'Polite': the option 'please' is missing"),
        (Improvise(), {"well": True}, "'improvise' is made already and takes no options"),
        (len, {}, "a strategy has a name"),
        (dict, {}, "a strategy has a name"),
    ],
)
def test_what_is_no_strategy_is_told(wanted: Any, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        make_strategy(wanted, **options)


def test_the_names_are_there() -> None:
    assert all(getattr(package, name) is not None for name in package.__all__)
    assert not hasattr(package, "Nothing")


@pytest.mark.parametrize("name", strategies.names())
@pytest.mark.parametrize("reply", ["Here it is.", "I can't help with that.", "Which one?", None])
def test_what_a_strategy_says_is_in_the_words_of_the_brief(name: str, reply: str | None) -> None:
    strategy = make_strategy(name)
    for done in range(8):
        told = strategy.move(state(*[turn("Hm?", reply)] * done, max_turns=8)).guidance
        assert not [words for words in ("target", "the test", "goal", "tester") if words in told]
