"""What an endpoint says of itself is known to every model at it, and to no other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from vivavoce.errors import ModelFault
from vivavoce.messages import HumanMessage
from vivavoce.models.model import Request
from vivavoce.models.modes import Capabilities
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


def ignoring(body: dict[str, Any]) -> Answer:
    """Answer as an endpoint that takes a response format and ignores it: the model reads messages alone."""
    return {"score": 1} if "JSON schema:" in body["messages"][-1]["content"] else "Very good."


async def ask(server: LoopbackServer, times: int = 1, **options: Any) -> list[tuple[str, bool]]:
    """Ask as often with a model of its own, and return the modes and whether the answer had to be repaired."""
    told: list[tuple[str, bool]] = []
    for _ in range(times):
        model = OpenAIModel("m", base_url=server.base_url, **options)
        reply = await model.complete(Request(ASKED, schema=SCHEMA))
        await model.close()
        assert reply.parsed is not None
        told.append((reply.applied["mode"], reply.applied["repaired"]))
    return told


async def test_a_schema_that_is_ignored_twice_in_a_row_stands_in_the_prompt_from_then_on(
    server: LoopbackServer,
) -> None:
    server.answer = ignoring
    assert await ask(server, 4) == [("json_schema", True)] * 2 + [("prompted", False)] * 2
    assert len(server.requests) == 6
    assert "response_format" not in server.requests[-1].body
    assert await ask(server, 3, structured="json_schema") == [("json_schema", True)] * 3, "a chosen mode stays"


async def test_a_schema_that_is_ignored_now_and_then_goes_on_being_sent(server: LoopbackServer) -> None:
    for _ in range(3):
        server.answer = ignoring
        assert await ask(server) == [("json_schema", True)]
        server.answer = lambda body: {"score": 1}
        assert await ask(server) == [("json_schema", False)]


@pytest.mark.parametrize("first", [{"score": "high"}, {"score": None, "why": "x"}, 'Well: {"score": []}'])
async def test_a_wrong_value_under_the_right_keys_is_repaired_and_teaches_nothing(
    server: LoopbackServer, first: Answer
) -> None:
    server.answer = lambda body: {"score": 1} if len(body["messages"]) > 1 else first
    assert await ask(server, 4) == [("json_schema", True)] * 4


@pytest.mark.parametrize("first", ["", "Good.", [1], {"Mark": 1}, {"type": "object"}])
async def test_an_answer_without_the_keys_is_one_that_did_not_heed_them(server: LoopbackServer, first: Any) -> None:
    text = first if isinstance(first, str) else json.dumps(first)
    server.answer = lambda body: {"score": 1} if "JSON schema:" in body["messages"][-1]["content"] else text
    assert [mode for mode, _ in await ask(server, 3)] == ["json_schema", "json_schema", "prompted"]


async def test_a_schema_in_the_prompt_is_still_repaired(server: LoopbackServer) -> None:
    server.answer = ignoring
    await ask(server, 2)
    server.answer = lambda body: {"score": 1} if len(body["messages"]) > 1 else "Very good."
    assert await ask(server, 2) == [("prompted", True)] * 2


async def test_what_no_repair_helped_teaches_nothing(server: LoopbackServer) -> None:
    server.answer = lambda body: "Very good."
    for _ in range(3):
        model = OpenAIModel("m", base_url=server.base_url)
        with pytest.raises(ModelFault, match="twice answered outside"):
            await model.complete(Request(ASKED, schema=SCHEMA))
        await model.close()
    assert all("response_format" in request.body for request in server.requests)


async def test_a_function_that_is_not_called_is_a_schema_that_is_ignored(server: LoopbackServer) -> None:
    def without_format(body: dict[str, Any]) -> Answer:
        return misbehaviour.status(400, "no response_format") if "response_format" in body else ignoring(body)

    server.answer = without_format
    assert [mode for mode, _ in await ask(server, 4)] == ["tool", "tool", "prompted", "prompted"]


def test_threads_that_note_it_at_once_take_one_step() -> None:
    known = Capabilities()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(64):
            pool.submit(known.note_ignored, "m", "json_schema")
    assert (known.mode("m"), known.mode("n")) == ("prompted", "json_schema")
    known.weaken("o", "json_schema", "json_object")
    known.note_ignored("o", "json_schema")
    known.note_ignored("o", "json_schema")
    assert known.mode("o") == "json_object", "what is no longer asked for changes nothing"
    known.forget()
    assert known.mode("m") == "json_schema"
