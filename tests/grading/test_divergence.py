"""Where a conversation stopped being as it was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from vivavoce.grading.as_recorded import covered, nearest
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from vivavoce.records.recording import RecordedConversation, RecordedReply
from vivavoce.records.score import Failure
from vivavoce.records.trajectory import Trajectory, Turn

Step = str | tuple[Any, ...]
"""What a target does: words, or calls made at once, each a name with an argument and perhaps a result."""


def messages(*steps: Step, by: str | None = None) -> list[AnyMessage]:
    done: list[AnyMessage] = []
    for number, step in enumerate(steps):
        if isinstance(step, str):
            done.append(AIMessage(content=step))
            continue
        ids = [f"c{number}-{index}" for index in range(len(step))]
        calls = [ToolCall(id=id_, name=name, args={"x": x}) for id_, (name, x, *_) in zip(ids, step, strict=True)]
        done.append(AIMessage(tool_calls=calls))
        notes = None if by is None else {"answered_by": by}
        for id_, (_, x, *result) in zip(ids, step, strict=True):
            done.append(ToolMessage(tool_call_id=id_, content=str(result[0] if result else x), metadata=notes))
    return done


def held(*turns: Sequence[Step], said: Sequence[str] = ("a", "b", "c"), by: str | None = None) -> Trajectory:
    made = [
        Turn(index=index, messages=[HumanMessage(content=said[index]), *messages(*steps, by=by)])
        for index, steps in enumerate(turns)
    ]
    return Trajectory(turns=made)


def recorded(*turns: Sequence[Step], trial: int = 0, said: Sequence[str] = ("a", "b", "c")) -> RecordedConversation:
    replies = [
        RecordedReply(sample="s", target="bot", trial=trial, turn=index, said=said[index], messages=messages(*steps))
        for index, steps in enumerate(turns)
    ]
    return RecordedConversation("s", "bot", trial, replies)


def found(new: Trajectory, *old: RecordedConversation) -> tuple[int, str | None, str]:
    compared = nearest(old, new)
    difference = compared.difference
    return compared.same, difference and difference.kind, difference.what if difference else ""


A, B = ("look", 1), ("look", 2)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (["Hello"], ["Hello"]),
        (["  Hello\n"], ["Hello"]),
        ([(A, B), "x"], [(B, A), "x"]),
        ([(A,), (B,), "x"], [(A, B), "x"]),
        ([(("look", 1.0, 1),), "x"], [(A,), "x"]),
        (["thinking aloud", (A,), "x"], [(A,), "x"]),
    ],
)
def test_turns_are_the_same(new: list[Step], old: list[Step]) -> None:
    assert found(held(new), recorded(old)) == (1, None, "")


@pytest.mark.parametrize(
    ("new", "old", "kind", "what"),
    [
        (["Hi"], ["Hello"], "reply", "the reply is “Hi”, recorded is “Hello”"),
        ([], ["Hello"], "reply", "the reply is nothing, recorded is “Hello”"),
        ([(A,), "x"], ["x"], "call", 'look({"x": 1}) is called, which is not recorded here'),
        (["x"], [(A,), "x"], "call", 'look({"x": 1}) is recorded, and is not called'),
        ([(A,), "x"], [(B,), "x"], "call", 'look({"x": 1}) is called, recorded is look({"x": 2})'),
        ([(A, A), "x"], [(A,), "x"], "call", 'look({"x": 1}) is called, which is not recorded here'),
        ([(("look", "1", 1),), "x"], [(A,), "x"], "call", 'look({"x": "1"}) is called, recorded is look({"x": 1})'),
        (
            [(B,), (A,), "x"],
            [(A,), (B,), "x"],
            "order",
            'the calls come as look({"x": 2}), look({"x": 1}), recorded is look({"x": 1}), look({"x": 2})',
        ),
        ([(("look", 1, "no"),), "x"], [(A,), "x"], "result", 'look({"x": 1}) returns “no”, recorded is “1”'),
    ],
)
def test_the_first_thing_that_differs_is_named(new: list[Step], old: list[Step], kind: str, what: str) -> None:
    assert found(held(["same"], new, ["later"]), recorded(["same"], old, ["later"])) == (1, kind, what)


def test_long_texts_are_quoted_from_shortly_before_they_differ() -> None:
    same = "The order was sent on the first day of the month and will arrive "
    _, _, what = found(held([f"{same}soon"]), recorded([f"{same}late"]))
    assert what == (
        "the reply is “… of the month and will arrive soon”, recorded is “… of the month and will arrive late”"
    )


def test_the_user_who_says_something_else_ends_it() -> None:
    new = held(["x"], ["y"], said=("a", "other"))
    assert found(new, recorded(["x"], ["y"])) == (1, "said", "the user says “other”, recorded is “b”")


def test_more_or_fewer_turns_are_a_difference() -> None:
    longer = "the recorded conversation has no turn 2, and the new one goes on"
    assert found(held(["x"], ["y"]), recorded(["x"])) == (1, "length", longer)
    shorter = "the new conversation has no turn 2, and the recorded one goes on"
    assert found(held(["x"]), recorded(["x"], ["y"])) == (1, "length", shorter)


def test_of_several_recorded_conversations_the_nearest_is_taken() -> None:
    others = recorded(["z"], ["y"]), recorded(["x"], ["y"], trial=1), recorded(["x"], ["q"], trial=2)
    compared = nearest(others, held(["x"], ["y"]))
    assert (compared.recorded.trial, compared.same, compared.difference) == (1, 2, None)


def failing(kind: str) -> Trajectory:
    failure = Failure(blame="suite", kind=kind, message="it has no result of look")
    turn = Turn(index=1, messages=[HumanMessage(content="b")], failure=failure)
    return Trajectory(turns=[*held(["x"]).turns, turn], failure=failure)


def test_a_call_that_was_not_recorded_is_a_difference_and_another_failure_is_not() -> None:
    old = recorded(["x"], ["y"])
    assert found(failing("unrecorded"), old) == (1, "unrecorded", "it has no result of look")
    assert found(failing("timeout"), old) == (1, None, "")


def test_a_turn_that_was_recorded_with_an_error_is_not_as_recorded() -> None:
    broken = RecordedReply(sample="s", target="bot", turn=0, said="a", error="down")
    same, kind, what = found(held(["x"]), RecordedConversation("s", "bot", 0, [broken]))
    assert (same, kind, what) == (0, "length", "when it was recorded, this turn ended with an error: “down”")


def test_a_recorded_turn_that_nobody_answered_need_not_come_again() -> None:
    old = recorded(["x"])
    last = RecordedReply(sample="s", target="bot", turn=1, said="bye", error="the conversation ends")
    assert nearest([RecordedConversation("s", "bot", 0, [*old.turns, last])], held(["x"])).difference is None


def test_arguments_that_are_no_json_are_compared_as_they_are_written() -> None:
    broken = ToolCall.model_validate({"id": "1", "function": {"name": "look", "arguments": "{"}})
    turn = Turn(index=0, messages=[HumanMessage(content="a"), AIMessage(tool_calls=[broken])])
    reply = RecordedReply(sample="s", target="bot", turn=0, said="a", messages=[AIMessage(tool_calls=[broken])])
    assert nearest([RecordedConversation("s", "bot", 0, [reply])], Trajectory(turns=[turn])).difference is None


def test_calls_are_counted_by_who_answered_them() -> None:
    old = recorded([(A, B), "x"])
    by_recording = covered(old, held([(A,), "x"], by="recording"))
    assert by_recording.model_dump() == {
        "answered": 1,
        "live": 0,
        "missed": 0,
        "unused": 1,
        "examples": ['look({"x": 2})'],
    }
    assert covered(old, held([(A, B), "x"], by="function")).live == 2
    assert covered(old, held([(A, B), "x"], by="canned")).live == 0
    assert covered(old, held([(A, B), "x"])).live == 2
    assert covered(old, failing("unrecorded")).missed == 1
