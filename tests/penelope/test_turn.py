"""A turn under its several names."""

from __future__ import annotations

import pytest

from vivavoce.messages import AIMessage, FunctionCall, ToolCall, ToolMessage
from vivavoce.penelope.turn import Step, Turn

from .states import turn


def test_a_turn_has_what_was_said_under_the_names_of_older_interfaces() -> None:
    answered_turn = turn("Hi", "Hello")
    assert answered_turn.tool_name == answered_turn.action == "send_message_to_target"
    assert (
        answered_turn.tool_arguments == answered_turn.action_params == answered_turn.action_input == {"message": "Hi"}
    )
    assert (
        answered_turn.tool_result
        == answered_turn.action_output
        == {"success": True, "output": {"response": "Hello"}, "error": None}
    )
    assert (answered_turn.message, answered_turn.reply, answered_turn.answered) == ("Hi", "Hello", True)


def test_a_failed_turn_has_a_message_and_no_answer() -> None:
    lost_turn = turn("Hi", None)
    assert (lost_turn.message, lost_turn.reply, lost_turn.answered) == ("Hi", "", False)


def test_the_reply_is_the_words_of_all_assistant_messages() -> None:
    first_turn = turn("Hi", "First.")
    more = first_turn.exchange.model_copy(
        update={"messages": [*first_turn.exchange.messages, AIMessage(content="Second.")]}
    )
    assert first_turn.model_copy(update={"exchange": more}).reply == "First.\nSecond."


def test_a_turn_is_the_same_after_json() -> None:
    forgotten_turn = turn("Hi", "Hello", forgotten=True)
    step = Step(assistant_message=AIMessage(content="Hm."), tool_message=ToolMessage(content="no"), refused=True)
    forgotten_turn = forgotten_turn.model_copy(update={"steps": [step]})
    assert Turn.model_validate_json(forgotten_turn.model_dump_json()) == forgotten_turn


@pytest.mark.parametrize("arguments", ["{", "[1]", "7"])
def test_arguments_that_are_no_object_are_said_to_be_none(arguments: str) -> None:
    call = ToolCall(id="1", function=FunctionCall(name="tool", arguments=arguments))
    step = Step(assistant_message=AIMessage(tool_calls=[call]), tool_message=ToolMessage(content="x"))
    assert (step.tool_name, step.tool_arguments, step.arguments_valid) == ("tool", {}, False)


def test_a_step_of_words_calls_no_tool() -> None:
    step = Step(assistant_message=AIMessage(content="Hm."), tool_message=ToolMessage(content="call one"), refused=True)
    assert (step.tool_name, step.tool_arguments, step.arguments_valid) == ("", {}, True)
    assert step.tool_result == {"success": False, "output": "call one", "error": None}
