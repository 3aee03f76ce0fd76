from __future__ import annotations

import gc
import json
import socket
import urllib.request
import warnings
from contextlib import ExitStack
from typing import Any

import aiohttp
import pytest

from vivavoce.messages import ToolCall
from vivavoce.testing import LoopbackServer


def post(url: str, body: object) -> Any:
    """Ask without any code of ours."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=10) as response:
        return json.loads(response.read())


def test_a_server_in_a_thread_speaks_chat_completions() -> None:
    with LoopbackServer() as server:
        got = post(
            f"{server.base_url}/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        )
    assert got["choices"][0]["message"] == {"role": "assistant", "content": "You said: hi"}
    assert got["choices"][0]["finish_reason"] == "stop"
    assert got["model"] == "m"
    assert got["usage"]["prompt_tokens"] > 0
    assert server.requests[0].body["model"] == "m"
    assert (server.max_in_flight, server.connections) == (1, 1)


def test_every_kind_of_answer() -> None:
    with LoopbackServer() as server:
        url = f"{server.base_url}/chat/completions"
        server.answer = lambda body: {"score": 1}
        assert post(url, {})["choices"][0]["message"]["content"] == '{"score": 1}'
        server.answer = lambda body: {"role": "assistant", "content": "hi", "extra": 1}
        assert post(url, {})["choices"][0]["message"] == {"role": "assistant", "content": "hi", "extra": 1}
        server.answer = lambda body: [ToolCall(id="1", name="look", args={})]
        assert post(url, {})["choices"][0]["finish_reason"] == "tool_calls"
        server.answer = lambda body: {"choices": []}
        assert post(url, {}) == {"choices": []}
        assert post(f"{server.url}/other?x=1", {}) == {"choices": []}
        assert server.requests[-1].path == "/other?x=1"


async def test_a_request_that_is_not_json_is_refused() -> None:
    async with LoopbackServer() as server, aiohttp.ClientSession() as session:
        async with session.post(server.url, data=b"{") as response:
            assert response.status == 400
        assert server.requests == []


def test_connections_of_its_last_moment_are_closed(recwarn: pytest.WarningsRecorder) -> None:
    warnings.simplefilter("always")
    for _ in range(30):
        with ExitStack() as opened, LoopbackServer() as server:
            for _ in range(3):
                opened.enter_context(socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))))
    gc.collect()
    assert not [str(warning.message) for warning in recwarn if warning.category is ResourceWarning]
