"""`LoopbackServer`: an OpenAI-compatible server on this machine, for tests over real HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from aiohttp import web

from vivavoce.messages import ToolCall
from vivavoce.testing.misbehaviour import Misbehaviour
from vivavoce.testing.prefix_cache import PrefixCache, PromptTooLong, prompt_of

T = TypeVar("T")
Answer = str | Mapping[str, Any] | Sequence[ToolCall] | Misbehaviour
"""Text, an object, tool calls, or a misbehaviour from `vivavoce.testing.misbehaviour`."""
AnswerFunction = Callable[[dict[str, Any]], Answer]
COMPLETIONS = "/chat/completions"
HANDED_OVER = 3
"""Rounds of an event loop in which it hands to a server every connection that was opened before.

One that it hands over after the server was closed has a socket that asyncio never closes.
"""


@dataclass(frozen=True, slots=True)
class Received:
    """A request that came in; `body` is the JSON in it, an empty dict when there was none."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


def echo(body: dict[str, Any]) -> str:
    """Repeat what the user said last."""
    return f"You said: {body['messages'][-1]['content']}"


class LoopbackServer:
    """A server on 127.0.0.1 whose every answer is a function of the request's body.

    Under a path that ends in `/chat/completions`, a text becomes a completion, a dict with a `role` becomes its
    message, one with `choices` is sent as it is, and any other is the JSON that a structured reply consists of. Under
    any other path a dict is sent as JSON and a text as text. `delay` is in seconds, before each answer. It takes a free
    `port` unless one is named. With `prefixes` a completion waits for a place in that memory, and its usage is what was
    counted there.

    Use it with `async with` in a test's own loop, or with `with` from a test that starts another process: then it runs
    in a thread. `requests` holds what came in, `max_in_flight` how many were there at once, `connections` how many
    connections they came over.
    """

    def __init__(
        self,
        answer: AnswerFunction = echo,
        *,
        delay: float = 0.0,
        port: int = 0,
        prefixes: PrefixCache | None = None,
    ) -> None:
        self.answer: AnswerFunction = answer
        self.prefixes = prefixes
        self.delay = delay
        self.requests: list[Received] = []
        self.max_in_flight = 0
        self._in_flight = 0
        self._peers: set[object] = set()
        self._port = port
        self._runner: web.AppRunner | None = None
        self._thread: _LoopThread | None = None

    @property
    def url(self) -> str:
        """The address, without a slash at the end."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """The address that an OpenAI client takes."""
        return f"{self.url}/v1"

    @property
    def connections(self) -> int:
        """How many connections were used."""
        return len(self._peers)

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1_000_000_000)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, backlog=2048).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            for _ in range(HANDED_OVER):
                await asyncio.sleep(0)
            await self._runner.cleanup()

    def __enter__(self) -> Self:
        self._thread = _LoopThread()
        return self._thread.run(self.__aenter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._thread.run(self.__aexit__(kind, error, trace))
            self._thread.stop()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self._in_flight)
        try:
            return await self._respond(request)
        finally:
            self._in_flight -= 1

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        sent = await request.read()
        try:
            body = cast("dict[str, Any]", json.loads(sent)) if sent else {}
        except ValueError as error:
            return web.Response(status=400, text=f"the request is not JSON: {error}")
        if request.transport is not None:
            self._peers.add(request.transport.get_extra_info("peername"))
        self.requests.append(Received(request.method, request.path_qs, dict(request.headers), body))
        if self.prefixes is None or not request.path.endswith(COMPLETIONS):
            return await self._answer_after_delay(request, body)
        try:
            async with self.prefixes.holding(prompt_of(body)) as (tokens, cached):
                read = {"prompt_tokens": tokens, "prompt_tokens_details": {"cached_tokens": cached}}
                return await self._answer_after_delay(request, body, read)
        except PromptTooLong as error:
            return web.json_response({"error": {"message": str(error), "code": 400}}, status=400)

    async def _answer_after_delay(
        self, request: web.Request, body: dict[str, Any], read: Mapping[str, Any] | None = None
    ) -> web.StreamResponse:
        """Return the answer after the delay; `read` is what its usage says of the prompt."""
        if self.delay:
            await asyncio.sleep(self.delay)
        answer = self.answer(body)
        if callable(answer):
            return await answer(request)
        if request.path.endswith(COMPLETIONS):
            completed = completion(answer, body)
            return web.json_response({**completed, "usage": {**completed["usage"], **read}} if read else completed)
        return web.Response(text=answer) if isinstance(answer, str) else web.json_response(answer)


def completion(answer: str | Mapping[str, Any] | Sequence[ToolCall], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer as the JSON of a chat completion, with made-up numbers of tokens."""
    if isinstance(answer, Mapping) and "choices" in answer:
        return dict(answer)
    message = _message(answer)
    return {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model"),
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}
        ],
        "usage": {
            "prompt_tokens": len(json.dumps(body)) // 4,
            "completion_tokens": len(json.dumps(message)) // 4,
        },
    }


def _message(answer: str | Mapping[str, Any] | Sequence[ToolCall]) -> dict[str, Any]:
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}
    if isinstance(answer, Mapping):
        fields = dict(answer)
        return fields if "role" in fields else {"role": "assistant", "content": json.dumps(fields)}
    return {"role": "assistant", "content": None, "tool_calls": [call.to_dict() for call in answer]}


class _LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="vivavoce-loopback")
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
