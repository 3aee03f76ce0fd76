"""A turn under its several names."""

from __future__ import annotations

import pytest

from vivavoce.messages import AIMessage, FunctionCall, ToolCall, ToolMessage
from vivavoce.penelope.turn import Step, Turn

from .states import turn


def test_a_turn_has_what_was_said_under_the_names_of_older_interfaces() -> None:
    one = turn("Hi", "Hello")
    assert one.tool_name == one.action == "send_message_to_target"
    assert one.tool_arguments == one.action_params == one.action_input == {"message": "Hi"}
    assert one.tool_result == one.action_output == {"success": True, "output": {"response": "Hello"}, "error": None}
    assert (one.message, one.reply, one.answered) == ("Hi", "Hello", True)


def test_a_failed_turn_has_a_message_and_no_answer() -> None:
    one = turn("Hi", None)
    assert (one.message, one.reply, one.answered) == ("Hi", "", False)


def test_the_reply_is_the_words_of_all_assistant_messages() -> None:
    one = turn("Hi", "First.")
    more = one.exchange.model_copy(update={"messages": [*one.exchange.messages, AIMessage(content="Second.")]})
    assert one.model_copy(update={"exchange": more}).reply == "First.\nSecond."


def test_a_turn_is_the_same_after_json() -> None:
    one = turn("Hi", "Hello", forgotten=True)
    step = Step(assistant_message=AIMessage(content="Hm."), tool_message=ToolMessage(content="no"), refused=True)
    one = one.model_copy(update={"steps": [step]})
    assert Turn.model_validate_json(one.model_dump_json()) == one


@pytest.mark.parametrize("arguments", ["{", "[1]", "7"])
def test_arguments_that_are_no_object_are_said_to_be_none(arguments: str) -> None:
    call = ToolCall(id="1", function=FunctionCall(name="tool", arguments=arguments))
    step = Step(assistant_message=AIMessage(tool_calls=[call]), tool_message=ToolMessage(content="x"))
    assert (step.tool_name, step.tool_arguments, step.arguments_valid) == ("tool", {}, False)


def test_a_step_of_words_calls_no_tool() -> None:
    step = Step(assistant_message=AIMessage(content="Hm."), tool_message=ToolMessage(content="call one"), refused=True)
    assert (step.tool_name, step.tool_arguments, step.arguments_valid) == ("", {}, True)
    assert step.tool_result == {"success": False, "output": "call one", "error": None}
