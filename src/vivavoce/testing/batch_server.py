"""`BatchServer`: a batch service on this machine, which speaks the wires of OpenAI and of Anthropic."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, cast

from aiohttp import web

from vivavoce.testing.loopback import AnswerFunction, LoopbackServer, completion, echo
from vivavoce.testing.misbehaviour import Misbehaviour

Fate = Literal["answered", "expired", "refused"]
"""What becomes of a request in a batch: an answer; none, as the day is over; an error, as it is wrong."""
Call = Literal["upload", "create", "list", "look", "results", "cancel"]


@dataclass
class MadeBatch:
    """A batch that was made: its requests by their names, and how often it was looked at."""

    id: str
    file: str
    requests: dict[str, dict[str, Any]]
    created_at: float
    looks: int = 0
    cancelled: bool = False


@dataclass
class Plan:
    """What the service does: how many looks a batch takes to end, and what becomes of each request.

    `before` and `after` are misbehaviours by the name of the call, for the next calls in their order: one instead of
    what is asked, the other once it is done. `refusals` are the complaints with which the next batches are refused as a
    whole, such as `{"code": "token_limit_exceeded", "message": "…"}`; `strange` are lines that nobody asked for.
    """

    looks: int = 1
    fate: Callable[[str, Mapping[str, Any]], Fate] = lambda name, body: "answered"
    before: dict[Call, list[Misbehaviour]] = field(default_factory=dict[Call, list[Misbehaviour]])
    after: dict[Call, list[Misbehaviour]] = field(default_factory=dict[Call, list[Misbehaviour]])
    refusals: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    strange: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class BatchServer(LoopbackServer):
    """A `LoopbackServer` that also answers in batches, in a different order than asked.

    Each request in a batch is answered by `answer`, as one that is made directly would be. `plan` says how; `made` are
    the batches in the order in which they were made, `calls` what was called.
    """

    def __init__(
        self, answer: AnswerFunction = echo, *, plan: Plan | None = None, delay: float = 0.0, port: int = 0
    ) -> None:
        super().__init__(answer, delay=delay, port=port)
        self.plan = plan or Plan()
        self.batches: list[MadeBatch] = []
        self.calls: list[Call] = []
        self._files: dict[str, list[dict[str, Any]]] = {}
        self._refused: dict[str, dict[str, str]] = {}

    @property
    def request_names(self) -> list[str]:
        """The names of all requests in batches, except those of a refused batch."""
        return [name for batch in self.batches if batch.id not in self._refused for name in batch.requests]

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix("/v1")
        if path.startswith("/messages/batches"):
            return await self._anthropic(request, path.removeprefix("/messages/batches").strip("/"))
        if path.startswith(("/files", "/batches")):
            return await self._openai(request, path)
        return await super()._respond(request)

    async def _openai(self, request: web.Request, path: str) -> web.StreamResponse:
        place = path.strip("/").split("/")
        match request.method, place:
            case "POST", ["files"]:
                return await self._answer_call("upload", request, self._upload)
            case "POST", ["batches"]:
                return await self._answer_call("create", request, self._create)
            case "GET", ["batches"]:
                return await self._answer_call("list", request, self._list)
            case "GET", ["batches", name]:
                return await self._answer_call("look", request, lambda _: self._looked_at(name))
            case "POST", ["batches", name, "cancel"]:
                return await self._answer_call("cancel", request, lambda _: self._cancel(name))
            case "GET", ["files", name, "content"]:
                return await self._answer_call("results", request, lambda _: self._lines(name))
            case _:
                return _json({"error": {"message": f"there is no {path}"}}, 404)

    async def _anthropic(self, request: web.Request, rest: str) -> web.StreamResponse:
        match request.method, rest.split("/"):
            case "POST", [""]:
                return await self._answer_call("create", request, self._create)
            case "GET", [""]:
                return await self._answer_call("list", request, self._list)
            case "GET", [name]:
                return await self._answer_call("look", request, lambda _: self._looked_at(name))
            case "POST", [name, "cancel"]:
                return await self._answer_call("cancel", request, lambda _: self._cancel(name))
            case "GET", [name, "results"]:
                return await self._answer_call("results", request, lambda _: self._messages(name))
            case _:
                return _json({"error": {"message": f"there is no {rest}"}}, 404)

    async def _answer_call(
        self, call: Call, request: web.Request, do: Callable[[bytes], web.StreamResponse]
    ) -> web.StreamResponse:
        self.calls.append(call)
        if instead := self.plan.before.get(call):
            return await instead.pop(0)(request)
        response = do(await request.read())
        if instead := self.plan.after.get(call):
            return await instead.pop(0)(request)
        return response

    def _upload(self, sent: bytes) -> web.StreamResponse:
        match = re.search(rb"\r\n\r\n(\{.*?\})\s*\r\n--", sent, re.DOTALL)
        lines = [json.loads(line) for line in (match[1] if match else b"").splitlines() if line.strip()]
        name = f"file-{len(self._files) + 1}"
        self._files[name] = lines
        return _json({"id": name, "object": "file", "purpose": "batch", "status": "processed"})

    def _create(self, sent: bytes) -> web.StreamResponse:
        body = cast("dict[str, Any]", json.loads(sent))
        file = str(body.get("input_file_id", ""))
        requests: list[dict[str, Any]] = self._files[file] if file else body["requests"]
        requests_by_name = {
            request["custom_id"]: request["body"] if file else request["params"] for request in requests
        }
        batch = MadeBatch(f"batch_{len(self.batches) + 1}", file, requests_by_name, time.time())
        self.batches.append(batch)
        if self.plan.refusals:
            self._refused[batch.id] = self.plan.refusals.pop(0)
        return _json(self._state(batch))

    def _list(self, sent: bytes) -> web.StreamResponse:
        del sent
        newest = self.batches[::-1]
        return _json({"data": [self._state(batch) for batch in newest]})

    def _looked_at(self, name: str) -> web.StreamResponse:
        batch = self._batch(name)
        batch.looks += 1
        return _json(self._state(batch))

    def _cancel(self, name: str) -> web.StreamResponse:
        batch = self._batch(name)
        batch.cancelled = True
        return _json(self._state(batch))

    def _state(self, batch: MadeBatch) -> dict[str, Any]:
        return self._openai_state(batch) if batch.file else self._anthropic_state(batch)

    def _batch(self, name: str) -> MadeBatch:
        return next(batch for batch in self.batches if batch.id == name)

    def _fates(self, batch: MadeBatch) -> dict[str, Fate]:
        if batch.cancelled:
            return dict.fromkeys(batch.requests, "expired")
        return {name: self.plan.fate(name, body) for name, body in batch.requests.items()}

    def _openai_state(self, batch: MadeBatch) -> dict[str, Any]:
        fates, state = (
            [*self._fates(batch).values()],
            {"id": batch.id, "input_file_id": batch.file, "created_at": int(batch.created_at)},
        )
        if batch.id in self._refused:
            return {**state, "status": "failed", "errors": {"object": "list", "data": [self._refused[batch.id]]}}
        ended = batch.looks >= self.plan.looks
        done = fates.count("answered") if ended else 0
        counts = {"total": len(fates), "completed": done, "failed": len(fates) - done if ended else 0}
        state |= {"request_counts": counts}
        if not ended:
            return {**state, "status": "in_progress" if batch.looks else "validating"}
        files = {"output_file_id": f"output-{batch.id}"} if done else {}
        files |= {"error_file_id": f"error-{batch.id}"} if done < len(fates) else {}
        return {**state, **files, "status": "expired" if "expired" in fates else "completed"}

    def _lines(self, file: str) -> web.StreamResponse:
        kind, _, name = file.partition("-")
        batch = self._batch(name)
        lines = [
            {
                "id": f"line-{request_name}",
                "custom_id": request_name,
                **_line(fate, self._completion(batch.requests[request_name])),
            }
            for request_name, fate in self._fates(batch).items()
            if (fate == "answered") is (kind == "output")
        ]
        return _jsonl([*lines[::-1], *(self.plan.strange if kind == "output" else [])])

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        return completion(cast("str", self.answer(body)), body)

    def _anthropic_state(self, batch: MadeBatch) -> dict[str, Any]:
        fates, ended = [*self._fates(batch).values()], batch.looks >= self.plan.looks
        counts = {
            "processing": 0 if ended else len(fates),
            "succeeded": fates.count("answered") if ended else 0,
            "errored": fates.count("refused") if ended else 0,
            "expired": fates.count("expired") if ended else 0,
            "canceled": 0,
        }
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts,
            "created_at": datetime.fromtimestamp(batch.created_at, UTC).isoformat(),
        }

    def _messages(self, name: str) -> web.StreamResponse:
        batch = self._batch(name)
        lines = [
            {"custom_id": request_name, "result": self._result(fate, batch.requests[request_name])}
            for request_name, fate in self._fates(batch).items()
        ]
        return _jsonl([*lines[::-1], *self.plan.strange])

    def _result(self, fate: Fate, body: dict[str, Any]) -> dict[str, Any]:
        if fate == "expired":
            return {"type": "expired"}
        if fate == "refused":
            error = {"type": "invalid_request_error", "message": "the request is wrong"}
            return {"type": "errored", "error": {"type": "error", "error": error}}
        answer = cast("str | dict[str, Any]", self.answer(body))
        content: dict[str, Any]
        if not isinstance(answer, str) and body.get("tools"):
            content = {"type": "tool_use", "id": "toolu_1", "name": body["tools"][0]["name"], "input": answer}
        else:
            content = {"type": "text", "text": answer if isinstance(answer, str) else json.dumps(answer)}
        tokens = {"input_tokens": len(json.dumps(body)) // 4, "output_tokens": len(json.dumps(content)) // 4}
        message = {"type": "message", "role": "assistant", "model": body["model"], "content": [content]}
        return {"type": "succeeded", "message": {**message, "stop_reason": "end_turn", "usage": tokens}}


def _line(fate: Fate, answer: dict[str, Any]) -> dict[str, Any]:
    if fate == "answered":
        return {"response": {"status_code": 200, "request_id": "r", "body": answer}, "error": None}
    if fate == "expired":
        error = {"code": "batch_expired", "message": "This request could not be executed before the batch expired."}
        return {"response": None, "error": error}
    wrong = {"error": {"code": "invalid_request", "message": "the request is wrong"}}
    return {"response": {"status_code": 400, "request_id": "r", "body": wrong}, "error": None}


def _json(body: Mapping[str, Any], status: int = 200) -> web.Response:
    return web.json_response(dict(body), status=status)


def _jsonl(lines: Sequence[Mapping[str, Any]]) -> web.Response:
    return web.Response(text="".join(json.dumps(line) + "\n" for line in lines), content_type="application/jsonl")
