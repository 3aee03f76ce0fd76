from __future__ import annotations

import pytest

from vivavoce.penelope.tools.compare_turns import CompareTurnsTool
from vivavoce.testing import ScriptedModel

from ..states import state, turn

TALK = state(
    ("Returns?", "Returns are accepted within 30 days. Shipping costs $5. Our shop opens at 9:00."),
    ("Hello?", ""),
    turn("Still there?", None),
    ("Again?", "We accept returns within 14 days. Shipping costs 5 dollars."),
)


def test_the_last_two_answers_are_compared_and_silent_turns_left_out() -> None:
    output = CompareTurnsTool().begin(TALK).execute().output
    assert output["turns"] == [1, 4]
    assert output["contradictions"] == [
        {
            "first": "Returns are accepted within 30 days.",
            "second": "We accept returns within 14 days.",
            "why": "30 day became 14 day",
        }
    ]
    assert output["repeated"] == ["Shipping costs $5."]
    assert output["dropped"] == ["Our shop opens at 9:00."]
    assert 0 < output["similarity"] < 1
    assert output["findings"][1].startswith('Possible contradiction: "Returns are accepted')


def test_turns_are_named_in_any_order_and_a_missing_one_is_chosen() -> None:
    tool = CompareTurnsTool().begin(TALK)
    assert tool.execute(first=4, second=1).output == tool.execute().output
    assert tool.execute(first=1).output["turns"] == [1, 4]


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        (1, 1, "give two different turns that have an answer, from: 1, 4"),
        (2, 4, "first is the number of a turn with an answer (1, 4), got 2"),
        (1, "4", "second is the number of a turn with an answer (1, 4), got '4'"),
        (True, 4, "first is the number of a turn with an answer (1, 4), got True"),
    ],
)
def test_a_turn_that_cannot_be_compared_is_told(first: int, second: int, error: str) -> None:
    assert CompareTurnsTool().begin(TALK).execute(first, second).error == error


def test_one_answer_is_too_few() -> None:
    for talk in (state(), state(("Hi", "Hello"))):
        assert "two different turns" in str(CompareTurnsTool().begin(talk).execute().error)


def test_the_same_answer_again_repeats_all_and_contradicts_nothing() -> None:
    text = TALK.turns[0].reply
    output = CompareTurnsTool().begin(state(("Hi", text), ("Hi", text))).execute().output
    assert output["similarity"] == 1
    assert output["contradictions"] == output["dropped"] == []
    assert len(output["repeated"]) == 3


def test_what_a_model_quotes_is_verified_in_both_answers() -> None:
    real = {"first": "within 30 days", "second": "within 14 days", "why": "two windows"}
    invented = {"first": "within 30 days", "second": "within 90 days", "why": "two windows"}
    answer = {"contradictions": [real, invented], "repeated": ["Shipping costs $5"], "dropped": []}
    output = CompareTurnsTool(ScriptedModel([answer])).begin(TALK).execute().output
    assert [contradiction["verified"] for contradiction in output["contradictions"]] == [True, False]
    assert output["findings"][2].endswith("(not verified: these words do not stand in both answers)")
    assert output["repeated"] == ["Shipping costs $5"]
    assert output["method"] == "model"
