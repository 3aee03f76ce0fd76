"""What an endpoint says of itself is known to every model at it, and to no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from vivavoce.errors import ModelFault
from vivavoce.messages import HumanMessage
from vivavoce.models.capabilities import Capabilities
from vivavoce.models.model import Request
from vivavoce.models.openai import OpenAIModel
from vivavoce.testing import LoopbackServer, misbehaviour
from vivavoce.testing.loopback import Answer

ASKED = [HumanMessage(content="How good is it?")]
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
LOOK: dict[str, Any] = {"type": "function", "function": {"name": "look"}}


def plain(body: dict[str, Any]) -> Answer:
    """Answer as an endpoint that knows neither tools nor a response format."""
    if "tools" in body:
        return misbehaviour.status(400, "m does not support tools")
    if "response_format" in body:
        return misbehaviour.status(400, "response_format is not supported")
    return {"score": 1}


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer(plain) as server:
        yield server


async def test_the_way_to_ask_for_json_is_found_out_once_for_a_model_at_an_address(server: LoopbackServer) -> None:
    asked: list[int] = []
    for name in ("m", "m", "other"):
        model = OpenAIModel(name, base_url=server.base_url)
        reply = await model.complete(Request(ASKED, schema=SCHEMA))
        await model.close()
        assert (reply.parsed, reply.applied["mode"]) == ({"score": 1}, "prompted")
        asked.append(len(server.requests))
    assert asked == [4, 5, 9]


async def test_a_mode_that_is_chosen_is_asked_for_whatever_is_known(server: LoopbackServer) -> None:
    learning, chosen = (OpenAIModel("m", base_url=server.base_url, structured=mode) for mode in (None, "json_object"))
    await learning.complete(Request(ASKED, schema=SCHEMA))
    with pytest.raises(ModelFault, match="400"):
        await chosen.complete(Request(ASKED, schema=SCHEMA))
    await learning.close()
    await chosen.close()
    assert server.requests[-1].body["response_format"] == {"type": "json_object"}


async def test_an_endpoint_without_tools_is_offered_them_once(server: LoopbackServer) -> None:
    for _ in range(3):
        model = OpenAIModel("m", base_url=server.base_url)
        with pytest.raises(ModelFault) as caught:
            await model.complete(Request(ASKED, tools=[LOOK]))
        assert caught.value.kind == "unsupported"
        await model.close()
    assert len(server.requests) == 1


async def test_a_refusal_for_another_reason_teaches_nothing(server: LoopbackServer) -> None:
    server.answer = lambda body: misbehaviour.status(400, "Invalid schema for function 'look'")
    model = OpenAIModel("m", base_url=server.base_url)
    for _ in range(2):
        with pytest.raises(ModelFault) as caught:
            await model.complete(Request(ASKED, tools=[LOOK]))
        assert caught.value.kind == "http"
    await model.close()
    assert len(server.requests) == 2


def test_threads_that_step_down_at_once_take_one_step() -> None:
    known = Capabilities()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(64):
            pool.submit(known.weaken, "m", "json_schema", "tool")
    assert (known.mode("m"), known.mode("n")) == ("tool", "json_schema")
    known.weaken("m", "json_schema", "prompted")
    assert known.mode("m") == "tool", "a refusal of what is no longer asked for changes nothing"


def test_of_a_model_without_an_identity_nothing_is_kept() -> None:
    known = Capabilities()
    known.note_no_tools(None)
    known.note_no_tools("m")
    assert [known.lacks_tools(one) for one in (None, "m", "n")] == [False, True, False]
    known.forget()
    assert not known.lacks_tools("m")
