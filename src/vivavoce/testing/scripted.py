"""`ScriptedModel`: a model that gives prepared replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel

from vivavoce.comparing.json_values import RepeatedKey, parse
from vivavoce.errors import ModelFault
from vivavoce.messages import HumanMessage, ToolCall
from vivavoce.models.model import ModelReply, Request

Scripted = str | Mapping[str, Any] | Sequence[ToolCall] | BaseException
"""A reply: text, a structured reply, tool calls, or an exception to raise."""


class ScriptedModel:
    """A model for tests and the demo.

    `replies` is a list, used in order, or a function of the request. `requests` holds every request it got. A
    structured reply is passed on as it is, whether or not it matches the schema: a real model may lie too. Its replies
    are never cached, as another script of the same name answers differently.
    """

    anonymous = True

    def __init__(self, replies: Sequence[Scripted] | Callable[[Request], Scripted], name: str = "scripted") -> None:
        self.name = name
        self.requests: list[Request] = []
        self._next = replies if callable(replies) else self._in_order(list(replies))

    async def complete(self, request: Request) -> ModelReply:
        """Give the next reply, or raise it.

        Raises:
            ModelFault: the script is at its end, or a text was scripted where JSON is asked for.
        """
        return self._answer(request)

    def generate(self, prompt: str, schema: type[BaseModel] | Mapping[str, Any] | None = None) -> str | dict[str, Any]:
        """Give the next reply to a prompt: a dict where the reply is structured or calls tools, else a text."""
        json_schema = schema.model_json_schema() if isinstance(schema, type) else schema
        reply = self._answer(Request([HumanMessage(content=prompt)], schema=json_schema))
        if reply.tool_calls:
            return {"tool_calls": [call.to_dict() for call in reply.tool_calls]}
        return reply.text if reply.parsed is None else reply.parsed

    async def close(self) -> None:
        """Do nothing."""

    def _answer(self, request: Request) -> ModelReply:
        self.requests.append(request)
        reply = self._next(request)
        if isinstance(reply, BaseException):
            raise reply
        applied = {"mode": "scripted", **request.settings}
        if isinstance(reply, str):
            return ModelReply(reply, parsed=_parse(reply) if request.schema else None, applied=applied)
        if isinstance(reply, Mapping):
            structured = dict(reply)
            return ModelReply(json.dumps(structured), parsed=structured, applied=applied)
        return ModelReply("", tool_calls=list(reply), applied=applied)

    def _in_order(self, replies: list[Scripted]) -> Callable[[Request], Scripted]:
        def next_reply(request: Request) -> Scripted:
            count = len(self.requests)
            if count > len(replies):
                raise ModelFault(f"{self.name} has {len(replies)} replies and was asked {count} times", kind="script")
            return replies[count - 1]

        return next_reply


def _parse(text: str) -> dict[str, Any]:
    try:
        value = _decode(text)
    except ValueError as error:
        raise ModelFault(f"the scripted reply is not JSON: {error}", kind="format", evidence=text) from error
    if not isinstance(value, dict):
        raise ModelFault("the scripted reply is not a JSON object", kind="format", evidence=text)
    return cast("dict[str, Any]", value)


def _decode(text: str) -> Any:
    """Return what JSON text holds; NaN is passed on, for whoever checks it to refuse."""
    try:
        return parse(text)
    except RepeatedKey:
        raise
    except ValueError:
        return json.loads(text)
