"""A bot by its address, or by a name whose address stands outside."""

from __future__ import annotations

import pytest

from vivavoce.errors import UsageError
from vivavoce.messages import HumanMessage
from vivavoce.targets.endpoint import EndpointTarget
from vivavoce.targets.target import Opening
from vivavoce.testing import LoopbackServer


async def asked(target: EndpointTarget, *lines: str) -> list[str]:
    session = await target.open(Opening("c-1", "s"))
    replies = [await session.send([HumanMessage(content=line)]) for line in lines]
    await session.close()
    await target.close()
    return [reply.messages[-1].text for reply in replies]


async def test_a_bot_gets_the_message_and_the_conversation_it_belongs_to() -> None:
    async with LoopbackServer(lambda body: {"reply": body["message"].upper()}) as server:
        target = EndpointTarget(f"{server.url}/chat", api_key="sk-1")
        assert await asked(target, "a", "b") == ["A", "B"]
        first, second = server.requests
    assert first.body == {"message": "a", "conversation_id": "c-1"}
    assert second.body["conversation_id"] == "c-1"
    assert (first.path, first.headers["Authorization"]) == ("/chat", "Bearer sk-1")
    assert (target.name, target.stateless) == (f"{server.url}/chat", False)


async def test_the_reply_stands_where_it_is_said_to() -> None:
    async with LoopbackServer(lambda body: {"data": {"text": "yes"}}) as server:
        assert await asked(EndpointTarget(f"{server.url}/chat", reply="data.text"), "a") == ["yes"]
    assert "Authorization" not in server.requests[0].headers


async def test_with_a_model_it_is_asked_as_an_openai_endpoint() -> None:
    async with LoopbackServer() as server:
        target = EndpointTarget(f"{server.base_url}#small")
        assert await asked(target, "a") == ["You said: a"]
        assert (server.requests[0].path, server.requests[0].body["model"]) == ("/v1/chat/completions", "small")
    assert target.stateless


async def test_a_name_has_its_address_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackServer(lambda body: {"reply": "hi"}) as server:
        monkeypatch.setenv("VIVAVOCE_ENDPOINT_CHATBOT_PROD", f"{server.url}/chat")
        target = EndpointTarget("chatbot-prod")
        assert await asked(target, "a") == ["hi"]
    assert target.name == "chatbot-prod"


def test_a_name_without_an_address_says_which_variable_to_set() -> None:
    with pytest.raises(UsageError, match="'chatbot-prod' has no address: set VIVAVOCE_ENDPOINT_CHATBOT_PROD to it"):
        EndpointTarget("chatbot-prod")
