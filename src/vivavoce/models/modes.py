"""The ways to ask a chat model for JSON, what an endpoint refuses, and which part of an answer should be the JSON.

Source: `response_format`, `tools` and `tool_choice` in OpenAI's reference of `POST /chat/completions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel

from vivavoce.errors import Fault
from vivavoce.messages import AIMessage
from vivavoce.models.model import Schema
from vivavoce.models.repair import schema_instruction
from vivavoce.models.structured import allows_strict, reply_name, wire_schema
from vivavoce.wire.chat import WireJson

Mode = Literal["json_schema", "tool", "json_object", "prompted"]
"""A native JSON schema; one function whose arguments are the reply; JSON mode and the schema in the prompt; or only
the schema in the prompt."""

STRONGEST: Mode = "json_schema"
PROMPTED: Mode = "prompted"
IN_MESSAGES: frozenset[Mode] = frozenset(("json_object", "prompted"))
"""The modes in which the model is sure to read the schema, for it stands in a message."""
_NEXT: dict[Mode, Mode] = {"json_schema": "tool", "tool": "json_object", "json_object": "prompted"}
_FORMAT = re.compile(r"response.?format|json.?(?:schema|object|mode)|structured.?output", re.IGNORECASE)
_TOOLS = re.compile(r"tool|function", re.IGNORECASE)
_NO_TOOLS = re.compile(
    r"(?:not support|unsupported|found that support)[^.]{0,60}\b(?:tools?|functions?)\b"
    r"|\b(?:tools?|functions?)\b[^.]{0,60}(?:not support|unsupported|not enabled|requires? --enable)",
    re.IGNORECASE,
)
_OTHER_TROUBLE = re.compile(r"invalid schema|context.?(?:length|window)|too (?:long|large|many)|reduce", re.IGNORECASE)
"""What else a refused request may be about, though it names the format as well."""


def step_down(mode: Mode, fault: Fault) -> Mode | None:
    """Return the mode to try next when a failure says that the endpoint does not know `mode`, None otherwise."""
    said = fault.evidence or ""
    named = _TOOLS if mode == "tool" else _FORMAT
    unknown = fault.status in (400, 422) and named.search(said) and not _OTHER_TROUBLE.search(said)
    return _NEXT.get(mode) if unknown else None


def refuses_tools(fault: Fault) -> bool:
    """Say whether a failure says that the endpoint knows no tools at all."""
    said = f"{fault} {fault.evidence or ''}"
    return fault.status in (400, 404, 422, 501) and bool(_NO_TOOLS.search(said)) and not _OTHER_TROUBLE.search(said)


def ask_for(schema: Schema, mode: Mode, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request that asks for JSON in a mode."""
    if mode == "json_schema":
        return {**body, "response_format": _format_of_class(schema) if isinstance(schema, type) else _format(schema)}
    wanted = dict(wire_schema(schema))
    if mode == "tool":
        return {**body, **_as_tool(_form(wanted), body.get("tools", ()))}
    told = {**body, "messages": _with_instruction(body["messages"], schema_instruction(schema))}
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
    return None if calls else message.text


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


def _with_instruction(messages: list[dict[str, Any]], told: str) -> list[dict[str, Any]]:
    """Put the schema last, so that what it is asked about stays a prefix that a provider's cache may hold."""
    last = messages[-1] if messages else {}
    if last.get("role") == "user" and isinstance(last.get("content"), str):
        return [*messages[:-1], {**last, "content": f"{last['content']}\n\n{told}"}]
    return [*messages, {"role": "user", "content": told}]


@lru_cache(maxsize=256)
def _format_of_class(shape: type[BaseModel]) -> WireJson:
    return _format(wire_schema(shape))


def _format(schema: Mapping[str, Any]) -> WireJson:
    return WireJson({"type": "json_schema", "json_schema": _form(schema)})


def _form(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with its name, and whether strict mode takes it."""
    return {"name": reply_name(schema), "schema": dict(schema), "strict": allows_strict(schema)}
