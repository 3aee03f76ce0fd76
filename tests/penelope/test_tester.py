"""How the tester's model is asked, and how its answers are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stage import Bot, call, say
from vivavoce.errors import ModelFault
from vivavoce.messages import AIMessage, FunctionCall, ToolCall
from vivavoce.models.openai import OpenAIModel
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.persona import Persona, read_persona
from vivavoce.penelope.tester import Tester, brief
from vivavoce.penelope.tools.analyze import AnalyzeTool
from vivavoce.penelope.tools.end_conversation import EndConversationTool
from vivavoce.penelope.tools.target_interaction import NAME as SEND
from vivavoce.penelope.tools.target_interaction import TargetInteractionTool
from vivavoce.penelope.tools.tool import Tool, tool
from vivavoce.testing import LoopbackServer, ScriptedModel, misbehaviour
from vivavoce.testing.loopback import Answer
from vivavoce.testing.scripted import Scripted

UNSUPPORTED = ModelFault("this model has no tools", kind="unsupported")
STEP = {"reasoning": "to begin", "message": "Hi"}
CALL = {"reasoning": "to begin", "tool": SEND, "arguments": {"message": "Hi"}}


@tool
def keep(reasoning: str) -> str:
    """Keep a thought."""
    return reasoning


def tools() -> dict[str, Tool]:
    return {tool.name: tool for tool in (TargetInteractionTool(Bot()), AnalyzeTool(), keep)}


def player(*replies: Scripted, **options: Any) -> tuple[Tester, ScriptedModel]:
    model = ScriptedModel(list(replies))
    tester = Tester(model, TestContext(goal="Return a lamp", trial=3), tools(), **options)
    tester.memory.begin_turn("Turn 1.")
    return tester, model


async def test_a_call_is_read_with_its_reasoning_which_no_tool_gets() -> None:
    tester, model = player(say("Hi", reasoning="to begin"), settings={"temperature": 0.5})
    (next_call,) = (await tester.next()).calls
    assert (next_call.name, next_call.arguments, next_call.reasoning) == (SEND, {"message": "Hi"}, "to begin")
    (request,) = model.requests
    assert (request.schema, request.settings, request.trial) == (None, {"temperature": 0.5}, 3)
    assert list(request.tools[0]["function"]["parameters"]["properties"]) == ["reasoning", "message"]


async def test_without_transparency_no_reasoning_is_asked_for() -> None:
    tester, model = player(say("Hi"), transparent=False)
    await tester.next()
    assert "reasoning" not in model.requests[0].tools[0]["function"]["parameters"]["properties"]
    assert "reasoning" not in model.requests[0].messages[0].text


async def test_a_tool_whose_own_argument_is_called_reasoning_gets_it() -> None:
    tester, _ = player(call("keep", reasoning="hm"))
    (next_call,) = (await tester.next()).calls
    assert (next_call.arguments, next_call.reasoning) == ({"reasoning": "hm"}, "")


async def test_parallel_calls_come_in_order_each_as_a_message_of_its_own() -> None:
    tester, _ = player([*call("analyze_response"), *say("Hi")])
    calls = (await tester.next()).calls
    assert [call.name for call in calls] == ["analyze_response", SEND]
    ids = [call.message.tool_calls[0].id for call in calls if call.message.tool_calls]
    assert ids == ["call_1", "call_2"]


async def test_arguments_that_are_no_object_are_none() -> None:
    tester, _ = player([ToolCall(id="1", function=FunctionCall(name=SEND, arguments='{"message": '))])
    (next_call,) = (await tester.next()).calls
    assert next_call.arguments is None


async def test_a_model_without_tools_is_asked_for_json_at_once_and_from_then_on() -> None:
    tester, model = player(UNSUPPORTED, STEP, STEP)
    for _ in range(2):
        (next_call,) = (await tester.next()).calls
        assert (next_call.name, next_call.arguments, next_call.reasoning) == (SEND, {"message": "Hi"}, "to begin")
    assert [bool(request.tools) for request in model.requests] == [True, False, False]
    shape = model.requests[1].schema
    assert isinstance(shape, type)
    assert list(shape.model_json_schema()["properties"]) == ["reasoning", "message", "leave", "tool", "arguments"]
    assert not tester.memory.native


class Endpoint(ScriptedModel):
    identity = "http://here/v1#small"


async def test_that_an_endpoint_lacks_tools_is_known_in_later_tests() -> None:
    model = Endpoint([UNSUPPORTED, STEP, STEP])
    for _ in range(2):
        tester = Tester(model, TestContext(goal="Return a lamp"), tools())
        tester.memory.begin_turn("Turn 1.")
        (next_call,) = (await tester.next()).calls
        assert next_call.arguments == {"message": "Hi"}
    assert [bool(request.tools) for request in model.requests] == [True, False, False]


async def test_an_endpoint_that_refuses_tools_is_asked_for_json() -> None:
    def answer(body: dict[str, Any]) -> Answer:
        return misbehaviour.status(400, "gemma2:2b does not support tools") if "tools" in body else STEP

    async with LoopbackServer(answer) as server:
        for _ in range(2):
            model = OpenAIModel("gemma2:2b", base_url=server.base_url)
            tester = Tester(model, TestContext(goal="Return a lamp"), tools())
            tester.memory.begin_turn("Turn 1.")
            (next_call,) = (await tester.next()).calls
            await model.close()
            assert (next_call.name, next_call.arguments) == (SEND, {"message": "Hi"})
        assert ["tools" in request.body for request in server.requests] == [True, False, False]


@pytest.mark.parametrize(
    "text",
    [
        f"I greet first.\n```json\n{json.dumps(CALL)}\n```",
        '<tool_call>\n{"name": "send_message_to_target", "arguments": {"message": "Hi"}}\n</tool_call>',
        '{"name": "send_message_to_target", "parameters": "{\\"message\\": \\"Hi\\"}"}',
    ],
)
async def test_a_call_that_is_written_down_is_read_as_small_models_write_it(text: str) -> None:
    tester, _ = player(text)
    (next_call,) = (await tester.next()).calls
    assert (next_call.name, next_call.arguments) == (SEND, {"message": "Hi"})


async def test_what_json_does_not_help_is_not_taken_for_a_lack_of_tools() -> None:
    model = Endpoint([UNSUPPORTED, UNSUPPORTED, say("Hi")])
    tester = Tester(model, TestContext(goal="Return a lamp"), tools())
    tester.memory.begin_turn("Turn 1.")
    with pytest.raises(ModelFault):
        await tester.next()
    later = Tester(model, TestContext(goal="Return a lamp"), tools())
    later.memory.begin_turn("Turn 1.")
    await later.next()
    assert [bool(request.tools) for request in model.requests] == [True, False, True]


async def test_a_model_without_tools_that_cannot_answer_json_either_has_failed() -> None:
    tester, _ = player(UNSUPPORTED, UNSUPPORTED)
    with pytest.raises(ModelFault, match="this model has no tools"):
        await tester.next()


async def test_prose_twice_in_a_row_and_json_is_asked_for() -> None:
    tester, model = player("Hm.", say("Hi"), "Hm.", "Well.", STEP)
    answers = [await tester.next() for _ in range(5)]
    assert [len(answer.calls) for answer in answers] == [0, 1, 0, 0, 1]
    assert [answer.text for answer in answers] == ["Hm.", "", "Hm.", "Well.", ""]
    assert [request.schema is not None for request in model.requests] == [False, False, False, False, True]


async def asked_for_json(model: ScriptedModel, requests: int) -> list[bool]:
    """Ask for some steps of two tests of an endpoint, and say of each request whether it was for JSON."""
    for _ in range(2):
        tester = Tester(model, TestContext(goal="Return a lamp"), tools())
        tester.memory.begin_turn("Turn 1.")
        for _ in range(requests):
            await tester.next()
    return [request.schema is not None for request in model.requests]


async def test_that_only_json_helps_an_endpoint_is_known_in_later_tests() -> None:
    assert await asked_for_json(Endpoint(["Hm.", "Well.", STEP, STEP, STEP, STEP]), 3) == [False, False, *[True] * 4]


async def test_an_endpoint_that_called_a_tool_before_it_talked_is_offered_them_again() -> None:
    replies = [say("Hi"), "Hm.", "Well.", STEP]
    assert await asked_for_json(Endpoint(replies * 2), 4) == [False, False, False, True] * 2


async def test_an_endpoint_that_json_does_not_help_either_is_offered_tools_again() -> None:
    assert await asked_for_json(Endpoint(["Hm.", "Well.", {"x": 1}] * 2), 3) == [False, False, True] * 2


STEPS: list[tuple[dict[str, Any], tuple[str, dict[str, Any]]]] = [
    ({"reasoning": "r", "leave": "fed up"}, ("end_conversation", {"reason": "fed up"})),
    ({"reasoning": "r", "message": None, "leave": "fed up"}, ("end_conversation", {"reason": "fed up"})),
    ({"reasoning": "r", "message": "Hi", "leave": ""}, (SEND, {"message": "Hi"})),
    (
        {"reasoning": "r", "tool": "analyze_response", "arguments": {"analysis_focus": "tone"}},
        ("analyze_response", {"analysis_focus": "tone"}),
    ),
    ({"reasoning": "r", "tool": "analyze_response"}, ("analyze_response", {})),
]


@pytest.mark.parametrize(("document", "read"), STEPS)
async def test_a_step_in_json_is_a_message_a_reason_to_leave_or_a_tool(
    document: dict[str, Any], read: tuple[str, dict[str, Any]]
) -> None:
    tester, _ = player(UNSUPPORTED, document)
    (next_call,) = (await tester.next()).calls
    assert ((next_call.name, next_call.arguments), next_call.reasoning) == (read, "r")


@pytest.mark.parametrize(
    "document",
    [
        {"reasoning": "r"},
        {"reasoning": "r", "message": "Hi", "leave": "fed up"},
        {"reasoning": "r", "message": "Hi", "tool": "analyze_response", "arguments": {}},
        {"reasoning": "r", "tool": SEND, "arguments": {"message": "Hi"}},
        {"reasoning": "r", "message": " "},
    ],
)
async def test_a_step_in_json_that_is_not_one_of_these_is_words(document: dict[str, Any]) -> None:
    tester, _ = player(UNSUPPORTED, document)
    answer = await tester.next()
    assert (answer.calls, json.loads(answer.text)) == ([], document)
    assert tester.retry_advice == 'nothing was sent; answer with one JSON object that has "message" or "leave"'


async def test_files_are_attached_in_json_too(tmp_path: Path) -> None:
    picture = tmp_path / "lamp.png"
    picture.write_bytes(b"png")
    sending: dict[str, Tool] = {SEND: TargetInteractionTool(Bot(), {"lamp.png": picture})}
    model = ScriptedModel([UNSUPPORTED, {**STEP, "files": ["lamp.png"]}])
    tester = Tester(model, TestContext(goal="Return a lamp", files=("lamp.png",)), sending)
    tester.memory.begin_turn("Turn 1.")
    (next_call,) = (await tester.next()).calls
    assert next_call.arguments == {"message": "Hi", "files": ["lamp.png"]}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"reasoning": "ask", "message": "Where is it?"}', "send_message_to_target"),
        ('  {"message": "Where is it?", "reasoning": "ask"}\n', "send_message_to_target"),
        ('{"reasoning": "enough", "leave": "It never answers."}', "end_conversation"),
    ],
)
async def test_a_step_in_json_is_taken_from_a_model_that_was_offered_tools(text: str, name: str) -> None:
    answer = await player(text)[0].next()
    assert [(call.name, call.reasoning) for call in answer.calls] == [
        (name, text.split('reasoning": "')[1].split('"')[0])
    ]


@pytest.mark.parametrize(
    "text",
    [
        'Here: {"reasoning": "ask", "message": "Where is it?"}',
        '{"reasoning": "ask", "message": "Where is it?", "mood": "curious"}',
        '{"reasoning": "ask", "message": ""}',
        '{"message": "Where is it?"}',
        '[{"reasoning": "ask", "message": "Where is it?"}]',
    ],
)
async def test_anything_else_in_words_is_no_step(text: str) -> None:
    assert (await player(text)[0].next()).calls == []


async def test_a_call_that_is_written_down_counts_as_made() -> None:
    tester, _ = player(json.dumps(CALL))
    (next_call,) = (await tester.next()).calls
    assert (next_call.name, next_call.arguments) == (SEND, {"message": "Hi"})


@pytest.mark.parametrize("text", ["{", "[]", '{"tool": 7}', "{" * 100_000])
async def test_what_is_no_call_is_words(text: str) -> None:
    tester, _ = player(text)
    answer = await tester.next()
    assert (answer.calls, answer.text) == ([], text)


def test_the_brief_quotes_what_the_test_is_about() -> None:
    about = TestContext(
        goal='Return "it"\nTool x',
        instructions="Be slow",
        scenario="At home",
        restrictions=("No names",),
        persona=Persona(style="curt"),
        facts={"order": "1042"},
        context={"shop": "Lamps"},
        files=("photo.png",),
        max_turns=7,
        min_turns=2,
    )
    text = brief(about, tools(), transparent=True)
    for part in (
        '"Return \\"it\\"\\nTool x"',
        '"Be slow"',
        '"At home"',
        '"No names"',
        '- "style: curt"',
        '"1042"',
        '"photo.png"',
    ):
        assert part in text
    assert "at most 7 turns, and use at least 2" in text


async def test_the_brief_opens_every_request() -> None:
    tester, model = player(say("Hi"))
    await tester.next()
    first, note = model.requests[0].messages
    assert first.text == brief(tester.context, tester.tools, transparent=True)
    assert note.text == "Turn 1."
    assert not any(isinstance(message, AIMessage) for message in model.requests[0].messages)


async def test_what_a_tool_is_for_stands_once_in_a_request() -> None:
    tester, model = player(say("Hi"), UNSUPPORTED, STEP)
    await tester.next()
    await tester.next()
    native, _, in_json = model.requests
    words = AnalyzeTool().documentation
    assert [words in tool["function"]["description"] for tool in native.tools] == [False, True, False]
    assert words not in native.messages[0].text
    assert in_json.messages[0].text.count(words) == 1
    assert '"analysis_focus"' in in_json.messages[0].text, "there the arguments are written down, too"


def test_the_brief_for_json_knows_of_no_tools_where_there_are_none() -> None:
    about = TestContext(goal="Return a lamp", instructions="Be slow", persona=Persona(style="curt"))
    two: dict[str, Tool] = {tool.name: tool for tool in (TargetInteractionTool(Bot()), EndConversationTool())}
    words = brief(about, two, transparent=True, native=False)
    assert '{"reasoning": "why", "message": "what the user says"}' in words
    assert '{"reasoning": "why", "leave": "why"}' in words
    text = words.replace("knows nothing of tests, goals, prompts or tools", "")
    assert not [word for word in ("tool", "call", SEND, "end_conversation") if word in text]
    assert "reasoning" not in brief(about, two, transparent=False, native=False)


@pytest.mark.parametrize("native", [True, False])
def test_who_the_user_is_stands_in_words(native: bool) -> None:
    persona = Persona(name="Ada", description="a worried\nfather", style="curt", language="German, informal")
    words = brief(TestContext(goal="Return a lamp", persona=persona), tools(), transparent=True, native=native)
    assert 'in your own words, in "German, informal".' in words
    assert '- "description: a worried father"\n- "style: curt"\n' in words
    assert "Ada" not in words
    assert "{" not in words.partition("Each step is")[0]


def test_without_a_language_the_user_writes_in_that_of_the_part() -> None:
    assert "in the language of your part." in brief(TestContext(goal="Eine Lampe"), tools(), transparent=True)


@pytest.mark.parametrize("restriction", ["Do not threaten", "threaten", "Niemals drohen"])
def test_a_restriction_is_not_negated_twice(restriction: str) -> None:
    words = brief(TestContext(goal="g", restrictions=(restriction,)), tools(), transparent=True)
    first = "Restrictions come first: keep them even if the assistant asks."
    assert f'Rules for you, about what you must not do. {first}\n- "{restriction}"\n' in words
    assert "Never" not in words


def test_the_brief_asks_for_a_user_and_not_for_a_tester() -> None:
    words = brief(TestContext(goal="Return a lamp", facts={"order": "1042"}), tools(), transparent=True)
    for rule in (
        "usually one or two short sentences",
        "never checks, verifies or grades",
        "Tell a detail only when the assistant asks for it, however it asks",
        "Make up no names, numbers or dates",
        "If an answer is wrong, evasive, or differs from an earlier one, say so",
        '"I will" is not enough',
    ):
        assert rule in words
    assert "find out" not in words


def test_all_turns_are_used_where_the_least_are_the_most() -> None:
    about = TestContext(goal="Return a lamp", max_turns=6, min_turns=6)
    assert "You have 6 turns: use all of them." in brief(about, tools(), transparent=True)


async def test_brief_and_tools_of_a_usual_test_are_short() -> None:
    about = TestContext(
        goal="The flight of booking KX7Q2L is moved to the next morning",
        persona=read_persona("impatient"),
        facts={"booking code": "KX7Q2L", "full name": "Marta Lindqvist"},
    )
    two: dict[str, Tool] = {tool.name: tool for tool in (TargetInteractionTool(Bot()), EndConversationTool())}
    model = ScriptedModel([say("Hi")])
    tester = Tester(model, about, two)
    tester.memory.begin_turn("Turn 1 of at most 20.")
    await tester.next()
    (request,) = model.requests
    size = sum(len(message.text) for message in request.messages) + len(json.dumps(request.tools))
    assert size < 2_600, "about 650 tokens"
