"""A small chat completions server that knows capitals, for agents that need a model behind them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

CAPITALS = {"France": "Paris", "Germany": "Berlin", "Spain": "Madrid"}
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 4}}


@dataclass
class Endpoint:
    """The address of the server, the command it has an agent run, and every conversation that it was sent."""

    url: str = ""
    command: str = "echo hello"
    requests: list[list[dict[str, Any]]] = field(default_factory=list[list[dict[str, Any]]])

    def said(self, request: int) -> list[str]:
        """What the user said in one request, turn by turn, without what the agent's program adds."""
        return [_words(message) for message in self.requests[request] if message["role"] == "user"]


@asynccontextmanager
async def capitals() -> AsyncGenerator[Endpoint]:
    """Serve on a free port; a message with the word "run" is answered by two calls of the tool Bash."""
    endpoint = Endpoint()

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "capitals", "object": "model"}]})

    async def chat(request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await request.json()
        endpoint.requests.append(body["messages"])
        last = body["messages"][-1]
        if last["role"] == "user" and "fail" in _words(last):
            return web.json_response({"error": {"message": "no credit left", "type": "billing"}}, status=402)
        if not body.get("stream"):
            return web.json_response(_whole(last))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in _answer(last, endpoint.command):
            await response.write(f"data: {chunk}\n\n".encode())
        await response.write_eof()
        return response

    app = web.Application(client_max_size=2**26)
    app.add_routes([web.get("/v1/models", models), web.post("/v1/chat/completions", chat)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    endpoint.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield endpoint
    finally:
        await runner.cleanup()


def _words(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else content[-1]["text"]


def _answer(last: dict[str, Any], command: str) -> list[str]:
    words = _words(last)
    if last["role"] == "user" and "run" in words:
        calls = [_call(0, "call_a", command), _call(1, "call_b", "echo world")]
        deltas: list[dict[str, Any]] = [{"reasoning_content": "Let me "}, {"reasoning_content": "see."}]
        chunks = [*deltas, {"tool_calls": calls}]
        reason = "tool_calls"
    else:
        known = [capital for country, capital in CAPITALS.items() if country in words]
        chunks = [{"content": "It is "}, {"content": f"{known[0]}." if known else "done."}]
        reason = "stop"
    lines: list[dict[str, Any]] = [_choice(chunk) for chunk in chunks]
    lines += [_choice({}, reason), {"choices": [], "usage": USAGE}]
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "capitals"}
    return [*(json.dumps({**head, **line}) for line in lines), "[DONE]"]


def _whole(last: dict[str, Any]) -> dict[str, Any]:
    """Return an answer in one piece: a text."""
    known = [capital for country, capital in CAPITALS.items() if country in _words(last)]
    message = {"role": "assistant", "content": f"It is {known[0]}." if known else "done."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "capitals",
        "choices": [choice],
        "usage": USAGE,
    }


def _choice(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _call(index: int, id_: str, command: str) -> dict[str, Any]:
    arguments = json.dumps({"command": command, "description": "say so"})
    return {"index": index, "id": id_, "type": "function", "function": {"name": "Bash", "arguments": arguments}}
