"""`McpServer`: an MCP server that offers its tools and answers their calls, one session for each conversation.

Needs the official `mcp` package, the extra `mcp`. Source of the protocol: modelcontextprotocol.io.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from vivavoce.errors import MissingExtra, SuiteFault, UsageError
from vivavoce.records.score import EVIDENCE_LIMIT
from vivavoce.tools.answer import Answer, ToolRequest, failure
from vivavoce.wire.own_traffic import add_marks

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult, RequestParamsMeta


class McpServer:
    """A server that `command` starts in a folder, or that runs at `url`; `timeout` is in seconds for one call.

    A started server gets the environment variables named in `env` besides those that every program needs.

    Raises:
        MissingExtra: the package `mcp` is not installed.
        UsageError: an environment variable is not set.
    """

    def __init__(
        self,
        command: Sequence[str] | None = None,
        folder: Path | None = None,
        env: Sequence[str] = (),
        *,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 300.0,
    ) -> None:
        if find_spec("mcp") is None:
            raise MissingExtra("an MCP server", "mcp")
        if missing := [name for name in env if name not in os.environ]:
            raise UsageError(f"mcp.env: the environment variable {missing[0]} is not set")
        self.command, self.folder, self.url = command, folder, url
        self.env = {name: os.environ[name] for name in env}
        self.headers, self.timeout = dict(headers or {}), timeout

    @property
    def place(self) -> str:
        """What the server is, in words."""
        return f"the MCP server {' '.join(self.command or ()) or self.url}"

    async def open(self) -> McpSession:
        """Begin a session.

        Raises:
            SuiteFault: the server cannot be started or reached.
        """
        session = McpSession(self)
        await session.start()
        return session

    async def connect(self, stack: AsyncExitStack, errors: TextIO) -> Client:
        """Return the client of a new session, which ends with `stack`; a started server writes to `errors`."""
        from mcp import Client, StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        if self.command:
            name, *rest = self.command
            started = StdioServerParameters(command=name, args=rest, env=self.env, cwd=self.folder)
            transport = stdio_client(started, errors)
        else:
            http = await stack.enter_async_context(create_mcp_http_client(self.headers))
            transport = streamable_http_client(self.url or "", http_client=http)
        client = Client(transport, read_timeout_seconds=self.timeout, cache=None)
        return await stack.enter_async_context(client)


class McpSession:
    """A session with a server, held open by a task of its own, as the library wants to be left where it was entered."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._over = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self.definitions: Sequence[Mapping[str, Any]] = ()
        self._names: frozenset[str] = frozenset()

    async def start(self) -> None:
        """Connect, and ask which tools there are.

        Raises:
            SuiteFault: the server cannot be started or reached, or does not answer.
        """
        self._task = asyncio.create_task(self._hold())
        try:
            async with asyncio.timeout(self._server.timeout):
                client = await asyncio.shield(self._ready)
                self.definitions = await _definitions(client)
        except Exception as error:
            fault = self._fault("cannot be reached", error)
            await self.close()
            raise fault from error
        except asyncio.CancelledError:
            await self.close()
            raise
        self._names = frozenset(definition["function"]["name"] for definition in self.definitions)

    async def answer(self, request: ToolRequest) -> Answer | None:
        """Answer a call, None where the server has no such tool.

        Raises:
            SuiteFault: the server failed.
        """
        if request.name not in self._names:
            return None
        text, failed = await self.call(request.name, request.arguments)
        return failure(text, "mcp") if failed else Answer(text, "mcp")

    async def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a tool; return its result as text, and whether the tool says that it failed.

        Raises:
            SuiteFault: the server failed.
        """
        try:
            async with asyncio.timeout(self._server.timeout):
                meta = cast("RequestParamsMeta", add_marks())
                result = await self._ready.result().call_tool(name, dict(arguments), meta=meta or None)
        except Exception as error:
            raise self._fault(f"did not answer {name}", error) from error
        return _text(result), bool(result.is_error)

    async def close(self) -> None:
        """End the session."""
        self._over.set()
        if self._task is not None:
            await asyncio.wait([self._task])
        if self._ready.done() and not self._ready.cancelled():
            self._ready.exception()
        self._errors.close()

    async def _hold(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                self._ready.set_result(await self._server.connect(stack, self._errors))
                await self._over.wait()
        except Exception as error:
            if not self._ready.done():
                self._ready.set_exception(_first(error))

    def _fault(self, what: str, error: BaseException) -> SuiteFault:
        first = _first(error)
        late = f"not within {self._server.timeout:g} s"
        why = late if isinstance(first, TimeoutError) else f"{type(first).__name__}: {first}".removesuffix(": ")
        kind = "timeout" if isinstance(first, TimeoutError) else "connection"
        return SuiteFault(f"{self._server.place} {what}: {why}", kind=kind, evidence=self._error_output())

    def _error_output(self) -> str | None:
        """Return the end of what a started server wrote to its error output."""
        self._errors.seek(0)
        return self._errors.read()[-EVIDENCE_LIMIT:] or None


async def _definitions(client: Client) -> list[dict[str, Any]]:
    definitions: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            about = {"description": tool.description} if tool.description else {}
            function = {"name": tool.name, **about, "parameters": tool.input_schema}
            definitions.append({"type": "function", "function": function})
        cursor = page.next_cursor
        if cursor is None:
            return definitions


def _text(result: CallToolResult) -> str:
    """Return a result as the model reads it: its texts, and anything else as JSON."""
    parts = [
        block.text if block.type == "text" else block.model_dump_json(exclude_none=True) for block in result.content
    ]
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts)


def _first(error: BaseException) -> BaseException:
    """Return the failure that a group of failures began with."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
