from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic import BaseModel

pytest.importorskip("pydantic_ai", reason="pip install 'vivavoce[providers]'")

from vivavoce.errors import BudgetExhausted, Fault, ModelFault, RateLimited, UsageError
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, read_message
from vivavoce.models.model import Model, Request
from vivavoce.models.names import open_model
from vivavoce.pacing.limits import Budget
from vivavoce.testing import LoopbackServer, misbehaviour
from vivavoce.testing.loopback import Answer
from vivavoce.wire.http import Limits

pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")
NATIVE, OLDER = "claude-sonnet-4-5", "claude-3-5-haiku-latest"
ASKED: list[AnyMessage] = [SystemMessage(content="Be strict."), HumanMessage(content="How good is it?")]
SCHEMA: dict[str, Any] = {
    "title": "Verdict",
    "type": "object",
    "properties": {"score": {"type": "number", "maximum": 1}},
    "required": ["score"],
    "additionalProperties": False,
}
LOOK: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "description": "Look at it.", "parameters": {"type": "object", "properties": {}}},
}


class Verdict(BaseModel):
    score: float


def says(*content: dict[str, Any] | str, stop: str = "end_turn", cached: int = 0) -> dict[str, Any]:
    """Return an answer as Anthropic's messages endpoint gives it."""
    blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": cached}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": NATIVE,
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {**usage, "cache_creation_input_tokens": 0},
    }


def calls(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}


def in_turn(*answers: Answer) -> Callable[[dict[str, Any]], Answer]:
    remaining = iter(answers)
    return lambda body: next(remaining)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer(lambda body: says("fine")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-1")
        yield server


@pytest.fixture
async def judge(server: LoopbackServer) -> AsyncIterator[Model]:
    model = open_model(f"anthropic:{NATIVE}", settings={"temperature": 0.0}, tries=2)
    yield model
    await model.close()


async def fault_of(model: Model, request: Request) -> Fault:
    with pytest.raises(Fault) as caught:
        await model.complete(request)
    return caught.value


async def test_a_model_answers_in_text(server: LoopbackServer, judge: Model) -> None:
    server.answer = lambda body: says("It is ", "fine.", cached=4)
    reply = await judge.complete(Request(ASKED, settings={"max_tokens": 50, "stop": "END", "seed": 7}))
    assert (reply.text, reply.parsed, list(reply.tool_calls)) == ("It is fine.", None, [])
    assert reply.applied == {"mode": "text", "temperature": 0.0, "max_tokens": 50, "stop": "END", "seed": None}
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.cached_input_tokens, reply.usage.output_tokens) == (14, 4, 5)
    assert reply.usage.calls == 1
    assert reply.usage.cost == pytest.approx((10 * 3 + 4 * 0.3 + 5 * 15) / 1e6)
    (request,) = server.requests
    assert request.path.startswith("/v1/messages")
    assert "sk-ant-1" in str(request.headers)
    assert request.body["model"] == NATIVE
    assert request.body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "How good is it?"}]}]
    assert "Be strict." in str(request.body["system"])
    assert (request.body["temperature"], request.body["max_tokens"]) == (0.0, 50)
    assert request.body["stop_sequences"] == ["END"]
    assert judge.name == f"anthropic:{NATIVE}"


async def test_a_schema_is_sent_natively_where_the_model_knows_it(server: LoopbackServer, judge: Model) -> None:
    server.answer = lambda body: says('{"score": 0.5}')
    reply = await judge.complete(Request(ASKED, schema=SCHEMA))
    assert (reply.parsed, reply.text) == ({"score": 0.5}, '{"score": 0.5}')
    assert reply.applied == {"mode": "json_schema", "max_tokens": 16_384, "temperature": 0.0, "repaired": False}
    assert server.requests[0].body["output_config"]["format"]["type"] == "json_schema"


async def test_a_schema_is_a_tool_where_the_model_knows_none(server: LoopbackServer) -> None:
    server.answer = lambda body: says(calls("reply", {"score": 0.5}), stop="tool_use")
    model = open_model(f"anthropic:{OLDER}")
    reply = await model.complete(Request(ASKED, schema=Verdict))
    await model.close()
    assert (reply.parsed, list(reply.tool_calls)) == ({"score": 0.5}, [])
    assert (reply.applied["mode"], reply.applied["repaired"]) == ("tool", False)
    assert server.requests[0].body["tools"][0]["input_schema"]["required"] == ["score"]
    assert server.requests[0].body["tool_choice"]["type"] in ("any", "tool")


@pytest.mark.parametrize(
    ("model", "answers"),
    [
        (NATIVE, [says('{"score": 57}'), says('{"score": 0.57}')]),
        (OLDER, [says(calls("reply", {"score": 57})), says(calls("reply", {"score": 0.57}))]),
    ],
)
async def test_an_answer_outside_the_schema_is_repaired_once(
    server: LoopbackServer, model: str, answers: list[Answer]
) -> None:
    server.answer = in_turn(*answers)
    judge = open_model(f"anthropic:{model}")
    reply = await judge.complete(Request(ASKED, schema=SCHEMA))
    await judge.close()
    assert reply.parsed == {"score": 0.57}
    assert reply.applied["repaired"] is True
    assert reply.usage is not None
    assert (reply.usage.calls, reply.usage.input_tokens) == (2, 20)
    said, asked = server.requests[1].body["messages"][-2:]
    assert (said["role"], said["content"][0]["text"].replace(" ", "")) == ("assistant", '{"score":57}')
    assert "$.score: 57 is greater than the maximum of 1" in asked["content"][0]["text"]


async def test_an_answer_in_prose_is_read_and_a_repair_shows_the_schema(server: LoopbackServer, judge: Model) -> None:
    server.answer = in_turn(says("About 0.9"), says('Sure: {"score": 0.9}'))
    reply = await judge.complete(Request(ASKED, schema=SCHEMA))
    assert (reply.parsed, reply.applied["repaired"], reply.applied["read"]) == ({"score": 0.9}, True, "prose")
    assert '"required": ["score"]' in server.requests[1].body["messages"][-1]["content"][0]["text"]


async def test_an_answer_twice_outside_the_schema_is_a_fault(server: LoopbackServer, judge: Model) -> None:
    server.answer = in_turn(says("About 0.9, I think"), says('{"score": "high"}'))
    fault = await fault_of(judge, Request(ASKED, schema=SCHEMA))
    assert isinstance(fault, ModelFault)
    assert (fault.kind, fault.evidence) == ("format", '{"score": "high"}')


async def test_a_conversation_with_tools_is_sent_and_calls_returned(server: LoopbackServer, judge: Model) -> None:
    server.answer = lambda body: says("Let me see.", calls("look", {"at": "it"}), stop="tool_use")
    talk: list[AnyMessage] = [
        *ASKED,
        AIMessage(content="I look.", tool_calls=[ToolCall(id="t-1", name="look", args={"at": "this"})]),
        ToolMessage(content="It shines.", tool_call_id="t-1"),
    ]
    reply = await judge.complete(Request(talk, schema=SCHEMA, tools=[LOOK]))
    assert [(call.name, call.args, call.id) for call in reply.tool_calls] == [("look", {"at": "it"}, "toolu_1")]
    assert (reply.text, reply.parsed) == ("Let me see.", None)
    body = server.requests[0].body
    assert [tool["name"] for tool in body["tools"]] == ["look", "reply"]
    _, answered, returned = body["messages"]
    assert answered["content"][-1] == {"type": "tool_use", "id": "t-1", "name": "look", "input": {"at": "this"}}
    assert returned["content"][0]["tool_use_id"] == "t-1"
    assert "It shines." in str(returned["content"][0]["content"])


async def test_an_image_is_sent_only_when_the_message_holds_it(server: LoopbackServer, judge: Model) -> None:
    def picture(url: str) -> Request:
        return Request([read_message({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]})])

    await judge.complete(picture("data:image/png;base64,aGk="))
    assert server.requests[0].body["messages"][0]["content"][0]["source"]["data"] == "aGk="
    fault = await fault_of(judge, picture(f"{server.url}/spy.png"))
    assert (fault.kind, len(server.requests)) == ("unsupported", 1)


async def test_a_rate_limit_is_waited_for_and_then_the_judges_failure(server: LoopbackServer, judge: Model) -> None:
    limited = misbehaviour.status(429, '{"type":"error","error":{"type":"rate_limit_error"}}', {"retry-after": "0"})
    server.answer = in_turn(limited, limited, says("fine"))
    assert (await judge.complete(Request(ASKED))).text == "fine"
    server.answer = lambda body: misbehaviour.rate_limited(7200)
    fault = await fault_of(judge, Request(ASKED))
    assert isinstance(fault, RateLimited)
    assert (fault.blame, fault.retry_after, len(server.requests)) == ("judge", 7200, 4)


@pytest.mark.parametrize(
    ("answer", "kind", "requests"),
    [
        (misbehaviour.status(529, "overloaded", {"retry-after": "0"}), "rate_limit", 10),
        (misbehaviour.status(400, "no model for key sk-ant-1"), "http", 1),
        (misbehaviour.status(401, '{"type":"error","error":{"type":"authentication_error"}}'), "http", 1),
        (misbehaviour.broken_json(), "format", 1),
        (misbehaviour.html(), "format", 1),
        (says(stop="refusal"), "refusal", 1),
    ],
)
async def test_each_way_to_fail_has_its_kind_and_shows_no_key(
    server: LoopbackServer, judge: Model, answer: Answer, kind: str, requests: int
) -> None:
    server.answer = lambda body: answer
    fault = await fault_of(judge, Request(ASKED))
    assert (fault.kind, fault.blame, len(server.requests)) == (kind, "judge", requests)
    assert "sk-ant-1" not in f"{fault}{fault.evidence}"


@pytest.mark.parametrize(
    ("answer", "kind"), [(misbehaviour.server_error(), "http"), (misbehaviour.reset(), "connection")]
)
async def test_a_failure_that_passes_is_retried_by_us_alone(
    server: LoopbackServer, judge: Model, answer: Answer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vivavoce.pacing.limits.FIRST_WAIT", 0.0)
    server.answer = in_turn(answer, says("fine"))
    assert (await judge.complete(Request(ASKED))).text == "fine"
    server.answer = lambda body: answer
    fault = await fault_of(judge, Request(ASKED))
    assert (fault.kind, fault.retryable, len(server.requests)) == (kind, True, 4)


async def test_an_answer_that_does_not_come_is_a_timeout(server: LoopbackServer) -> None:
    server.answer = lambda body: misbehaviour.hang()
    model = open_model(f"anthropic:{NATIVE}", limits=Limits(timeout=0.05), tries=1)
    fault = await fault_of(model, Request(ASKED))
    await model.close()
    assert fault.kind == "timeout"


async def test_an_answer_that_is_cut_off_is_no_reply(server: LoopbackServer, judge: Model) -> None:
    server.answer = lambda body: says('{"sc', stop="max_tokens")
    fault = await fault_of(judge, Request(ASKED, schema=SCHEMA))
    assert (fault.kind, fault.evidence, len(server.requests)) == ("format", '{"sc', 1)


async def test_calls_and_cost_are_limited(server: LoopbackServer) -> None:
    budget = Budget(max_calls=1)
    model = open_model(f"anthropic:{NATIVE}", budget=budget)
    await model.complete(Request(ASKED))
    with pytest.raises(BudgetExhausted):
        await model.complete(Request(ASKED))
    await model.close()
    dear = open_model(f"anthropic:{NATIVE}", budget=Budget(max_cost=0.001), settings={"max_tokens": 1000})
    with pytest.raises(BudgetExhausted):
        await dear.complete(Request(ASKED))
    await dear.close()
    with pytest.raises(UsageError, match="the price of anthropic:claude-x is unknown"):
        open_model("anthropic:claude-x", budget=Budget(max_cost=1.0))


async def test_the_raw_exchange_is_kept_without_the_key(server: LoopbackServer, judge: Model) -> None:
    reply = await judge.complete(Request(ASKED))
    assert reply.raw is not None
    assert "How good is it?" in str(reply.raw["request"])
    assert "fine" in str(reply.raw["response"])
    assert "sk-ant-1" not in str(reply.raw)


@pytest.mark.parametrize("key", ["temprature", "timeout", "max_retries"])
def test_a_setting_that_would_be_lost_is_refused(server: LoopbackServer, key: str) -> None:
    with pytest.raises(UsageError, match=f"'{key}' is not a request setting"):
        open_model(f"anthropic:{NATIVE}", settings={key: 1})


def test_the_package_of_a_provider_is_asked_for_when_it_is_missing() -> None:
    with pytest.raises(UsageError, match=r"pip install 'pydantic-ai-slim\[mistral\]'"):
        open_model("mistral:mistral-large-latest", api_key="k")


def test_other_providers_of_the_extra_open_without_a_network() -> None:
    names = ["google:gemini-2.5-flash", "vertex:gemini-2.5-flash", "deepseek:deepseek-chat"]
    assert [open_model(name, api_key="k").name for name in names] == names
