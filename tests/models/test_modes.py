from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from vivavoce.errors import ModelFault
from vivavoce.messages import AIMessage, ToolCall
from vivavoce.models.modes import Mode, ask_for, json_text, refuses_tools, step_down

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "How good?"}]}
LOOK: dict[str, Any] = {"type": "function", "function": {"name": "look"}}


class Verdict(BaseModel):
    score: float


def said(text: str, mode: Mode) -> str | None:
    return json_text(AIMessage(content=text), mode, BODY)


def called(name: str, body: dict[str, Any]) -> str | None:
    return json_text(AIMessage(tool_calls=[ToolCall(name=name, args={"score": 1})]), "tool", body)


@pytest.mark.parametrize("schema", [SCHEMA, Verdict])
@pytest.mark.parametrize("mode", ["json_object", "prompted"])
def test_the_schema_is_told_at_the_end_of_the_last_user_message(schema: Any, mode: Mode) -> None:
    [message] = ask_for(schema, mode, BODY)["messages"]
    assert message["content"].startswith("How good?\n\nAnswer with nothing but one JSON object")
    assert '"score": {"type": "number"}' in message["content"]
    assert BODY["messages"][0]["content"] == "How good?"


PICTURE: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "?"}]}


@pytest.mark.parametrize("last", [{"role": "assistant", "content": "Good."}, PICTURE])
def test_the_schema_is_a_message_of_its_own_where_it_cannot_be_added(last: dict[str, Any]) -> None:
    messages = ask_for(SCHEMA, "prompted", {"messages": [last]})["messages"]
    assert messages[0] == last
    assert (messages[1]["role"], len(messages)) == ("user", 2)


def test_only_json_mode_sets_a_response_format_without_a_schema() -> None:
    assert ask_for(SCHEMA, "json_object", BODY)["response_format"] == {"type": "json_object"}
    assert "response_format" not in ask_for(SCHEMA, "prompted", BODY)


def test_a_class_is_asked_for_in_strict_mode() -> None:
    given = ask_for(Verdict, "json_schema", BODY)["response_format"]["json_schema"]
    assert (given["name"], given["strict"], given["schema"]["required"]) == ("reply", True, ["score"])


def test_one_function_is_forced_and_takes_the_schema_as_its_arguments() -> None:
    body = ask_for({**SCHEMA, "title": "My verdict"}, "tool", BODY)
    [tool] = body["tools"]
    assert (tool["function"]["name"], tool["function"]["parameters"]["required"]) == ("My_verdict", ["score"])
    assert body["tool_choice"] == {"type": "function", "function": {"name": "My_verdict"}}


def test_beside_other_tools_the_function_has_a_name_of_its_own_and_any_of_them_may_be_called() -> None:
    body = ask_for({**SCHEMA, "title": "look"}, "tool", {**BODY, "tools": [LOOK]})
    assert [tool["function"]["name"] for tool in body["tools"]] == ["look", "look_"]
    assert body["tool_choice"] == "required"
    assert called("look_", body) == '{"score": 1}'
    assert called("look", body) is None


def test_a_call_of_a_function_that_nobody_offered_is_no_answer() -> None:
    assert called("guess", ask_for(SCHEMA, "tool", BODY)) == ""


def test_a_model_that_answers_a_forced_function_in_text_is_read_all_the_same() -> None:
    body = ask_for(SCHEMA, "tool", BODY)
    assert json_text(AIMessage(content='{"score": 1}'), "tool", body) == '{"score": 1}'


@pytest.mark.parametrize("mode", ["json_schema", "json_object", "prompted"])
def test_what_should_be_json_is_the_whole_text(mode: Mode) -> None:
    assert said('Sure: {"score": 1}', mode) == 'Sure: {"score": 1}'


@pytest.mark.parametrize(
    ("mode", "status", "evidence", "following"),
    [
        ("json_schema", 400, "'response_format' of type 'json_schema' is not supported with this model", "tool"),
        ("json_schema", 400, "This model does not support response format `json_schema`", "tool"),
        ("json_schema", 422, '{"loc": ["body", "response_format"], "type": "extra_forbidden"}', "tool"),
        ("tool", 400, "llama2 does not support tools", "json_object"),
        ("json_object", 400, "JSON mode is not enabled for this model", "prompted"),
        ("json_schema", 400, "Invalid schema for response_format 'reply': 'minLength' is not permitted", None),
        ("tool", 400, "maximum context length is 8192 tokens (8100 in the messages, 300 in the functions)", None),
        ("json_schema", 400, "temperature must be at most 2", None),
        ("json_schema", 401, "no response_format without a key", None),
        ("json_schema", 500, "response_format broke us", None),
        ("prompted", 400, "response_format is not supported", None),
    ],
)
def test_a_weaker_mode_follows_only_when_the_endpoint_does_not_know_this_one(
    mode: Mode, status: int, evidence: str, following: Mode | None
) -> None:
    fault = ModelFault(f"answered {status}", kind="http", evidence=evidence)
    fault.status = status
    assert step_down(mode, fault) == following


@pytest.mark.parametrize(
    ("status", "evidence", "refuses"),
    [
        (400, "registry.ollama.ai/library/gemma2:2b does not support tools", True),
        (404, "No endpoints found that support tool use", True),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', True),
        (400, "tools param requires --jinja flag; tools are not supported", True),
        (501, "Function calling: unsupported. Functions are not supported by this model", True),
        (400, "Unsupported parameter: 'parallel_tool_calls'", False),
        (400, "tool_choice 'required' is not supported", False),
        (400, "Invalid schema for function 'look': in context=(), 'pattern' is not supported", False),
        (400, "messages with role 'tool' must follow a message with 'tool_calls'", False),
        (404, "no such model", False),
        (500, "this model does not support tools", False),
    ],
)
def test_only_an_endpoint_that_says_so_knows_no_tools(status: int, evidence: str, refuses: bool) -> None:
    assert refuses_tools(ModelFault("refused", kind="http", evidence=evidence, status=status)) is refuses
