from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from vivavoce.messages import ToolCall
from vivavoce.samples.sample import Sample

TALK = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]


def sample(**fields: Any) -> Sample:
    return Sample.model_validate({"id": "1", **fields})


def test_one_message_is_said_once_and_a_list_one_by_one() -> None:
    assert [user_message.text for user_message in sample(input="a").user_messages] == ["a"]
    assert [user_message.text for user_message in sample(input=["a", "b"]).user_messages] == ["a", "b"]
    assert sample(input=["a", "b"]).turn_count == 2


def test_a_recorded_conversation_has_turns_and_nothing_to_say() -> None:
    talk_sample = sample(messages=TALK)
    assert (talk_sample.user_messages, talk_sample.turn_count) == ((), 2)


def test_what_the_user_says_may_have_several_parts() -> None:
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}
    [message] = sample(input=[picture]).user_messages
    assert message.to_dict() == picture


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({}, "needs 'input' .*, 'messages' .* or a 'goal'"),
        ({"input": " "}, "'input' is empty"),
        ({"input": ["a", ""]}, "input 1 is empty"),
        ({"input": [], "ground_truth": []}, "'input' is an empty list: there is nothing to ask"),
        ({"input": {"role": "user", "text": "a"}}, "'input' is empty; its text is under 'text': write it as 'content'"),
        ({"input": ["a", {"role": "user", "text": "b"}]}, "input 1 is empty; its text is under 'text'"),
        ({"messages": [TALK[0], {"role": "assistant", "text": "b"}]}, "the text under 'text' is not read"),
        ({"messages": []}, "'messages' is empty"),
        ({"input": "a", "ground_truth": ["b"]}, "ground_truth is a list and input is one message"),
        ({"input": ["a", "b"], "ground_truth": ["c"]}, "input has 2 turns and ground_truth has 1"),
        ({"messages": TALK, "ground_truth": ["c"]}, "the recorded conversation has 2 turns and ground_truth has 1"),
        (
            {"messages": TALK[:2], "reference_tool_calls": [None, [{"name": "f"}]]},
            "the recorded conversation has 1 turn and reference_tool_calls has 2 lists of calls",
        ),
        (
            {"input": ["a", "b"], "reference_tool_calls": [[{"name": "f"}]]},
            "input has 2 turns and reference_tool_calls has 1 lists of calls",
        ),
        ({"goal": "a", "expect": [{"contains": "b"}]}, "expect is a list of turns, but a tester decides"),
        ({"input": "a", "trial": -1}, "trial"),
        ({"input": "a", "colour": "red"}, "colour"),
    ],
)
def test_what_cannot_be_asked_or_graded_is_refused(fields: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        sample(**fields)


def test_a_grader_of_one_turn_sees_that_turn_only() -> None:
    whole = sample(
        input=["a", "b"], ground_truth=["A", None], reference_tool_calls=[None, [{"name": "f", "args": {"x": 1}}]]
    )
    assert whole.per_turn
    assert [user_message.text for user_message in whole.user_messages] == ["a", "b"]
    first, second = whole.turns
    assert (first.input, first.ground_truth, first.reference_tool_calls) == ("a", "A", None)
    assert (second.input, second.ground_truth) == ("b", None)
    assert [call.name for call in second.reference_tool_calls or [] if isinstance(call, ToolCall)] == ["f"]
    assert [user_message.text for user_message in second.user_messages] == ["b"]
    assert second.turn_count == 1
    assert second.scenario_hash != whole.scenario_hash


def test_a_single_truth_is_seen_at_every_turn() -> None:
    turn = sample(input=["a", "b"], ground_truth="z").turns[1]
    assert (turn.input, turn.ground_truth, turn.per_turn) == ("b", "z", False)


def test_the_scenario_depends_on_what_is_asked_and_known() -> None:
    scripted = sample(input="a", ground_truth="b")
    assert (
        scripted.scenario_hash
        == Sample(id="2", trial=3, input="a", ground_truth="b", tags=["x"], metadata={"y": 1}).scenario_hash
    )
    assert scripted.scenario_hash != sample(input="a", ground_truth="c").scenario_hash
    assert scripted.scenario_hash != sample(input=["a"], ground_truth="b").scenario_hash


def test_ground_truths_keep_their_type() -> None:
    truths = [True, 1, 1.0, "1", None, {"a": 1}]
    assert repr([sample(input="a", ground_truth=truth).ground_truth for truth in truths]) == repr(truths)


def test_a_goal_alone_is_enough_for_a_tester() -> None:
    goal_sample = sample(goal="Return it")
    assert (goal_sample.user_messages, goal_sample.turn_count, goal_sample.turns) == ((), 0, ())
    assert [user_message.text for user_message in sample(goal="Return it", input=["Hi"]).user_messages] == ["Hi"]


@pytest.mark.parametrize("field", [{"min_turns": -1}, {"max_turns": 0}, {"facts": {"order": 1042}}, {"persona": 7}])
def test_what_a_tester_cannot_be_told_is_refused(field: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        sample(goal="Return it", **field)


def test_what_the_tester_is_told_is_part_of_the_scenario() -> None:
    fields: dict[str, Any] = {
        "instructions": "x",
        "scenario": "x",
        "persona": "x",
        "facts": {"x": "y"},
        "restrictions": ["x"],
        "min_turns": 1,
        "max_turns": 9,
    }
    hashes = {sample(goal="g", **{name: value}).scenario_hash for name, value in fields.items()}
    assert len(hashes | {sample(goal="g").scenario_hash}) == len(fields) + 1


def test_graders_see_the_sample_with_what_was_said_in_the_conversation_that_was_held() -> None:
    goal_sample = sample(goal="g", input="Hi", ground_truth="b", tags=["t"])
    graded_sample = goal_sample.with_messages(sample(messages=TALK).messages or [])
    assert (graded_sample.input, graded_sample.user_messages, graded_sample.turn_count) == (None, (), 2)
    assert [turn.messages and turn.messages[0].text for turn in graded_sample.turns] == ["a", "c"]
    assert (graded_sample.id, graded_sample.goal, graded_sample.ground_truth, graded_sample.tags) == (
        "1",
        "g",
        "b",
        ["t"],
    )
    assert goal_sample.input == "Hi"
