"""A model behind OpenAI's chat completions that asks a tool for the weather, and remembers what it was asked first."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from live.frameworks.gemini import answered, messages_in, tools_in
from vivavoce.messages import ToolCall
from vivavoce.testing.loopback import completion

CITIES = ("Rome", "Oslo")
_HANDOFFS = {"transfer_to_weather_desk": {}, "transfer_to_agent": {"agent_name": "weather_desk"}}
SAID = ("What is the weather in Rome?", "And in Oslo?", "Which city did I ask about first?")


def answer(body: dict[str, Any]) -> Any:
    """Answer a request, of OpenAI's wire or of Gemini's, in pieces where it asks for them."""
    if "contents" in body:
        return answered(_gemini_parts(body))
    whole = completion(_answer(body), body)
    whole["usage"]["total_tokens"] = sum(whole["usage"].values())
    return _in_pieces(whole) if body.get("stream") else whole


def _answer(body: dict[str, Any]) -> str | list[ToolCall]:
    return _reply(body["messages"], [tool["function"]["name"] for tool in body.get("tools") or ()])


def _gemini_parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    reply = _reply(messages_in(body), tools_in(body))
    if isinstance(reply, str):
        return [{"text": reply}]
    return [{"functionCall": {"id": call.id, "name": call.name, "args": call.args}} for call in reply]


def _reply(messages: list[dict[str, Any]], tools: list[str]) -> str | list[ToolCall]:
    last, users = messages[-1], [_text(one) for one in messages if one["role"] == "user" and "?" in _text(one)]
    if last["role"] == "tool" and not last["tool_call_id"].startswith("handoff"):
        return f"It is {_text(last)}."
    city = next((city for city in CITIES if city in users[-1].rsplit("User: ", 1)[-1]), None)
    if city is None:
        first = next((city for text in users for city in CITIES if city in text), "none")
        return f"The first was {first}."
    if not tools:
        return f"It is sunny in {city}."
    for name, args in _HANDOFFS.items():
        if name in tools and "weather" not in tools:
            return [ToolCall(id=f"handoff_{len(messages)}", name=name, args=args)]
    return [ToolCall(id=f"call_{len(messages)}", name="weather", args={"city": city})]


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _in_pieces(whole: dict[str, Any]) -> Any:
    message, usage = whole["choices"][0]["message"], whole["usage"]
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    if message.get("tool_calls"):
        deltas.append({"tool_calls": [{"index": at, **call} for at, call in enumerate(message["tool_calls"])]})
    else:
        deltas += [{"content": f"{word} "} for word in message["content"].split()]
    head = {**whole, "object": "chat.completion.chunk"}
    del head["choices"], head["usage"]
    reason = whole["choices"][0]["finish_reason"]
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    chunks.append({**head, "choices": [], "usage": usage})

    async def send(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in (*map(json.dumps, chunks), "[DONE]"):
            await response.write(f"data: {chunk}\n\n".encode())
        await response.write_eof()
        return response

    return send
