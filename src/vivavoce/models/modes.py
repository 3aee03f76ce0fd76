"""The ways to ask a chat model for JSON, which of them an endpoint refuses, and how an answer is repaired.

Source: `response_format`, `tools` and `tool_choice` in OpenAI's reference of `POST /chat/completions`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from threading import Lock
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from vivavoce.errors import Fault
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage
from vivavoce.models.model import Schema
from vivavoce.models.structured import allows_strict, reply_name, wire_schema
from vivavoce.wire.chat import WireJson


def asked_again(answer: str, problem: str, untold: Schema | None = None) -> Sequence[AnyMessage]:
    """Return an answer and the request for a better one, which says what is wrong with it.

    `untold` is a schema that is in no message yet: an endpoint may accept it and never show it to the model.
    """
    words = _prompt("repair.txt").replace("{{ problem }}", problem)
    told = words if untold is None else f"{words}\n\n{schema_instruction(untold)}"
    return [AIMessage(content=answer), HumanMessage(content=told)]


def schema_instruction(schema: Schema) -> str:
    """Return the words that ask for an answer with a schema."""
    return _prompt("schema.txt").replace("{{ schema }}", json.dumps(dict(wire_schema(schema)), ensure_ascii=False))


@cache
def _prompt(name: str) -> str:
    return files("vivavoce.models").joinpath(name).read_text(encoding="utf-8").strip()


Mode = Literal["json_schema", "tool", "json_object", "prompted"]
"""A native JSON schema; one function whose arguments are the reply; JSON mode and the schema in the prompt; or only
the schema in the prompt."""

STRONGEST: Mode = "json_schema"
PROMPTED: Mode = "prompted"
IN_MESSAGES: frozenset[Mode] = frozenset(("json_object", "prompted"))
"""The modes in which the model is sure to read the schema, for it is in a message."""
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


IGNORED = 2
"""Answers in a row in which the schema was ignored, after which it is in the prompt."""


class KnownCapabilities(NamedTuple):
    """What is known of endpoints, for another process."""

    modes: dict[str, Mode]
    without_tools: frozenset[str]


class Capabilities:
    """What endpoints said and showed of themselves, by the identity of a model; threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._modes: dict[str, Mode] = {}
        self._ignored: dict[str, int] = {}
        self._without_tools: set[str] = set()

    def mode(self, identity: str) -> Mode:
        """Return the way to ask for JSON: the strongest that was not refused."""
        return self._modes.get(identity, STRONGEST)

    def weaken(self, identity: str, refused: Mode, weaker: Mode) -> None:
        """Take a weaker way to ask for JSON, unless somebody has done so since the refused one was tried."""
        with self._lock:
            if self.mode(identity) == refused:
                self._modes[identity] = weaker

    def note_heeded(self, identity: str) -> None:
        """Keep that an answer followed a schema that stood in no message."""
        with self._lock:
            self._ignored.pop(identity, None)

    def note_ignored(self, identity: str, mode: Mode) -> None:
        """Keep that a schema was accepted and ignored until it stood in a message; soon it does so from the start."""
        with self._lock:
            self._ignored[identity] = self._ignored.get(identity, 0) + 1
            if self._ignored[identity] >= IGNORED and self.mode(identity) == mode:
                self._modes[identity] = PROMPTED

    def lacks_tools(self, identity: str | None) -> bool:
        """Say whether it is known to call no tools; of a model without an identity nothing is known."""
        return identity in self._without_tools

    def note_no_tools(self, identity: str | None) -> None:
        """Keep that it calls no tools."""
        if identity is not None:
            with self._lock:
                self._without_tools.add(identity)

    def snapshot(self) -> KnownCapabilities:
        """Return what is known, for another process."""
        with self._lock:
            return KnownCapabilities(dict(self._modes), frozenset(self._without_tools))

    def learn(self, known: KnownCapabilities) -> None:
        """Add what another process knows."""
        with self._lock:
            self._modes |= known.modes
            self._without_tools |= known.without_tools

    def forget(self) -> None:
        """Forget everything, as where endpoints have changed."""
        with self._lock:
            self._modes.clear()
            self._ignored.clear()
            self._without_tools.clear()


CAPABILITIES = Capabilities()
