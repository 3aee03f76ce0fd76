"""The wire of Gemini in front of the model: its contents as messages of a chat, and the answer as a candidate."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web


def messages_in(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the contents of a request as messages of a chat."""
    messages: list[dict[str, Any]] = []
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionResponse" in part:
                result = part["functionResponse"]
                called = "handoff" if result["name"] == "transfer_to_agent" else result["id"]
                text = str(next(iter(result["response"].values())))
                messages.append({"role": "tool", "tool_call_id": called, "content": text})
            elif "text" in part:
                role = "assistant" if content["role"] == "model" else "user"
                messages.append({"role": role, "content": part["text"]})
    return messages


def tools_in(body: dict[str, Any]) -> list[str]:
    """Return the names of the tools of a request."""
    return [one["name"] for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]


def answered(parts: list[dict[str, Any]]) -> Any:
    """Return what sends an answer, in pieces where the address asks for them."""
    used = {"promptTokenCount": 11, "candidatesTokenCount": 3, "totalTokenCount": 14}

    def whole(some: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": some}, "index": 0, **more}]}

    async def send(request: web.Request) -> web.StreamResponse:
        end = {**whole(parts, finishReason="STOP"), "usageMetadata": used}
        if "stream" not in request.path:
            return web.json_response(end)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for one in (*([whole([{"text": "So: "}])] if "text" in parts[0] else []), end):
            await response.write(f"data: {json.dumps(one)}\n\n".encode())
        await response.write_eof()
        return response

    return send
