"""`OpenAIModel`: any model behind an OpenAI-compatible chat completions endpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from vivavoce.errors import ModelFault
from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.models.model import ModelReply, Request, Schema
from vivavoce.models.structured import allows_strict, read_structured, wire_schema
from vivavoce.pacing.budget import Budget
from vivavoce.pacing.limiter import Limiter
from vivavoce.pacing.retry import retrying
from vivavoce.records.failure import shorten
from vivavoce.records.usage import Usage
from vivavoce.wire.chat import ChatEndpoint, Completion, checked_settings, wire_messages
from vivavoce.wire.http import Limits

BASE_URL = "https://api.openai.com/v1"
_FIXED_TEMPERATURE = re.compile(r"(?:.*/)?(?:o[134]|gpt-5)(?![0-9a-z])")
"""Families of reasoning models, which refuse a request that sets a temperature."""


class OpenAIModel:
    """A model that answers in text, with tool calls, or in JSON that matches a schema.

    A schema is sent as native `response_format`; an answer outside it gets one chance to be repaired. Failures that may
    pass are retried, up to `tries` in all; each try holds a slot of `limiter`, which is the model's own by default, and
    counts against `budget`.

    Raises:
        UsageError: `base_url` is no web address, or `settings` hold a part of the request that is made here.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = BASE_URL,
        api_key: str | None = None,
        settings: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        limiter: Limiter | None = None,
        budget: Budget | None = None,
        tries: int = 4,
    ) -> None:
        limits = limits or Limits()
        self.model = model
        self.name = f"openai:{model}" if base_url == BASE_URL else f"{base_url}#{model}"
        self.settings = checked_settings(settings or {}, self.name)
        self.limiter = limiter or Limiter(limits.concurrency)
        self._tries = tries
        self._budget = budget or Budget()
        self._endpoint = ChatEndpoint(base_url, api_key, limits, ModelFault)

    async def complete(self, request: Request) -> ModelReply:
        """Answer a request; the first answer counts unless a schema is asked for and missed.

        Raises:
            ModelFault: the endpoint failed, the model declined, or twice missed the schema (kind `format`).
            RateLimited: it asked to slow down, and kept asking.
        """
        body, applied = self._body(request)
        completion = await self._ask(body)
        if request.schema is None:
            return _reply(completion, None, completion.usage, applied, body)
        try:
            parsed = _parsed(completion, request.schema)
            return _reply(completion, parsed, completion.usage, applied, body)
        except ValueError as error:
            body = _with_repair(body, completion, str(error))
        repaired = await self._ask(body)
        usage = _sum(completion.usage, repaired.usage)
        try:
            parsed = _parsed(repaired, request.schema)
        except ValueError as error:
            said = f"{self.name} twice answered outside the JSON schema: {error}"
            raise ModelFault(said, kind="format", evidence=shorten(repaired.message.text)) from error
        return _reply(repaired, parsed, usage, {**applied, "repaired": True}, body)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    async def _ask(self, body: Mapping[str, Any]) -> Completion:
        return await retrying(lambda: self._once(body), tries=self._tries, limiter=self.limiter)

    async def _once(self, body: Mapping[str, Any]) -> Completion:
        reservation = self._budget.reserve(0.0)
        try:
            return await self._endpoint.complete(body)
        finally:
            self._budget.settle(reservation, 0.0)

    def _body(self, request: Request) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the body to send, and the record of how the request was put."""
        settings = {**self.settings, **checked_settings(request.settings, self.name)}
        applied: dict[str, Any] = {"mode": "tools" if request.tools else "text", **settings}
        if "temperature" in settings and _FIXED_TEMPERATURE.match(self.model):
            del settings["temperature"]
            applied["temperature"] = None
        body: dict[str, Any] = {"model": self.model, "messages": wire_messages(request.messages), **settings}
        if request.tools:
            body["tools"] = [dict(tool) for tool in request.tools]
        if request.schema is not None:
            applied["mode"] = "json_schema"
            body["response_format"] = _response_format(wire_schema(request.schema))
        return body, applied


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title", "reply")))[:64]
    return {
        "type": "json_schema",
        "json_schema": {"name": name, "schema": dict(schema), "strict": allows_strict(schema)},
    }


def _parsed(completion: Completion, schema: Schema) -> dict[str, Any] | None:
    """Return the JSON object of an answer; None for one that calls tools instead.

    Raises:
        ValueError: another try may give an answer that matches.
        ModelFault: it would not.
    """
    message = completion.message
    if message.tool_calls:
        return None
    if message.refusal or completion.finish_reason == "content_filter":
        raise ModelFault("the model declined to answer", kind="refusal", evidence=message.refusal or message.text)
    if completion.finish_reason == "length":
        raise ModelFault("the answer was cut off at the token limit", kind="format", evidence=shorten(message.text))
    return read_structured(message.text, schema)


def _with_repair(body: dict[str, Any], completion: Completion, problem: str) -> dict[str, Any]:
    said = AIMessage(content=completion.message.text)
    asked = HumanMessage(content=_repair_prompt().replace("{{ problem }}", problem))
    return {**body, "messages": [*body["messages"], *wire_messages([said, asked])]}


@cache
def _repair_prompt() -> str:
    return files("vivavoce.models").joinpath("repair.txt").read_text(encoding="utf-8").strip()


def _reply(
    completion: Completion,
    parsed: dict[str, Any] | None,
    usage: Usage | None,
    applied: dict[str, Any],
    body: dict[str, Any],
) -> ModelReply:
    return ModelReply(
        text=completion.message.text,
        parsed=parsed,
        tool_calls=completion.message.tool_calls or (),
        usage=usage,
        applied={"repaired": False, **applied} if parsed is not None else applied,
        raw={"request": body, "response": completion.payload},
    )


def _sum(first: Usage | None, second: Usage | None) -> Usage | None:
    return first + second if first and second else first or second
