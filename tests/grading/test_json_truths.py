"""Truths that are objects, lists, numbers or bools are compared as JSON values by every grader that compares them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce import evaluate
from vivavoce.grading.assertions import Scene
from vivavoce.grading.expected import read_expect
from vivavoce.grading.extractors import View
from vivavoce.grading.texts import differs_as_json, lacks_json
from vivavoce.messages import read_messages
from vivavoce.metrics.evaluation import evaluate_conversation

values = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=3)


@given(values, st.sampled_from([None, 1, 3]))
def test_a_value_equals_itself_however_it_is_written(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, sort_keys=indent is None)
    assert differs_as_json(f"\n {text} ", value) == ""


@given(objects)
def test_an_object_is_found_in_the_middle_of_words(value: dict[str, Any]) -> None:
    assert lacks_json(f"Here it is {{sic}}: {json.dumps({'outer': value})} :-}}", value) == ""


@pytest.mark.parametrize(
    ("answer", "truth", "equal"),
    [
        ('{"amount": 100}', {"amount": 100}, True),
        ('{"amount":100.0}', {"amount": 100}, True),
        ('{"b":1,"a":2}', {"a": 2, "b": 1}, True),
        ('{"a": [1, 2]}', {"a": [2, 1]}, False),
        ('{"a": 1, "a": 1}', {"a": 1}, False),
        ('{"a": NaN}', {"a": 1}, False),
        ('{"a": "1"}', {"a": 1}, False),
        ('{"a": true}', {"a": 1}, False),
        ('```json\n{"a": 1}\n```', {"a": 1}, False),
        ("null", {"amount": 100}, False),
        ("", {"amount": 100}, False),
        ("100.0", 100, True),
        ("1e2", 100, True),
        ("100 EUR", 100, False),
        ("true", True, True),
        ("True", True, False),
        ("1", True, False),
    ],
)
def test_every_reader_compares_the_values(answer: str, truth: Any, equal: bool) -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": answer}]
    [outcome] = evaluate([{"messages": messages, "ground_truth": truth}], ["exact_match"]).outcomes()
    one = evaluate_conversation(messages, ["exact_match"], reference=truth)["exact_match"]
    assert (outcome.scores["exact_match"].value, one.value) == (float(equal), float(equal))
    assert one.reason == outcome.scores["exact_match"].reason
    if not isinstance(truth, float | int) or isinstance(truth, bool):
        [expected] = read_expect({"equals": truth})
        assert expected.assertion.held(Scene(View([read_messages(messages)]))).passed is equal


def test_the_reason_says_that_the_answer_is_not_json() -> None:
    assert differs_as_json("It is 5.", 5).startswith("is not JSON, and is compared with 5: not valid JSON")
    assert differs_as_json('```json\n{"a": 1}\n```', {"a": 1}).endswith("; it stands in a code fence")
    assert differs_as_json('{"a": 2}', {"a": 1}) == 'is the JSON value {"a": 2}, not {"a": 1}'
    assert lacks_json("{" * 5000, {"a": 1}) == 'does not contain the JSON value {"a": 1}'


def test_a_list_is_a_truth_for_each_turn_as_in_a_row() -> None:
    turn = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "2"}]
    assert evaluate_conversation([*turn, *turn], ["exact_match"], reference=[1, 2])["exact_match"].value == 0.5
    with pytest.raises(ValueError, match="ground_truth has 2"):
        evaluate_conversation(turn, ["exact_match"], reference=[1, 2])


def test_a_truth_with_white_space_around_it_is_the_same_truth() -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "It is Paris."}]
    assert evaluate_conversation(messages, ["contains"], reference=" Paris ")["contains"].value == 1
