"""Bots behind a WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from asking import asked, told
from vivavoce.errors import SuiteFault, TargetFault, UsageError
from vivavoce.messages import HumanMessage
from vivavoce.targets import WebSocketTarget
from vivavoce.targets.target import Opening
from vivavoce.targets.websocket import Frames
from vivavoce.wire.own_traffic import of_run

Bot = Callable[[web.WebSocketResponse, str], Awaitable[None]]
STREAM = Frames(piece="delta", end={"type": "done"}, error="error.message", session="session")


@asynccontextmanager
async def served(bot: Bot, requests: list[web.Request] | None = None) -> AsyncGenerator[str]:
    """Serve a bot that is called with each frame, and yield its address."""

    async def handle(request: web.Request) -> web.WebSocketResponse:
        if requests is not None:
            requests.append(request)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for frame in socket:
            await bot(socket, frame.data)
            if socket.closed:
                break
        return socket

    app = web.Application()
    app.add_routes([web.get("/talk", handle)])
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}/talk"
    finally:
        await runner.cleanup()


async def test_texts_are_sent_and_come_back_over_one_connection() -> None:
    heard: list[str] = []

    async def bot(socket: web.WebSocketResponse, text: str) -> None:
        heard.append(text)
        await socket.send_str(" ".join(heard))

    requests: list[web.Request] = []
    async with served(bot, requests) as url:
        target = WebSocketTarget("bot", url + "?c={{ conversation_id }}", headers={"X-Id": "{{ sample.id }}"})
        with of_run("nightly-1"):
            first, second = await asked(target, "a", "b")
    assert (told(first), told(second)) == ([("assistant", None, "a", [])], [("assistant", None, "a b", [])])
    assert [(request.query["c"], request.headers["X-Id"]) for request in requests] == [("c-1", "s")]
    assert requests[0].headers["baggage"] == "vivavoce.run=nightly-1"


async def test_pieces_are_joined_and_the_first_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t-123")
    heard: list[Any] = []

    async def bot(socket: web.WebSocketResponse, text: str) -> None:
        heard.append(json.loads(text))
        if "hello" in heard[-1]:
            return
        for frame in ({"session": "s9"}, {"delta": "Hel"}, {"delta": "lo"}, {"type": "done"}):
            await socket.send_json(frame)

    async with served(bot) as url:
        message = {"text": "{{ message }}", "session": "{{ session }}", "n": 1}
        target = WebSocketTarget("bot", url, message=message, first={"hello": "${TOKEN}"}, frames=STREAM)
        session = await target.open(Opening("c-1", "s"))
        replies = [await session.send([HumanMessage(content=text)]) for text in ("a", "b")]
        await session.close()
    assert [told(reply) for reply in replies] == [[("assistant", None, "Hello", [])]] * 2
    assert 0 < (replies[0].messages[0].metadata or {})["first_token"] < 5
    assert session.id == "s9"
    assert heard == [
        {"hello": "t-123"},
        {"text": "a", "session": None, "n": 1},
        {"text": "b", "session": "s9", "n": 1},
    ]


async def test_several_replies_are_the_messages_of_a_turn() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    rows = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sent"},
    ]

    async def bot(socket: web.WebSocketResponse, text: str) -> None:
        for reply in (rows, "It was sent."):
            await socket.send_json({"reply": reply})
        await socket.send_bytes(b'{"end": true}')

    async with served(bot) as url:
        (reply,) = await asked(WebSocketTarget("bot", url, frames=Frames("reply", end={"end": True})), "a")
    assert told(reply) == [
        ("assistant", None, "", [("c1", "find", "{}")]),
        ("tool", None, "sent", []),
        ("assistant", None, "It was sent.", []),
    ]


async def _half(socket: web.WebSocketResponse, text: str) -> None:
    await socket.send_json({"delta": "Hel"})
    await socket.close(code=1011)


async def _gone(socket: web.WebSocketResponse, text: str) -> None:
    await socket.close()


async def _garbage(socket: web.WebSocketResponse, text: str) -> None:
    await socket.send_str("<html>")


async def _failed(socket: web.WebSocketResponse, text: str) -> None:
    await socket.send_json({"error": {"message": "no credit"}})


async def _silent(socket: web.WebSocketResponse, text: str) -> None:
    await socket.send_json({"delta": "Hel"})


@pytest.mark.parametrize(
    ("bot", "rule", "kind", "evidence"),
    [
        (
            _half,
            "disconnected in the middle of its reply: it closed the connection with code 1011",
            "connection",
            "Hel",
        ),
        (_gone, "bot disconnected before its reply: it closed the connection", "connection", None),
        (_garbage, "bot sent a frame that is not JSON", "format", "<html>"),
        (_failed, "bot failed: no credit", "crash", '{"error": {"message": "no credit"}}'),
        (_silent, r"bot did not end its reply within 0\.3 s", "timeout", "Hel"),
    ],
)
async def test_what_breaks_is_the_fault_of_the_bot_with_what_came(
    bot: Bot, rule: str, kind: str, evidence: str | None
) -> None:
    async with served(bot) as url:
        target = WebSocketTarget("bot", url, frames=STREAM, timeout=0.3)
        session = await target.open(Opening("c-1", "s"))
        with pytest.raises(TargetFault, match=rule) as raised:
            await session.send([HumanMessage(content="a")])
        await session.close()
    assert (raised.value.kind, raised.value.evidence) == (kind, evidence)


async def test_a_connection_that_is_refused_may_be_tried_again() -> None:
    with pytest.raises(TargetFault, match="bot cannot be connected to") as raised:
        await WebSocketTarget("bot", "ws://127.0.0.1:9/talk").open(Opening("c", "s"))
    assert raised.value.retryable
    async with served(_gone) as url:
        with pytest.raises(TargetFault, match="bot refused to connect: status 404"):
            await WebSocketTarget("bot", url + "/nowhere").open(Opening("c", "s"))


async def test_a_redirect_is_not_followed_with_the_headers_of_the_user() -> None:
    requests: list[web.Request] = []

    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect(elsewhere, text="x" * 100_000)

    async def bot(socket: web.WebSocketResponse, text: str) -> None:
        await socket.send_str(text)

    async with served(bot, requests) as elsewhere:
        app = web.Application()
        app.add_routes([web.get("/talk", redirect)])
        runner = web.AppRunner(app, shutdown_timeout=0.01)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        target = WebSocketTarget("bot", f"ws://127.0.0.1:{runner.addresses[0][1]}/talk", headers={"X-Key": "secret"})
        with pytest.raises(TargetFault, match="bot refused to connect: status 307") as caught:
            await target.open(Opening("c", "s"))
        await runner.cleanup()
    assert (caught.value.kind, caught.value.retryable) == ("http", False)
    assert requests == []


async def test_a_sample_without_what_the_template_says_is_an_error_of_the_suite() -> None:
    async with served(_gone) as url:
        target = WebSocketTarget("bot", url, message="{{ message }} {{ sample.extra_vars.city }}")
        session = await target.open(Opening("c", "s"))
        with pytest.raises(SuiteFault, match="city"):
            await session.send([HumanMessage(content="a")])
        await asyncio.sleep(0)
        await session.close()


@pytest.mark.parametrize(
    ("url", "more", "rule"),
    [
        ("http://x/talk", {}, r"bot\.url: 'http://x/talk' is not an address such as wss://bot\.example/talk"),
        ("ws://{{ sample.id }}/talk", {}, r"bot\.url: .* leaves the host open"),
        ("ws://x", {"message": "hi"}, r"bot\.message: it has no '\{\{ message \}\}' and no"),
        ("ws://x", {"frames": Frames(piece="delta")}, r"bot\.piece: needs end, the content of the frame"),
        ("ws://x", {"first": "{{ nothing }}"}, r"bot\.first: no variable 'nothing'"),
        ("ws://x", {"headers": {"K": "${NOT_SET_AT_ALL}"}}, "NOT_SET_AT_ALL is not set"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_sent(url: str, more: Any, rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        WebSocketTarget("bot", url, **more)
