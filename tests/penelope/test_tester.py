"""How the tester's model is asked, and how its answers are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stage import Bot, call, say
from vivavoce.errors import ModelFault
from vivavoce.messages import AIMessage, FunctionCall, ToolCall
from vivavoce.models.openai import OpenAIModel
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.persona import Persona
from vivavoce.penelope.tester import Tester, brief
from vivavoce.penelope.tools.analyze import AnalyzeTool
from vivavoce.penelope.tools.target_interaction import NAME as SEND
from vivavoce.penelope.tools.target_interaction import TargetInteractionTool
from vivavoce.penelope.tools.tool import Tool, tool
from vivavoce.testing import LoopbackServer, ScriptedModel, misbehaviour
from vivavoce.testing.loopback import Answer
from vivavoce.testing.scripted import Scripted

UNSUPPORTED = ModelFault("this model has no tools", kind="unsupported")
STEP = {"reasoning": "to begin", "tool": SEND, "arguments": {"message": "Hi"}}


@tool
def keep(reasoning: str) -> str:
    """Keep a thought."""
    return reasoning


def tools() -> dict[str, Tool]:
    return {one.name: one for one in (TargetInteractionTool(Bot()), AnalyzeTool(), keep)}


def player(*replies: Scripted, **options: Any) -> tuple[Tester, ScriptedModel]:
    model = ScriptedModel(list(replies))
    made = Tester(model, TestContext(goal="Return a lamp", trial=3), tools(), **options)
    made.memory.begin_turn("Turn 1.")
    return made, model


async def test_a_call_is_read_with_its_reasoning_which_no_tool_gets() -> None:
    made, model = player(say("Hi", reasoning="to begin"), settings={"temperature": 0.5})
    (asked,) = (await made.next([SEND])).calls
    assert (asked.name, asked.arguments, asked.reasoning) == (SEND, {"message": "Hi"}, "to begin")
    (request,) = model.requests
    assert (request.schema, request.settings, request.trial) == (None, {"temperature": 0.5}, 3)
    (offered,) = request.tools
    assert list(offered["function"]["parameters"]["properties"]) == ["reasoning", "message"]


async def test_without_transparency_no_reasoning_is_asked_for() -> None:
    made, model = player(say("Hi"), transparent=False)
    await made.next([SEND])
    assert "reasoning" not in model.requests[0].tools[0]["function"]["parameters"]["properties"]
    assert "reasoning" not in model.requests[0].messages[0].text


async def test_a_tool_whose_own_argument_is_called_reasoning_gets_it() -> None:
    made, _ = player(call("keep", reasoning="hm"))
    (asked,) = (await made.next(["keep"])).calls
    assert (asked.arguments, asked.reasoning) == ({"reasoning": "hm"}, "")


async def test_parallel_calls_come_in_order_each_as_a_message_of_its_own() -> None:
    made, _ = player([*call("analyze_response"), *say("Hi")])
    calls = (await made.next([SEND, "analyze_response"])).calls
    assert [one.name for one in calls] == ["analyze_response", SEND]
    ids = [one.message.tool_calls[0].id for one in calls if one.message.tool_calls]
    assert ids == ["call_1", "call_2"]


async def test_arguments_that_are_no_object_are_none() -> None:
    made, _ = player([ToolCall(id="1", function=FunctionCall(name=SEND, arguments='{"message": '))])
    (asked,) = (await made.next([SEND])).calls
    assert asked.arguments is None


async def test_a_model_without_tools_is_asked_for_json_at_once_and_from_then_on() -> None:
    made, model = player(UNSUPPORTED, STEP, STEP)
    for _ in range(2):
        (asked,) = (await made.next([SEND])).calls
        assert (asked.name, asked.arguments, asked.reasoning) == (SEND, {"message": "Hi"}, "to begin")
    assert [bool(request.tools) for request in model.requests] == [True, False, False]
    shape = model.requests[1].schema
    assert isinstance(shape, type)
    assert shape.model_json_schema()["properties"]["tool"]["const"] == SEND
    assert not made.memory.native


class Endpoint(ScriptedModel):
    identity = "http://here/v1#small"


async def test_that_an_endpoint_lacks_tools_is_known_in_later_tests() -> None:
    model = Endpoint([UNSUPPORTED, STEP, STEP])
    for _ in range(2):
        made = Tester(model, TestContext(goal="Return a lamp"), tools())
        made.memory.begin_turn("Turn 1.")
        (asked,) = (await made.next([SEND])).calls
        assert asked.arguments == {"message": "Hi"}
    assert [bool(request.tools) for request in model.requests] == [True, False, False]


async def test_an_endpoint_that_refuses_tools_is_asked_for_json() -> None:
    def answer(body: dict[str, Any]) -> Answer:
        return misbehaviour.status(400, "gemma2:2b does not support tools") if "tools" in body else STEP

    async with LoopbackServer(answer) as server:
        for _ in range(2):
            model = OpenAIModel("gemma2:2b", base_url=server.base_url)
            made = Tester(model, TestContext(goal="Return a lamp"), tools())
            made.memory.begin_turn("Turn 1.")
            (asked,) = (await made.next([SEND])).calls
            await model.close()
            assert (asked.name, asked.arguments) == (SEND, {"message": "Hi"})
        assert ["tools" in request.body for request in server.requests] == [True, False, False]


@pytest.mark.parametrize(
    "written",
    [
        f"I greet first.\n```json\n{json.dumps(STEP)}\n```",
        '<tool_call>\n{"name": "send_message_to_target", "arguments": {"message": "Hi"}}\n</tool_call>',
        '{"name": "send_message_to_target", "parameters": "{\\"message\\": \\"Hi\\"}"}',
    ],
)
async def test_a_call_that_is_written_down_is_read_as_small_models_write_it(written: str) -> None:
    made, _ = player(written)
    (asked,) = (await made.next([SEND])).calls
    assert (asked.name, asked.arguments) == (SEND, {"message": "Hi"})


async def test_what_json_does_not_help_is_not_taken_for_a_lack_of_tools() -> None:
    model = Endpoint([UNSUPPORTED, UNSUPPORTED, say("Hi")])
    made = Tester(model, TestContext(goal="Return a lamp"), tools())
    made.memory.begin_turn("Turn 1.")
    with pytest.raises(ModelFault):
        await made.next([SEND])
    later = Tester(model, TestContext(goal="Return a lamp"), tools())
    later.memory.begin_turn("Turn 1.")
    await later.next([SEND])
    assert [bool(request.tools) for request in model.requests] == [True, False, True]


async def test_a_model_without_tools_that_cannot_answer_json_either_has_failed() -> None:
    made, _ = player(UNSUPPORTED, UNSUPPORTED)
    with pytest.raises(ModelFault, match="this model has no tools"):
        await made.next([SEND])


async def test_prose_twice_in_a_row_and_json_is_asked_for() -> None:
    made, model = player("Hm.", say("Hi"), "Hm.", "Well.", STEP)
    answers = [await made.next([SEND]) for _ in range(5)]
    assert [len(one.calls) for one in answers] == [0, 1, 0, 0, 1]
    assert [one.text for one in answers] == ["Hm.", "", "Hm.", "Well.", ""]
    assert [request.schema is not None for request in model.requests] == [False, False, False, False, True]


async def test_a_call_that_is_written_down_counts_as_made() -> None:
    made, _ = player(json.dumps(STEP))
    (asked,) = (await made.next([SEND])).calls
    assert (asked.name, asked.arguments) == (SEND, {"message": "Hi"})


@pytest.mark.parametrize("text", ["{", "[]", '{"tool": 7}', "{" * 100_000])
async def test_what_is_no_call_is_words(text: str) -> None:
    made, _ = player(text)
    answer = await made.next([SEND])
    assert (answer.calls, answer.text) == ([], text)


async def test_only_what_is_offered_is_offered() -> None:
    made, model = player(say("Hi"), say("Hi"))
    await made.next([SEND])
    await made.next(["analyze_response", SEND])
    names = [[one["function"]["name"] for one in request.tools] for request in model.requests]
    assert names == [[SEND], [SEND, "analyze_response"]]


def test_the_brief_quotes_what_the_test_is_about_and_tells_of_every_tool() -> None:
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
    told = brief(about, tools(), transparent=True)
    for part in (
        '"Return \\"it\\"\\nTool x"',
        '"Be slow"',
        '"At home"',
        '"No names"',
        '"curt"',
        '"1042"',
        '"photo.png"',
    ):
        assert part in told
    assert "at most 7 turns, and use at least 2" in told
    assert [line for line in told.splitlines() if line.startswith("Tool ")] == [f"Tool {name}" for name in tools()]


async def test_the_brief_opens_every_request() -> None:
    made, model = player(say("Hi"))
    await made.next([SEND])
    first, note = model.requests[0].messages
    assert first.text == brief(made.context, made.tools, transparent=True)
    assert note.text == "Turn 1."
    assert not any(isinstance(one, AIMessage) for one in model.requests[0].messages)
