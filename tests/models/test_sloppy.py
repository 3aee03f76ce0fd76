"""A wall of answers as small models write them: each has one reading, or is an error and never a score."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from sloppy_answers import CALLS, CHECKLIST, FAILURE, GOAL, REVIEW, STEP, VIOLATIONS, Family
from stage import Bot
from vivavoce.errors import ModelFault
from vivavoce.messages import FunctionCall, HumanMessage, ToolCall
from vivavoce.metrics.checklist import checklist_reply
from vivavoce.metrics.judged.first_failure import FirstFailureReply
from vivavoce.metrics.judged.goal import LEVELS
from vivavoce.metrics.judged.goal_reply import Asked, goal_reply
from vivavoce.metrics.judged.tool_use import tool_use_reply
from vivavoce.metrics.violations import ViolationsReply
from vivavoce.models.model import ModelReply, Request
from vivavoce.models.modes import CAPABILITIES, Mode
from vivavoce.models.openai import OpenAIModel
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.review import ReviewReply
from vivavoce.penelope.tester import Tester
from vivavoce.penelope.tools.end_conversation import EndConversationTool
from vivavoce.penelope.tools.target_interaction import NAME as SEND
from vivavoce.penelope.tools.target_interaction import TargetInteractionTool
from vivavoce.penelope.tools.tool import Tool
from vivavoce.testing import LoopbackServer
from vivavoce.testing.loopback import Answer

MODES: tuple[Mode, ...] = ("json_schema", "tool", "json_object", "prompted")
JUDGES: list[tuple[type[BaseModel], Family]] = [
    (goal_reply(Asked(("c0", "c2"), 0, True, LEVELS, level=True)), GOAL),
    (checklist_reply(("relevance", "clarity")), CHECKLIST),
    (ViolationsReply, VIOLATIONS),
    (tool_use_reply(("c1",)), CALLS),
    (FirstFailureReply, FAILURE),
    (ReviewReply, REVIEW),
]
CASES = [
    pytest.param(shape, family, text, read, MODES[i % 4], id=f"{shape.__name__} {i}: {text[:40]!r}")
    for shape, family in JUDGES
    for i, (text, read) in enumerate(family.answers())
]


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


def answering(text: str, mode: Mode) -> Answer:
    return [ToolCall(id="1", function=FunctionCall(name="reply", arguments=text))] if mode == "tool" else text


async def asked(server: LoopbackServer, shape: type[BaseModel], mode: Mode) -> ModelReply:
    model = OpenAIModel("small", base_url=server.base_url, structured=mode)
    try:
        return await model.complete(Request([HumanMessage(content="Well?")], schema=shape))
    finally:
        await model.close()


@pytest.mark.parametrize("family", [GOAL, CHECKLIST, VIOLATIONS, CALLS, FAILURE, REVIEW, STEP])
def test_the_wall_is_high_enough(family: Family) -> None:
    answers = dict(family.answers())
    assert len(answers) >= 60, "no two are alike"
    assert family.clean not in answers
    assert min(sum(read is None for read in answers.values()), sum(map(bool, answers.values()))) >= 20


async def test_an_item_that_was_not_asked_about_is_asked_for_once_more_by_its_names(server: LoopbackServer) -> None:
    answers = iter([CHECKLIST.clean.replace('"relevance"', '"usefulness"'), CHECKLIST.clean])
    server.answer = lambda body: next(answers)
    before = len(server.requests)
    reply = await asked(server, checklist_reply(("relevance", "clarity")), "json_schema")
    assert reply.parsed == json.loads(CHECKLIST.clean)
    first, second = (one.body["messages"] for one in server.requests[before:])
    assert len(second) > len(first)
    assert "$.checks[0].item: Input should be 'relevance' or 'clarity', got 'usefulness'" in second[-1]["content"]


@pytest.mark.parametrize(("shape", "family", "text", "read", "mode"), CASES)
async def test_a_judges_answer_has_one_reading_or_is_an_error(
    server: LoopbackServer, shape: type[BaseModel], family: Family, text: str, read: str | None, mode: Mode
) -> None:
    before = len(server.requests)
    server.answer = lambda body: answering(text, mode)
    if read is None:
        with pytest.raises(ModelFault) as caught:
            await asked(server, shape, mode)
        assert (caught.value.kind, len(server.requests) - before) == ("format", 2)
    else:
        reply = await asked(server, shape, mode)
        assert (reply.parsed, reply.applied.get("read", ""), reply.text) == (json.loads(family.clean), read, text)
        assert len(server.requests) - before == 1


@pytest.mark.parametrize(("text", "read"), STEP.answers())
async def test_a_testers_step_has_one_reading_or_is_an_error(
    server: LoopbackServer, text: str, read: str | None
) -> None:
    server.answer = lambda body: text
    model = OpenAIModel("small", base_url=server.base_url)
    CAPABILITIES.note_no_tools(model.identity)
    tools: dict[str, Tool] = {one.name: one for one in (TargetInteractionTool(Bot()), EndConversationTool())}
    tester = Tester(model, TestContext(goal="Be heard"), tools)
    tester.memory.begin_turn("Turn 1.")
    try:
        if read is None:
            with pytest.raises(ModelFault) as caught:
                await tester.next()
            assert caught.value.kind == "format"
        else:
            (call,) = (await tester.next()).calls
            assert (call.name, call.arguments, call.reasoning) == (
                SEND,
                {"message": "Hi, is anyone there?"},
                "To begin.",
            )
    finally:
        await model.close()
