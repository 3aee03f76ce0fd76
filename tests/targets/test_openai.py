from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from vivavoce.errors import Fault, RateLimited, UsageError
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolCall
from vivavoce.targets.openai import OpenAITarget
from vivavoce.targets.target import Opening, Target
from vivavoce.testing import LoopbackServer, misbehaviour
from vivavoce.wire.http import Limits

OPENING = Opening(conversation_id="c-1", sample_id="s-1")
HELLO = [HumanMessage(content="Hello")]


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer() as server:
        yield server


@pytest.fixture
async def bot(server: LoopbackServer) -> AsyncIterator[OpenAITarget]:
    target = OpenAITarget("bot", server.base_url, "m-1", limits=Limits(timeout=5, size=1_000_000))
    yield target
    await target.close()


async def fault_of(target: Target) -> Fault:
    session = await target.open(OPENING)
    with pytest.raises(Fault) as caught:
        await session.send(HELLO)
    return caught.value


async def test_a_target_sends_the_whole_conversation(server: LoopbackServer) -> None:
    target = OpenAITarget(
        "bot", server.base_url + "/", "m-1", api_key="sk-1", system_prompt="Be brief.", settings={"temperature": 0.2}
    )
    session = await target.open(OPENING)
    talk: list[AnyMessage] = [HumanMessage(content="a"), AIMessage(content="b"), HumanMessage(content="c")]
    reply = await session.send(talk)
    await target.close()
    assert reply.messages == [AIMessage(content="You said: c")]
    request = server.requests[0]
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["Authorization"] == "Bearer sk-1"
    assert request.body == {
        "model": "m-1",
        "temperature": 0.2,
        "messages": [{"role": "system", "content": "Be brief."}, *(message.to_wire() for message in talk)],
    }


async def test_the_system_prompt_opens_the_conversation(server: LoopbackServer, bot: OpenAITarget) -> None:
    target = OpenAITarget("bot", server.base_url, "m-1", system_prompt="Be brief.")
    assert list((await target.open(OPENING)).opening) == [SystemMessage(content="Be brief.")]
    assert list((await bot.open(OPENING)).opening) == []
    await target.close()


async def test_no_key_no_authorization(server: LoopbackServer, bot: OpenAITarget) -> None:
    await (await bot.open(OPENING)).send(HELLO)
    assert "Authorization" not in server.requests[0].headers


async def test_what_a_provider_adds_goes_back_to_it(server: LoopbackServer, bot: OpenAITarget) -> None:
    server.answer = lambda body: {"role": "assistant", "content": "4", "reasoning_content": "2 and 2", "audio": None}
    session = await bot.open(OPENING)
    reply = await session.send(HELLO)
    await session.send([*HELLO, *reply.messages, HumanMessage(content="Sure?")])
    assert server.requests[1].body["messages"][1] == {
        "role": "assistant",
        "content": "4",
        "reasoning_content": "2 and 2",
    }


async def test_tool_calls_are_recorded_as_they_are(server: LoopbackServer) -> None:
    call = ToolCall(id="call-1", name="look_up", args={"order": 7})
    server.answer = lambda body: [call]
    tool: dict[str, Any] = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
    target = OpenAITarget("bot", server.base_url, "m-1", tools=[tool])
    reply = await (await target.open(OPENING)).send(HELLO)
    await target.close()
    assert reply.messages[0] == AIMessage(content=None, tool_calls=[call])
    assert server.requests[0].body["tools"] == [tool]


async def test_usage_is_reported(server: LoopbackServer, bot: OpenAITarget) -> None:
    reply = await (await bot.open(OPENING)).send(HELLO)
    assert reply.usage is not None
    assert reply.usage.calls == 1
    assert reply.usage.input_tokens > 0


async def test_an_answer_that_was_cut_off_says_so(server: LoopbackServer, bot: OpenAITarget) -> None:
    cut = {"choices": [{"message": {"content": "The ans"}, "finish_reason": "length"}]}
    server.answer = lambda body: cut
    reply = await (await bot.open(OPENING)).send(HELLO)
    assert reply.messages[0].metadata == {"finish_reason": "length"}
    assert reply.messages[0].to_wire() == {"role": "assistant", "content": "The ans"}


@pytest.mark.parametrize(
    ("does", "kind", "retryable"),
    [
        (misbehaviour.server_error(), "http", True),
        (misbehaviour.status(404), "http", False),
        (misbehaviour.reset(), "connection", True),
        (misbehaviour.html(), "format", False),
        (misbehaviour.broken_json(), "format", False),
        (misbehaviour.body("{}"), "format", False),
        (misbehaviour.huge(), "size", False),
    ],
)
async def test_each_misbehaviour_is_a_fault_of_its_kind(
    server: LoopbackServer, bot: OpenAITarget, does: misbehaviour.Misbehaviour, kind: str, retryable: bool
) -> None:
    server.answer = lambda body: does
    fault = await fault_of(bot)
    assert (fault.kind, fault.retryable, fault.blame) == (kind, retryable, "target")


async def test_a_rate_limit_is_told_apart(server: LoopbackServer, bot: OpenAITarget) -> None:
    server.answer = lambda body: misbehaviour.rate_limited(1)
    fault = await fault_of(bot)
    assert isinstance(fault, RateLimited)
    assert fault.retry_after == 1


async def test_a_key_that_the_server_repeats_is_in_no_fault(server: LoopbackServer) -> None:
    server.answer = lambda body: misbehaviour.status(401, f"bad header {server.requests[0].headers['Authorization']}")
    target = OpenAITarget("bot", server.base_url, "m-1", api_key=" sk-secret-1\n")
    fault = await fault_of(target)
    await target.close()
    assert fault.evidence == "bad header Bearer ***"


async def test_sixty_four_at_once_use_sixty_four_connections_again_and_again(server: LoopbackServer) -> None:
    server.delay = 0.01
    target = OpenAITarget("bot", server.base_url, "m-1", limits=Limits(concurrency=64))
    session = await target.open(OPENING)
    for _ in range(4):
        await asyncio.gather(*(session.send(HELLO) for _ in range(64)))
    await target.close()
    assert (server.max_in_flight, server.connections, len(server.requests)) == (64, 64, 256)


def test_what_cannot_work_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="base_url: 'localhost' is not a web address"):
        OpenAITarget("bot", "localhost", "m-1")
    with pytest.raises(UsageError, match="bot: 'stream' cannot be set"):
        OpenAITarget("bot", "http://localhost/v1", "m-1", settings={"stream": True})
