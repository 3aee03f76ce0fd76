from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import GraderFault, UsageError
from vivavoce.penelope.strategies.state_graph import SEARCHED, StateGraph, read_graph
from vivavoce.penelope.strategies.strategy import Move, Strategy

from ..states import Exchange, state, turn

NO = "I'm sorry, but I can't help with that."
GRAPH = {
    "start": "greet",
    "nodes": {
        "greet": {"say": "Hi.", "next": "ask"},
        "ask": {
            "improvise": "Ask about lamps.",
            "turns": 2,
            "next": [
                {"to": "insist", "when": {"refused": True}},
                {"to": "pay", "when": {"matches": r"\d+ (?i:euros?)"}},
                {"to": "thank", "when": {"contains": "free"}},
                {"to": "ask"},
            ],
        },
        "insist": {"improvise": "Insist.", "max_visits": 2, "next": "ask"},
        "pay": {"say": "I will pay.", "next": "thank"},
        "thank": {"say": "Thanks."},
    },
}
HI: Exchange = ("Hi.", "Hello.")
QUESTION: Exchange = ("Lamps?", "Which?")


def walk(*exchanges: Exchange, **context: Any) -> Move:
    return read_graph(GRAPH).move(state(*exchanges, **context))


def test_a_node_says_its_text_and_the_next_one_follows() -> None:
    assert walk() == Move(say="Hi.")
    assert walk(HI) == Move(guidance="Ask about lamps.")


def test_a_node_lasts_its_turns_and_the_last_reply_decides() -> None:
    assert walk(HI, ("Lamps?", "They are free.")) == Move(guidance="Ask about lamps.")
    assert walk(HI, ("Lamps?", "They are free."), QUESTION) == Move(guidance="Ask about lamps.")


@pytest.mark.parametrize(
    ("reply", "move"),
    [
        (NO, Move(guidance="Insist.")),
        ("It costs 20 EUROS.", Move(say="I will pay.")),
        ("It is FREE.", Move(say="Thanks.")),
        ("What?", Move(guidance="Ask about lamps.")),
        (None, Move(guidance="Ask about lamps.")),
        ("x" * SEARCHED + "free", Move(guidance="Ask about lamps.")),
    ],
)
def test_the_first_way_whose_condition_holds_is_taken(reply: str | None, move: Move) -> None:
    assert walk(HI, QUESTION, turn("And?", reply)) == move


def test_after_the_script_the_tester_improvises() -> None:
    over = [HI, QUESTION, ("Price?", "Free."), ("Thanks.", "Bye.")]
    assert walk(*over) == walk(*over, HI, HI) == Move()


def test_a_node_is_passed_over_once_it_was_visited_enough() -> None:
    round_trip: list[Exchange] = [QUESTION, ("Price?", NO), ("Please!", "Well.")]
    assert walk(HI, *round_trip, QUESTION, ("Price?", NO)) == Move(guidance="Insist.")
    assert walk(HI, *round_trip * 2, QUESTION, ("Price?", NO)) == Move(guidance="Ask about lamps.")


def test_turns_that_were_taken_back_and_openings_are_not_part_of_the_walk() -> None:
    assert walk(HI, turn("Lamps?", "No.", forgotten=True), QUESTION) == walk(HI, QUESTION)
    assert walk(("Good day.", "Good day."), openings=("Good day.",)) == Move(say="Hi.")


def test_all_parts_of_a_condition_have_to_hold() -> None:
    when = {"contains": "lamp", "matches": "^No", "refused": False}
    nodes = {"a": {"say": "A", "next": [{"to": "b", "when": when}]}, "b": {"say": "B"}}
    graph = read_graph({"start": "a", "nodes": nodes})
    assert graph.move(state(("A", "No lamp."))) == Move(say="B")
    assert graph.move(state(("A", "No light."))) == graph.move(state(("A", "A lamp."))) == Move()


def test_a_condition_that_takes_too_long_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vivavoce.safe_regex.SECONDS", 0.1)
    nodes = {"a": {"say": "A", "next": [{"to": "b", "when": {"matches": "(a|aa)+$"}}]}, "b": {"say": "B"}}
    with pytest.raises(GraderFault, match=r"took longer than 0\.1 s"):
        read_graph({"start": "a", "nodes": nodes}).move(state(("A", "a" * 60 + "!")))


@given(st.lists(st.tuples(st.text(), st.sampled_from([NO, "20 euros", "free", "", "What?"])), max_size=12))
def test_any_walk_ends_somewhere_in_the_script_or_behind_it(exchanges: list[Exchange]) -> None:
    move = walk(*exchanges)
    assert move in [
        Move(),
        *(Move(say=text) for text in ("Hi.", "I will pay.", "Thanks.")),
        *(Move(guidance=text) for text in ("Ask about lamps.", "Insist.")),
    ]


@pytest.mark.parametrize(
    ("node", "complaint"),
    [
        ({"say": "A", "improvise": "B"}, "nodes.a: a node either says a text or improvises"),
        ({}, "nodes.a: a node either says a text or improvises"),
        ({"say": ""}, "nodes.a.say: "),
        ({"say": "A", "turns": 2}, "nodes.a: a node with 'say' lasts one turn"),
        ({"say": "A", "turns": 0}, "nodes.a.turns: "),
        ({"say": "A", "next": "b"}, "nodes.a: no node 'b'"),
        ({"say": "A", "next": [{"to": "aa"}]}, "no node 'aa'; did you mean 'a'"),
        ({"say": "A", "next": [{"to": "a", "when": {"matches": "("}}]}, r"matches: '\(' is not a regular expression"),
        (
            {"say": "A", "next": [{"to": "a", "when": {"contains": None}}]},
            "a condition needs contains, matches or refused",
        ),
        ({"sey": "A"}, r"state graph.nodes.a: no key 'sey'; did you mean 'say'"),
        ({"say": "A", "next": [{"too": "a"}]}, "no key 'too'; did you mean 'to'"),
        ({"say": "A", "next": [{"to": "a", "when": {"contain": "b"}}]}, "no key 'contain'; did you mean 'contains'"),
    ],
)
def test_a_mistake_in_a_node_is_told_with_its_place(node: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        read_graph({"start": "a", "nodes": {"a": node}})


@pytest.mark.parametrize(
    ("graph", "complaint"),
    [
        ({"start": "b", "nodes": {"a": {"say": "A"}}}, "start: no node 'b'"),
        ({"start": "a", "nodes": {"a": {"say": "A"}, "b": {"say": "B"}}}, "unreachable from 'a': 'b'"),
        ({"start": "a", "nodes": {}}, "nodes: "),
        ({"nodes": {"a": {"say": "A"}}}, "start: is missing"),
        ({"begin": "a", "nodes": {"a": {"say": "A"}}, "start": "a"}, "state graph: no key 'begin'"),
        ({"start": "a", "nodes": {"a": {"say": "A"}}, "nods": {}}, "no key 'nods'; did you mean 'nodes'"),
    ],
)
def test_a_mistake_in_the_graph_is_told(graph: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        read_graph(graph)


def test_a_script_is_a_strategy() -> None:
    strategy: Strategy = read_graph({**GRAPH, "adversarial": True})
    assert (strategy.name, strategy.adversarial) == ("state_graph", True)
    assert isinstance(strategy, StateGraph)
