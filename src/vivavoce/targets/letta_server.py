"""How to reach a Letta server, how to make an agent with its tools there, and which faults its errors are."""

from __future__ import annotations

import ast
import inspect
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from textwrap import dedent
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel

from vivavoce.errors import Fault, MissingExtra, RateLimited, SuiteFault, TargetFault
from vivavoce.records.score import shorten
from vivavoce.targets.target import Opening
from vivavoce.wire.http import Limits, checked_url, retry_after
from vivavoce.wire.own_traffic import add_marks

if TYPE_CHECKING:
    import httpx
    from letta_client import APIStatusError, AsyncLetta


class BaseTool(BaseModel):
    """A tool whose `run` the server executes; `args_schema` is the model of its arguments."""

    name: str | None = None
    description: str | None = None
    tags: list[str] | None = None
    args_schema: type[BaseModel] | None = None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the tool does."""
        raise NotImplementedError

    def get_source_code(self) -> str:
        """Return the source of `run` as a function of the tool's name, without `self`."""
        (function,) = ast.parse(dedent(inspect.getsource(type(self).run))).body
        assert isinstance(function, ast.FunctionDef)
        function.name = self.name or function.name
        del function.args.args[0]
        return ast.unparse(function)


async def add_tool(tools: Any, *, tool: BaseTool) -> Any:
    """Create a tool on the server, or update it, and return what the server answers; `tools` are those of a client."""
    schema = tool.args_schema.model_json_schema() if tool.args_schema else None
    fields = {"args_json_schema": schema, "description": tool.description, "tags": tool.tags}
    known = {name: value for name, value in fields.items() if value is not None}
    return await tools.upsert(source_code=tool.get_source_code(), **known)


CLOUD = "https://api.letta.com"
LOCAL = "http://localhost:8283"


@dataclass(frozen=True, slots=True)
class FactorySample:
    """The part of a sample that an agent factory gets; `input` is a text, or a list of them, as in letta-evals.

    `user` is the id of the user that the agent is for, where users come back in several sessions.
    """

    id: str
    agent_args: Mapping[str, Any]
    extra_vars: Mapping[str, Any]
    input: str | list[str] = ""
    user: str | None = None


AgentFactory = Callable[["AsyncLetta", FactorySample], Awaitable[object]]
"""A function of the user that makes an agent and returns its id, a text."""


@dataclass(frozen=True, slots=True)
class LettaAccess:
    """Where a Letta server is, and the key to it; the key is in no repr and no fault."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    project_id: str | None = None

    @classmethod
    def find(
        cls, base_url: str | None = None, api_key: str | None = None, project_id: str | None = None
    ) -> LettaAccess:
        """Return what is given, and for the rest LETTA_BASE_URL, LETTA_API_KEY and LETTA_PROJECT_ID.

        Without an address it is Letta Cloud where there is a key, and otherwise the server of this machine.

        Raises:
            UsageError: the address is not one.
        """
        key = api_key or os.environ.get("LETTA_API_KEY") or None
        url = base_url or os.environ.get("LETTA_BASE_URL") or (CLOUD if key else LOCAL)
        project = project_id or os.environ.get("LETTA_PROJECT_ID") or None
        return cls(checked_url(url, "base_url").rstrip("/"), key, project)

    def connect(self) -> AsyncLetta:
        """Return a client that never asks twice by itself: a repeated call would store a user's message twice.

        Its `tools.add` takes a tool written as a class, which it lost in 1.5.

        Raises:
            MissingExtra: `letta-client` is not installed.
        """
        try:
            import letta_client
        except ImportError as error:
            raise MissingExtra("a Letta server", "letta") from error
        client = letta_client.AsyncLetta(
            base_url=self.base_url,
            api_key=self.api_key,
            project_id=self.project_id,
            max_retries=0,
            timeout=letta_client.Timeout(None, connect=10.0),
            http_client=letta_client.DefaultAsyncHttpxClient(
                event_hooks={"request": [_mark], "response": [_bound, _note_agents]}
            ),
        )
        if not hasattr(client.tools, "add"):
            vars(client.tools)["add"] = partial(add_tool, client.tools)
        return client

    @contextmanager
    def faults(self) -> Generator[None]:
        """Turn what the client raises into faults, and cut the key out of them."""
        try:
            yield
        except Fault as fault:
            raise self.redacted(fault) from fault.__cause__
        except Exception as error:
            fault = _fault(error)
            if fault is None:
                raise
            raise self.redacted(fault) from None  # the cause repeats the server's message, which may contain the key

    def redacted(self, fault: Fault) -> Fault:
        """Return a fault without the key in it."""
        if not self.api_key:
            return fault
        evidence = fault.evidence and fault.evidence.replace(self.api_key, "***")
        return fault.restate(str(fault).replace(self.api_key, "***"), evidence=evidence)


_collected: ContextVar[list[str] | None] = ContextVar("collected_agents", default=None)


@contextmanager
def collected_agents() -> Generator[list[str]]:
    """Collect the ids of all agents that a client of ours makes inside the block."""
    ids: list[str] = []
    token = _collected.set(ids)
    try:
        yield ids
    finally:
        _collected.reset(token)


async def make_agent(factory: AgentFactory, client: AsyncLetta, opening: Opening) -> str:
    """Have the user's factory make an agent and return its id.

    Raises:
        SuiteFault: the factory raised something of its own, or returned no id.
        Exception: what the client raised inside the factory, for `LettaAccess.faults`.
    """
    said = list(opening.said)
    said_once = said[0] if len(said) == 1 else said
    user = None if opening.user is None else opening.user.id
    sample = FactorySample(opening.sample_id, opening.agent_args, opening.extra_vars, said_once, user)
    try:
        agent_id = await factory(client, sample)
    except Exception as error:
        if isinstance(error, Fault) or _fault(error) is not None:
            raise
        raise SuiteFault(f"the agent factory raised {type(error).__name__}: {error}", kind="crash") from error
    if not isinstance(agent_id, str) or not agent_id:
        raise SuiteFault(f"the agent factory returned {agent_id!r}; expected an agent id", kind="format")
    return agent_id


def _fault(error: Exception) -> Fault | None:
    """Return the fault that an exception of the client stands for, None for any other exception."""
    import httpx
    import letta_client

    if isinstance(error.__cause__, Fault):
        return error.__cause__
    if isinstance(error, letta_client.APIStatusError):
        return _refused(error)
    if isinstance(error, letta_client.APIConnectionError):
        arrived = not isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout)
        message = f"no answer from {error.request.url.netloc.decode()}: {error.__cause__ or error}"
        return TargetFault(message, kind="connection", retryable=not arrived)
    if isinstance(error, httpx.HTTPError):
        return TargetFault(f"the connection broke: {str(error) or type(error).__name__}", kind="connection")
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        evidence = error.doc if isinstance(error, json.JSONDecodeError) else None
        return TargetFault(f"the answer is not JSON: {error}", kind="format", evidence=shorten(evidence))
    if isinstance(error, letta_client.APIError):
        return TargetFault(f"the answer is malformed: {error}", kind="format", evidence=shorten(str(error.body)))
    return None


def _refused(error: APIStatusError) -> Fault:
    request, body = error.request, error.body if isinstance(error.body, str) else json.dumps(error.body, default=str)
    place = f"{request.method} {request.url.path}"
    began = error.status_code < 400  # an error inside a stream: the turn was under way
    if error.status_code == 429 or (began and "rate_limit" in body):
        wait = retry_after(error.response.headers.get("Retry-After"))
        message = f"{place} asked to slow down"
        return RateLimited(message, retry_after=wait, evidence=shorten(body), retryable=not began)
    message = f"{place} failed in the middle of the turn" if began else f"{place} answered {error.status_code}"
    return TargetFault(message, kind="crash" if began else "http", evidence=shorten(body))


async def _mark(request: httpx.Request) -> None:
    """Mark a request as one of a test."""
    request.headers.update(add_marks(request.headers))


async def _bound(response: httpx.Response) -> None:
    """Bound the size of an answer, so that a server that never stops is a fault and not the end of the memory."""
    import httpx

    stream = response.stream

    class Bounded(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size, limit = 0, Limits().size
            assert isinstance(stream, httpx.AsyncByteStream)
            async for chunk in stream:
                size += len(chunk)
                if size > limit:
                    place = f"{response.request.method} {response.request.url.path}"
                    message = f"{place}: the answer is larger than {limit:,} bytes; reading stopped"
                    raise TargetFault(message, kind="size", evidence=chunk[:2000].decode(errors="replace"))
                yield chunk

        async def aclose(self) -> None:
            assert isinstance(stream, httpx.AsyncByteStream)
            await stream.aclose()

    response.stream = Bounded()


async def _note_agents(response: httpx.Response) -> None:
    """Collect the agents that a call made: only these may be deleted later."""
    ids, path = _collected.get(), response.request.url.path.rstrip("/")
    makes_agents = response.request.method == "POST" and path.endswith(("/agents", "/agents/import"))
    if ids is None or not makes_agents or not response.is_success:
        return
    await response.aread()
    try:
        body: object = response.json()
    except ValueError:
        return  # the caller that made the agent reports this answer
    if isinstance(body, dict):
        answer = cast("dict[str, Any]", body)
        ids.extend([answer["id"]] if "id" in answer else answer.get("agent_ids", []))
