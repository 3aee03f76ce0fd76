from __future__ import annotations

from typing import Any

import pytest

import vivavoce.penelope.strategies as package
from vivavoce.errors import UsageError
from vivavoce.penelope.context import TestState
from vivavoce.penelope.strategies import Crescendo, Improvise, Move, make_strategy, read_graph, strategies
from vivavoce.penelope.strategies.openings import Openings
from vivavoce.penelope.strategies.strategy import heeds_refusals

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


def test_strategies_say_whether_they_heed_refusals() -> None:
    heeding = {name for name in strategies.names() if heeds_refusals(make_strategy(name))}
    assert heeding == set(strategies.names()) - {"improvise"}
    assert not heeds_refusals(Polite("Please!"))
    assert heeds_refusals(Openings(["Hi"], Crescendo()))
    assert not heeds_refusals(Openings(["Hi"], Improvise()))


@pytest.mark.parametrize(("when", "heeds"), [({"refused": False}, True), ({"contains": "no"}, False)])
def test_a_script_heeds_refusals_where_an_edge_depends_on_one(when: dict[str, Any], heeds: bool) -> None:
    nodes = {"a": {"say": "Hi", "next": [{"to": "b", "when": when}, {"to": "a"}]}, "b": {"say": "So?"}}
    assert heeds_refusals(read_graph({"start": "a", "nodes": nodes})) is heeds


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
    ("expected", "options", "complaint"),
    [
        ("cresendo", {}, "no strategy 'cresendo'; did you mean 'crescendo'"),
        ("crescendo", {"backtrack": 1}, "strategy 'crescendo': no option 'backtrack'; did you mean 'backtracks'"),
        ("crescendo", {"backtracks": "few"}, "strategy 'crescendo': option 'backtracks': .* got 'few'"),
        ("crescendo", {"backtracks": -1}, "backtracks must be at least 0"),
        ("improvise", {"well": True}, "strategy 'improvise': no option 'well'"),
        (Polite, {}, "strategy 'Polite': the option 'please' is missing"),
        (Improvise(), {"well": True}, "'improvise' is an object and takes no options"),
        (len, {}, "a strategy needs name"),
        (dict, {}, "a strategy needs name"),
    ],
)
def test_what_is_no_strategy_is_told(expected: Any, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        make_strategy(expected, **options)


def test_the_names_are_there() -> None:
    assert all(getattr(package, name) is not None for name in package.__all__)
    assert not hasattr(package, "Nothing")


@pytest.mark.parametrize("name", strategies.names())
@pytest.mark.parametrize("reply", ["Here it is.", "I can't help with that.", "Which one?", None])
def test_what_a_strategy_says_is_in_the_words_of_the_brief(name: str, reply: str | None) -> None:
    strategy = make_strategy(name)
    for done in range(8):
        guidance = strategy.move(state(*[turn("Hm?", reply)] * done, max_turns=8)).guidance
        assert not [words for words in ("target", "the test", "goal", "tester") if words in guidance]
