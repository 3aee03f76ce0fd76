"""The ways to ask a chat model for JSON, and to find it in the answer.

Source: `response_format`, `tools` and `tool_choice` in OpenAI's reference of `POST /chat/completions`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel

from vivavoce.errors import Fault
from vivavoce.messages import AIMessage
from vivavoce.models.model import Schema
from vivavoce.models.structured import allows_strict, wire_schema
from vivavoce.wire.chat import WireJson

Mode = Literal["json_schema", "tool", "json_object", "prompted"]
"""A native JSON schema; one function whose arguments are the reply; JSON mode and the schema in the prompt; or only
the schema in the prompt."""

_NEXT: dict[Mode, Mode] = {"json_schema": "tool", "tool": "json_object", "json_object": "prompted"}
_FORMAT = re.compile(r"response.?format|json.?(?:schema|object|mode)|structured.?output", re.IGNORECASE)
_TOOLS = re.compile(r"tool|function", re.IGNORECASE)
_OTHER_TROUBLE = re.compile(r"invalid schema|context.?(?:length|window)|too (?:long|large|many)|reduce", re.IGNORECASE)
"""What else a refused request may be about, though it names the format as well."""


def step_down(mode: Mode, fault: Fault) -> Mode | None:
    """Return the mode to try next when a failure says that the endpoint does not know `mode`, None otherwise."""
    said = fault.evidence or ""
    named = _TOOLS if mode == "tool" else _FORMAT
    unknown = fault.status in (400, 422) and named.search(said) and not _OTHER_TROUBLE.search(said)
    return _NEXT.get(mode) if unknown else None


def ask_for(schema: Schema, mode: Mode, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request that asks for JSON in a mode."""
    if mode == "json_schema":
        return {**body, "response_format": _format_of_class(schema) if isinstance(schema, type) else _format(schema)}
    wanted = dict(wire_schema(schema))
    if mode == "tool":
        return {**body, **_as_tool(_form(wanted), body.get("tools", ()))}
    told = {**body, "messages": _with_instruction(body["messages"], json.dumps(wanted, ensure_ascii=False))}
    return {**told, "response_format": {"type": "json_object"}} if mode == "json_object" else told


def json_text(message: AIMessage, mode: Mode, body: Mapping[str, Any]) -> str | None:
    """Return the part of an answer to `body` that should be JSON, None where it calls tools that were offered."""
    calls = message.tool_calls or ()
    if mode == "tool":
        *others, ours = (tool["function"]["name"] for tool in body["tools"])
        for call in calls:
            if call.name == ours:
                return call.function.arguments
        return None if any(call.name in others for call in calls) else message.text
    if calls:
        return None
    return _only_object(message.text) if mode == "prompted" else message.text


def _only_object(text: str) -> str:
    """Cut off what stands around a JSON object; two of them stay a text that is not JSON."""
    if text.lstrip().startswith("<think>"):
        text = text.partition("</think>")[2]
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text


def _as_tool(form: Mapping[str, Any], offered: Any) -> dict[str, Any]:
    name, taken = form["name"], {tool["function"]["name"] for tool in offered}
    while name in taken:
        name = f"{name}_"
    function = {
        "name": name,
        "description": "Give the reply.",
        "parameters": form["schema"],
        "strict": form["strict"],
    }
    forced: dict[str, Any] = {"type": "function", "function": {"name": name}}
    return {
        "tools": [*offered, {"type": "function", "function": function}],
        "tool_choice": "required" if taken else forced,
    }


def _with_instruction(messages: list[dict[str, Any]], schema: str) -> list[dict[str, Any]]:
    """Put the schema last, so that what it is asked about stays a prefix that a provider's cache may hold."""
    told = _instruction().replace("{{ schema }}", schema)
    last = messages[-1] if messages else {}
    if last.get("role") == "user" and isinstance(last.get("content"), str):
        return [*messages[:-1], {**last, "content": f"{last['content']}\n\n{told}"}]
    return [*messages, {"role": "user", "content": told}]


@cache
def _instruction() -> str:
    return files("vivavoce.models").joinpath("schema.txt").read_text(encoding="utf-8").strip()


@lru_cache(maxsize=256)
def _format_of_class(shape: type[BaseModel]) -> WireJson:
    return _format(wire_schema(shape))


def _format(schema: Mapping[str, Any]) -> WireJson:
    return WireJson({"type": "json_schema", "json_schema": _form(schema)})


def _form(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with its name, and whether strict mode takes it."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title", "reply")))[:64]
    return {"name": name, "schema": dict(schema), "strict": allows_strict(schema)}
