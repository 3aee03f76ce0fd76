from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from vivavoce.errors import Fault, ModelFault, RateLimited
from vivavoce.messages import AIMessage, HumanMessage, ToolCall
from vivavoce.models.model import Model, Request
from vivavoce.models.openai import OpenAIModel
from vivavoce.pacing.retry import ASKS_PER_TRY
from vivavoce.testing import LoopbackServer, misbehaviour
from vivavoce.testing.loopback import Answer

ASKED = [HumanMessage(content="How good is it?")]
SCHEMA: dict[str, Any] = {
    "title": "Judge reply!",
    "type": "object",
    "properties": {"score": {"type": "number", "maximum": 1}},
    "required": ["score"],
    "additionalProperties": False,
}


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer() as server:
        yield server


@pytest.fixture
async def judge(server: LoopbackServer) -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel("m-1", base_url=server.base_url, api_key="sk-1", settings={"temperature": 0.0})
    yield model
    await model.close()


def in_turn(*answers: Answer) -> Callable[[dict[str, Any]], Answer]:
    remaining = iter(answers)
    return lambda body: next(remaining)


async def fault_of(model: Model, request: Request) -> Fault:
    with pytest.raises(Fault) as caught:
        await model.complete(request)
    return caught.value


async def test_a_model_answers_in_text(server: LoopbackServer, judge: OpenAIModel) -> None:
    reply = await judge.complete(Request(ASKED, settings={"max_tokens": 5}))
    assert (reply.text, reply.parsed, reply.tool_calls) == ("You said: How good is it?", None, ())
    assert reply.applied == {"mode": "text", "temperature": 0.0, "max_tokens": 5}
    assert reply.usage is not None
    assert server.requests[0].body == {
        "model": "m-1",
        "messages": [{"role": "user", "content": "How good is it?"}],
        "temperature": 0.0,
        "max_tokens": 5,
    }
    assert judge.name == f"{server.base_url}#m-1"


async def test_a_schema_is_sent_natively_and_the_answer_parsed(server: LoopbackServer, judge: OpenAIModel) -> None:
    server.answer = lambda body: {"score": 0.5}
    reply = await judge.complete(Request(ASKED, schema=SCHEMA))
    assert reply.parsed == {"score": 0.5}
    assert reply.applied == {"mode": "json_schema", "temperature": 0.0, "repaired": False}
    assert server.requests[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "Judge_reply_", "schema": SCHEMA, "strict": True},
    }


async def test_an_answer_outside_the_schema_is_repaired_once(server: LoopbackServer, judge: OpenAIModel) -> None:
    server.answer = in_turn({"score": 57}, {"score": 0.57})
    reply = await judge.complete(Request(ASKED, schema=SCHEMA))
    assert reply.parsed == {"score": 0.57}
    assert reply.applied["repaired"] is True
    assert reply.usage is not None
    assert reply.usage.calls == 2
    said, asked = server.requests[1].body["messages"][-2:]
    assert said == {"role": "assistant", "content": '{"score": 57}'}
    assert "$.score: 57 is greater than the maximum of 1" in asked["content"]


async def test_an_answer_twice_outside_the_schema_is_a_fault(server: LoopbackServer, judge: OpenAIModel) -> None:
    server.answer = in_turn("About 0.9, I think", {"score": "high"})
    fault = await fault_of(judge, Request(ASKED, schema=SCHEMA))
    assert isinstance(fault, ModelFault)
    assert (fault.kind, fault.evidence) == ("format", '{"score": "high"}')
    assert "'high' is not of type 'number'" in str(fault)


@pytest.mark.parametrize(
    ("choice", "kind", "evidence"),
    [
        ({"message": {"content": None, "refusal": "I cannot judge that."}}, "refusal", "I cannot judge that."),
        ({"message": {"content": "{"}, "finish_reason": "content_filter"}, "refusal", "{"),
        ({"message": {"content": '{"sc'}, "finish_reason": "length"}, "format", '{"sc'),
    ],
)
async def test_what_a_repair_cannot_help_is_a_fault_at_once(
    server: LoopbackServer, judge: OpenAIModel, choice: dict[str, Any], kind: str, evidence: str
) -> None:
    server.answer = lambda body: {"choices": [choice]}
    fault = await fault_of(judge, Request(ASKED, schema=SCHEMA))
    assert (fault.kind, fault.evidence, len(server.requests)) == (kind, evidence, 1)


async def test_tools_are_offered_and_calls_returned(server: LoopbackServer, judge: OpenAIModel) -> None:
    call = ToolCall(id="1", name="look", args={"at": "it"})
    server.answer = lambda body: [call]
    tool: dict[str, Any] = {"type": "function", "function": {"name": "look"}}
    reply = await judge.complete(Request(ASKED, tools=[tool], schema=SCHEMA))
    assert (list(reply.tool_calls), reply.parsed, reply.text) == ([call], None, "")
    assert server.requests[0].body["tools"] == [tool]


@pytest.mark.parametrize("name", ["o1", "o3-mini", "o4-mini-2025", "gpt-5", "gpt-5-nano", "gpt-5.2", "openai/gpt-5"])
async def test_a_reasoning_model_gets_no_temperature_and_the_record_says_so(server: LoopbackServer, name: str) -> None:
    model = OpenAIModel(name, base_url=server.base_url, settings={"temperature": 0.0})
    reply = await model.complete(Request(ASKED))
    await model.close()
    assert "temperature" not in server.requests[0].body
    assert reply.applied["temperature"] is None


@pytest.mark.parametrize("name", ["gpt-4.1", "olmo-2", "llama-o3", "o1lama", "gpt-50"])
async def test_other_models_get_the_temperature(server: LoopbackServer, name: str) -> None:
    model = OpenAIModel(name, base_url=server.base_url, settings={"temperature": 0.0})
    await model.complete(Request(ASKED))
    await model.close()
    assert server.requests[0].body["temperature"] == 0.0


async def test_a_failure_that_passes_is_retried(server: LoopbackServer, judge: OpenAIModel) -> None:
    server.answer = in_turn(misbehaviour.rate_limited(0), misbehaviour.rate_limited(0), "fine")
    assert (await judge.complete(Request(ASKED))).text == "fine"
    assert judge.limiter.current < judge.limiter.ceiling


async def test_a_rate_limit_that_stays_is_the_judges_failure(server: LoopbackServer) -> None:
    server.answer = lambda body: misbehaviour.rate_limited(0)
    model = OpenAIModel("m-1", base_url=server.base_url, tries=2)
    fault = await fault_of(model, Request(ASKED))
    await model.close()
    assert isinstance(fault, RateLimited)
    assert (fault.blame, len(server.requests)) == ("judge", 2 * ASKS_PER_TRY)


async def test_a_failure_that_stays_is_the_judges_and_shows_no_key(server: LoopbackServer, judge: OpenAIModel) -> None:
    server.answer = lambda body: misbehaviour.status(400, "no model m-1 for key sk-1")
    fault = await fault_of(judge, Request(ASKED))
    assert isinstance(fault, ModelFault)
    assert (fault.kind, fault.evidence, len(server.requests)) == ("http", "no model m-1 for key ***", 1)


async def test_the_raw_exchange_is_kept_without_the_key(server: LoopbackServer, judge: OpenAIModel) -> None:
    reply = await judge.complete(Request([*ASKED, AIMessage(content="Fair."), *ASKED]))
    assert reply.raw is not None
    assert reply.raw["request"] == server.requests[0].body
    assert reply.raw["response"]["object"] == "chat.completion"
    assert "sk-1" not in str(reply.raw)
