"""`LettaTarget`: an agent on a Letta server, its own or Letta Cloud, over the REST API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vivavoce.errors import TargetFault, UsageError
from vivavoce.messages import AnyMessage
from vivavoce.records.score import shorten
from vivavoce.records.trajectory import default_calls
from vivavoce.targets.letta_messages import LettaTurn, UserContent, to_letta
from vivavoce.targets.letta_server import AgentFactory, LettaAccess, collected_agents, make_agent
from vivavoce.targets.target import Opening, Reply

if TYPE_CHECKING:
    from letta_client import AsyncLetta, AsyncStream
    from letta_client.types.agents import LettaStreamingResponse
    from letta_client.types.message_create_param import MessageCreateParam

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AgentSource:
    """Where the agent of a conversation comes from: exactly one of an id, an `.af` file and a factory.

    Raises:
        UsageError: none or several are given, or the file is missing.
    """

    agent_id: str | None = None
    agent_file: Path | None = None
    factory: AgentFactory | None = None

    def __post_init__(self) -> None:
        sources = [source for source in (self.agent_id, self.agent_file, self.factory) if source is not None]
        if len(sources) != 1:
            raise UsageError(f"a Letta target needs one of agent_id, agent_file and agent_script; got {len(sources)}")
        if self.agent_file is not None and not self.agent_file.is_file():
            raise UsageError(f"no agent file '{self.agent_file}'")


class LettaTarget:
    """An agent on a Letta server, one message of the user at a time.

    With a file or a factory each conversation has an agent of its own. With an id each has a conversation of its own
    on that agent (Letta's conversations API): messages are apart, memory blocks are shared, and the agent itself is
    not changed. Where users come back, each has an agent made for them, and each of their sessions is a conversation
    of its own on it; an agent with an id cannot be used, as its memory outlives the attempt. `model` is the handle
    that the agent, or the conversation, uses instead of its own.

    `cleanup` deletes afterwards what was made for a conversation, and never an agent that existed before.
    The caller limits the time.
    """

    stateless = False
    visible_calls = default_calls("letta")

    def __init__(
        self,
        source: AgentSource,
        access: LettaAccess | None = None,
        *,
        name: str | None = None,
        model: str | None = None,
        cleanup: bool = False,
    ) -> None:
        self.name = name or model or "letta"
        self.source = source
        self.access = access or LettaAccess.find()
        self.model = model
        self.cleanup = cleanup
        self.knows_users = source.agent_id is None
        self._client: AsyncLetta | None = None

    @property
    def client(self) -> AsyncLetta:
        """The connection that all conversations share, made when first needed."""
        if self._client is None:
            self._client = self.access.connect()
        return self._client

    async def open(self, opening: Opening) -> LettaSession:
        """Begin a conversation, with an agent or a conversation made for it.

        Raises:
            MissingExtra: `letta-client` is not installed.
            TargetFault: the server refused.
            SuiteFault: the agent factory failed.
        """
        client, user = self.client, opening.user
        with self.access.faults():
            if self.source.agent_id is not None:
                return await self._converse(client, self.source.agent_id, deletes=self.cleanup)
            if user is None:
                agent_id, created = await self._made(client, opening)
                return LettaSession(self, agent_id, created=tuple(created))
            if self not in user.kept:
                user.kept[self], created = await self._made(client, opening)
                if self.cleanup:
                    user.at_end(partial(delete_agents, client, created))
            return await self._converse(client, user.kept[self], deletes=False)

    async def _made(self, client: AsyncLetta, opening: Opening) -> tuple[str, list[str]]:
        """Make the agent of a conversation; return its id, and those of all agents that were made."""
        with collected_agents() as created:
            try:
                agent_id = await self._agent(client, opening)
                if self.model is not None:
                    await client.agents.update(agent_id, model=self.model)
            except BaseException:
                if self.cleanup:
                    await delete_agents(client, created)
                raise
        return agent_id, created

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _agent(self, client: AsyncLetta, opening: Opening) -> str:
        if self.source.factory is not None:
            return await make_agent(self.source.factory, client, opening)
        file = self.source.agent_file
        assert file is not None
        answer = await client.agents.import_file(file=(file.name, file.read_bytes(), "application/json"))
        ids = _field(answer, "agent_ids", list[str])
        if not ids:
            raise TargetFault(f"the server imported no agent from {file.name}", kind="format")
        return ids[0]

    async def _converse(self, client: AsyncLetta, agent_id: str, *, deletes: bool) -> LettaSession:
        chosen: dict[str, Any] = {} if self.model is None else {"model": self.model}
        answer = await client.conversations.create(agent_id=agent_id, **chosen)
        return LettaSession(self, agent_id, conversation_id=_field(answer, "id", str), deletes=deletes)


class LettaSession:
    """One conversation with an agent."""

    opening: Sequence[AnyMessage] = ()

    def __init__(
        self,
        target: LettaTarget,
        agent_id: str,
        *,
        conversation_id: str | None = None,
        created: tuple[str, ...] = (),
        deletes: bool = True,
    ) -> None:
        self.agent_id = agent_id
        self._target = target
        self._conversation_id = conversation_id
        self._created = created
        self._deletes = deletes and target.cleanup
        self._turns = 0

    @property
    def id(self) -> str:
        """The id of the conversation where the agent has several, else of the agent."""
        return self._conversation_id or self.agent_id

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Send the last message and read the agent's events to the end of the turn.

        Raises:
            RateLimited: the server, or the model behind it, asked to slow down.
            TargetFault: any other failure; `retryable` only where the message did not arrive.
        """
        content, turn = to_letta(messages, self._turns), LettaTurn()
        self._turns += 1
        with self._target.access.faults():
            async with await self._ask(content) as events:
                await _check_stream(events)
                async for event in events:
                    turn.read(event.to_dict(mode="json", warnings=False))
            return turn.reply()

    async def state(self) -> dict[str, Any] | None:
        """Return the agent's memory blocks by label."""
        with self._target.access.faults():
            agent = await self._target.client.agents.retrieve(self.agent_id, include=["agent.blocks"])
            blocks = _field(agent, "blocks", list[Any])
            return {str(block.label): block.value for block in blocks}

    async def close(self) -> None:
        """Delete what was made for this conversation, where the target shall clean up and nobody comes back to it."""
        if not self._deletes:
            return
        client = self._target.client
        with self._target.access.faults():
            if self._conversation_id is not None:
                await client.conversations.delete(self._conversation_id)
            await delete_agents(client, self._created)

    async def _ask(self, content: UserContent) -> AsyncStream[LettaStreamingResponse]:
        client = self._target.client
        message: MessageCreateParam = {"role": "user", "content": content}  # type: ignore[typeddict-item]
        if self._conversation_id is None:
            return await client.agents.messages.create(
                self.agent_id, messages=[message], streaming=True, include_pings=True
            )
        return await client.conversations.messages.create(
            self._conversation_id, messages=[message], streaming=True, include_pings=True
        )


async def delete_agents(client: AsyncLetta, ids: Sequence[str]) -> None:
    """Delete agents; one that is gone already does not matter."""
    from letta_client import NotFoundError

    for agent_id in ids:
        try:
            await client.agents.delete(agent_id)
        except NotFoundError:
            continue


def _field(answer: object, name: str, kind: type[T]) -> T:
    """Return a field of an answer; where a server sends a page instead of JSON, the client passes on its text."""
    value = getattr(answer, name, None)
    if value is None:
        raise TargetFault(f"the answer of the server has no '{name}'", kind="format", evidence=shorten(str(answer)))
    return value


async def _check_stream(events: AsyncStream[LettaStreamingResponse]) -> None:
    response = events.response
    received = response.headers.get("content-type", "nothing")
    if not received.startswith("text/event-stream"):
        body = (await response.aread()).decode(errors="replace")
        raise TargetFault(f"the server sent {received} instead of events", kind="format", evidence=shorten(body))
