"""What the tester's model sees of a test."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from vivavoce.messages import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from vivavoce.penelope.tester import CONDENSED_REPLY, Memory
from vivavoce.penelope.turn import Step

from .states import turn

BRIEF = SystemMessage(content="Play a user.")
THOUGHT = Step(
    assistant_message=AIMessage(tool_calls=[ToolCall(id="a", name="analyze_response", args={})]),
    tool_message=ToolMessage(content='{"success": true}', tool_call_id="a"),
)


def fill_memory(turns: int, tokens: int, reply: str = "word " * 200) -> Memory:
    memory = Memory(BRIEF, tokens)
    for number in range(1, turns + 1):
        memory.begin_turn(f"Turn {number}.")
        memory.add(THOUGHT)
        memory.add(turn(f"question {number}", reply, number=number))
    return memory


def list_texts(memory: Memory) -> list[str]:
    calls = [call for message in memory.messages if isinstance(message, AIMessage) for call in message.tool_calls or ()]
    return [call.args["message"] for call in calls if call.name == "send_message_to_target"]


def test_a_model_that_calls_tools_sees_calls_and_results() -> None:
    roles = [message.role for message in fill_memory(1, 60_000).messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]


def test_any_other_model_sees_them_as_json() -> None:
    memory = fill_memory(1, 60_000, "Hello")
    memory.show_as_json(SystemMessage(content="Write JSON."))
    messages = memory.messages
    assert [message.role for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert messages[0].text == "Write JSON."
    assert json.loads(messages[2].text) == {"tool": "analyze_response", "arguments": {}}
    assert messages[3].text == 'Result: {"success": true}'
    assert json.loads(messages[4].text) == {"message": "question 1"}
    assert json.loads(messages[5].text.removeprefix("The assistant answers: "))["output"] == {"response": "Hello"}


def test_words_without_a_call_are_answered_by_a_user_message() -> None:
    memory = Memory(BRIEF)
    memory.begin_turn("Turn 1.")
    step = Step(assistant_message=AIMessage(content="Hm."), tool_message=ToolMessage(content="call one"), refused=True)
    memory.add(step)
    assert memory.messages[2:] == [AIMessage(content="Hm."), HumanMessage(content="call one")]


def test_while_there_is_room_each_request_begins_with_the_one_before() -> None:
    before = fill_memory(3, 60_000).messages
    after = fill_memory(4, 60_000)
    assert after.messages[: len(before)] == before
    assert after.condensed == 0


@given(st.integers(2, 30), st.integers(50, 3_000))
def test_condensing_keeps_every_message_to_the_target(turns: int, tokens: int) -> None:
    memory = fill_memory(turns, tokens)
    assert list_texts(memory) == [f"question {number}" for number in range(1, turns + 1)]
    assert memory.messages[0] is BRIEF


def test_older_turns_lose_their_steps_and_the_ends_of_replies() -> None:
    memory = fill_memory(6, 1_000)
    messages = memory.messages
    assert memory.condensed == 3
    assert isinstance(messages[2], ToolMessage)
    assert (
        messages[2].text[:CONDENSED_REPLY] == json.dumps({"success": True, "output": {"response": "word " * 200}})[:300]
    )
    assert "more characters" in messages[2].text
    names = [
        message.tool_calls[0].name for message in messages if isinstance(message, AIMessage) and message.tool_calls
    ]
    assert names.count("analyze_response") == 3


def test_what_was_condensed_stays_so_until_it_is_full_again() -> None:
    memory = fill_memory(6, 1_200)
    first = memory.messages
    assert memory.messages == first
    memory.begin_turn("Turn 7.")
    assert memory.messages[:-1] == first
