"""`A2ATarget`: an agent that speaks the Agent2Agent protocol, over JSON-RPC.

Source: the specification of A2A 1.0 and of 0.3, which differ in the names of methods, roles and states.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from vivavoce.conversations.shapes import fields_in, objects_in, text_in
from vivavoce.errors import SuiteFault, TargetFault
from vivavoce.messages import AIMessage, AnyMessage, said_by_assistant
from vivavoce.records.score import shorten
from vivavoce.records.trajectory import default_calls
from vivavoce.settings import environment_of, from_environment
from vivavoce.targets.target import Opening, Reply
from vivavoce.wire.http import Client, Limits, checked_url
from vivavoce.wire.own_traffic import add_marks

_CARD = "/.well-known/agent-card.json"
_ENDED, _ASKS = "completed", "input-required"
_FAILED = ("failed", "canceled", "rejected", "auth-required", "unknown", "unspecified")
_WAIT = 0.5
"""Seconds between two questions whether a task has ended."""

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What a version of the protocol calls things."""

    version: str
    send: str
    get: str
    user: str

    def message(self, text: str, context: str | None, task: str | None) -> dict[str, Any]:
        """Return a message of the user."""
        part = {"text": text} if self.version == "1.0" else {"kind": "text", "text": text}
        message: dict[str, Any] = {"messageId": uuid.uuid4().hex, "role": self.user, "parts": [part]}
        if self.version != "1.0":
            message["kind"] = "message"
        known = {"contextId": context, "taskId": task}
        return {**message, **{key: value for key, value in known.items() if value is not None}}


_ONE = _Dialect("1.0", "SendMessage", "GetTask", "ROLE_USER")
_ZERO = _Dialect("0.3", "message/send", "tasks/get", "user")


class A2ATarget:
    """An agent at an address that serves its card; `headers` may hold `${NAME}` from the environment.

    A conversation is one context of the agent. A task that asks for input continues with the next message.

    Raises:
        UsageError: the address is not valid, or an environment variable is not set.
    """

    stateless = False
    visible_calls = default_calls("a2a")

    def __init__(
        self, name: str, url: str, *, headers: Mapping[str, str] | None = None, limits: Limits | None = None
    ) -> None:
        self.name = name
        self.url = checked_url(from_environment(url, f"{name}.url"), f"{name}.url").rstrip("/")
        self.headers = cast("dict[str, str]", from_environment(dict(headers or {}), f"{name}.headers"))
        self._client = Client(limits, environment_of([url, dict(headers or {})], name).values())
        self._card: tuple[str, _Dialect] | None = None

    async def open(self, opening: Opening) -> A2ASession:
        """Begin a conversation; the card is read before the first.

        Raises:
            TargetFault: there is no card, or none of its interfaces is JSON-RPC.
        """
        del opening
        if self._card is None:
            self._card = await self._interface()
        return A2ASession(self, *self._card)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def call(self, url: str, dialect: _Dialect, method: str, params: Fields) -> Fields:
        """Call a method of the agent and return its result.

        Raises:
            TargetFault: it answered with an error, or not with JSON-RPC.
        """
        request = {"jsonrpc": "2.0", "id": uuid.uuid4().hex, "method": method, "params": params}
        headers = add_marks({"Content-Type": "application/json", "A2A-Version": dialect.version, **self.headers})
        answer = await self._client.request("POST", url, json.dumps(request).encode(), headers)
        fields = fields_in(answer.json())
        if result := fields_in(fields.get("result")):
            return result
        error = fields_in(fields.get("error"))
        if not error:
            raise answer.malformed_fault("is not a JSON-RPC response: it has neither result nor error")
        text = f"{self.name} refused {method}: {error.get('message')} ({error.get('code')})"
        raise TargetFault(text, kind="refused", evidence=shorten(answer.text))

    async def _interface(self) -> tuple[str, _Dialect]:
        """Return the address of the agent's JSON-RPC, and the version that it speaks there."""
        url = self.url if self.url.endswith(".json") else self.url + _CARD
        answer = await self._client.request("GET", url, headers=self.headers, repeatable=True)
        card = fields_in(answer.json())
        for one in objects_in(card.get("supportedInterfaces")):
            if one.get("protocolBinding") == "JSONRPC" and (address := text_in(one.get("url"))):
                is_old = str(one.get("protocolVersion") or "1.0").startswith("0.")
                return address, _ZERO if is_old else _ONE
        if card.get("preferredTransport", "JSONRPC") == "JSONRPC" and (address := text_in(card.get("url"))):
            return address, _ZERO
        raise answer.malformed_fault("has no JSON-RPC interface, which this target needs")


class A2ASession:
    """One context of an agent."""

    opening: Sequence[AnyMessage] = ()

    def __init__(self, target: A2ATarget, url: str, dialect: _Dialect) -> None:
        self._target, self._url, self._dialect = target, url, dialect
        self._context: str | None = None
        self._task: str | None = None
        self._known: set[str] = set()

    @property
    def id(self) -> str | None:
        """The agent's id of the context, once it gave one."""
        return self._context

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Send a message and wait until its task has ended or asks for input.

        Raises:
            SuiteFault: the message is more than a text.
            TargetFault: the task failed, or the agent said nothing.
        """
        if messages[-1].plain is None and isinstance(messages[-1].content, list):
            raise SuiteFault("an A2A agent takes only text, but the message has other parts")
        message = self._dialect.message(messages[-1].text, self._context, self._task)
        result = await self._target.call(self._url, self._dialect, self._dialect.send, {"message": message})
        found = fields_in(result.get("task") or result.get("message")) or result
        self._context = text_in(found.get("contextId")) or self._context
        if "status" not in found:
            return Reply(self._said([_text(found.get("parts"))], found))
        task = await self._ended(found)
        self._task = text_in(task.get("id")) if _state(task) == _ASKS else None
        artifacts = [one for one in objects_in(task.get("artifacts")) if one.get("artifactId") not in self._known]
        self._known |= {str(artifact.get("artifactId")) for artifact in artifacts}
        return Reply(self._said([_text(artifact.get("parts")) for artifact in artifacts] + [_text(_told(task))], task))

    async def state(self) -> dict[str, Any] | None:
        """Return None: the protocol shows no state of an agent."""
        return None

    async def close(self) -> None:
        """Do nothing: the agent ends contexts by itself."""

    async def _ended(self, task: Fields) -> Fields:
        while (state := _state(task)) not in (_ENDED, _ASKS):
            if state in _FAILED:
                said = _text(_told(task))
                text = f"the task of {self._target.name} is {state}: {said or 'it says no more'}"
                raise TargetFault(text, kind="failed", evidence=shorten(json.dumps(task)))
            await asyncio.sleep(_WAIT)
            task = await self._target.call(self._url, self._dialect, self._dialect.get, {"id": task.get("id")})
            task = fields_in(task.get("task")) or task
        return task

    def _said(self, texts: Sequence[str], found: Fields) -> list[AnyMessage]:
        messages: list[AnyMessage] = [said_by_assistant(text) for text in texts if text]
        if not messages:
            text = f"{self._target.name} ended its task without a text"
            raise TargetFault(text, kind="format", evidence=shorten(json.dumps(found)))
        about = {key: found[key] for key in ("id", "metadata") if found.get(key)}
        last = cast("AIMessage", messages[-1])
        return [*messages[:-1], last.model_copy(update={"metadata": {"a2a": about}}) if about else last]


def _state(task: Fields) -> str:
    """Return the state of a task, in the words of 0.3: `completed` for `TASK_STATE_COMPLETED`."""
    state = text_in(fields_in(task.get("status")).get("state")) or "unknown"
    return state.removeprefix("TASK_STATE_").lower().replace("_", "-")


def _told(task: Fields) -> object:
    """Return the parts of what the status of a task says."""
    return fields_in(fields_in(task.get("status")).get("message")).get("parts")


def _text(parts: object) -> str:
    """Return the texts of parts; data is written as JSON, and a file by its address or name."""
    texts: list[str] = []
    for part in objects_in(parts):
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif part.get("data") is not None:
            texts.append(json.dumps(part["data"], ensure_ascii=False))
        else:
            file = fields_in(part.get("file")) or part
            names = (text_in(file.get(key)) for key in ("url", "uri", "filename", "name"))
            texts.append(next(filter(None, names), "a file"))
    return "\n".join(texts)
