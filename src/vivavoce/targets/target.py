"""The protocol of a system under test: sessions, messages, replies, and the tools that it offers to its model."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import re
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

from pydantic import JsonValue

from vivavoce.errors import SuiteFault, TargetFault
from vivavoce.langchain_messages import role_of
from vivavoce.messages import AIMessage, AnyMessage, Message, ToolCall, ToolMessage, read_messages, said_by_assistant
from vivavoce.records.score import EVIDENCE_LIMIT, Usage, shorten
from vivavoce.records.trajectory import Source
from vivavoce.user_code import foreign_code

log = logging.getLogger("vivavoce")

_OTHER = re.compile(r"[^A-Za-z0-9]+")

HOW_TO_KNOW = (
    "a function that takes 'user', an HTTP body, WebSocket message or MCP arguments with {{ user }}, or a Letta agent "
    "made by agent_file or agent_script"
)
"""The targets that can tell who comes back, in words."""


@dataclass(slots=True)
class User:
    """One user of one attempt: `id` is new for every attempt, so that no attempt meets the memory of another.

    `kept` is for targets, which find there in a later session, each under itself, what they made in an earlier one.
    """

    name: str
    id: str
    kept: dict[object, Any] = field(default_factory=dict[object, Any])
    _at_end: list[Callable[[], Awaitable[None]]] = field(default_factory=list[Callable[[], Awaitable[None]]])

    def at_end(self, release: Callable[[], Awaitable[None]]) -> None:
        """Have something released when no session of this user will follow."""
        self._at_end.append(release)

    async def forget(self) -> None:
        """Release what was kept; what cannot be released is logged, and the conversation is kept."""
        while self._at_end:
            try:
                with foreign_code():
                    await self._at_end.pop()()
            except Exception as error:
                log.warning(
                    "the stored data of user %s could not be removed: %s: %s", self.id, type(error).__name__, error
                )


def new_user(name: str | None, attempt: str, number: int) -> User:
    """Return a user of an attempt, the one with this number there; the id has plain letters, digits and dashes only."""
    known = name or "user"
    return User(known, f"{_OTHER.sub('-', known).strip('-') or 'user'}-{attempt}-{number}")


def new_attempt() -> str:
    """Return what tells the users of one attempt from those of all others."""
    return uuid.uuid4().hex[:12]


def knows_users(target: object) -> bool:
    """Say whether a target is told which user speaks, and so can know them again in a later session."""
    return getattr(target, "knows_users", False) is True


def cannot_return(name: str) -> str:
    """Return why sessions with a target say nothing about its memory."""
    return f"{name} is not told who speaks, so nobody can come back to it; sessions need {HOW_TO_KNOW}"


@dataclass(frozen=True, slots=True)
class Reply:
    """The reaction of a target to one user message: its assistant and tool messages in order, and their usage."""

    messages: list[AnyMessage]
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """The data that a target gets at the beginning of a conversation; `conversation_id` is new for every attempt.

    `state` is what the row says about the world that tools change, None where it says nothing; `tool_results` are its
    answers to calls of tools, and `approvals` what its user says to a tool that asks first. `said` are the texts that
    the row has the user say. `trial` counts from 0. `user` is who speaks where users come back in several sessions,
    else None.
    """

    conversation_id: str
    sample_id: str
    agent_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    extra_vars: Mapping[str, Any] = field(default_factory=dict[str, Any])
    state: Mapping[str, Any] | None = None
    tool_results: Mapping[str, Any] = field(default_factory=dict[str, Any])
    approvals: Any = None
    said: Sequence[str] = ()
    trial: int = 0
    user: User | None = None

    @property
    def variables(self) -> dict[str, Any]:
        """Its values for request templates."""
        row = {"id": self.sample_id, "extra_vars": dict(self.extra_vars), "agent_args": dict(self.agent_args)}
        return {"conversation_id": self.conversation_id, "user": self.user_id, "sample": row}

    @property
    def user_id(self) -> str:
        """The id of the user, or of this conversation if the user does not come back."""
        return self.conversation_id if self.user is None else self.user.id


class Session(Protocol):
    """One conversation with a target, isolated from others."""

    @property
    def id(self) -> str | None:
        """The target's id of this conversation, where it gives one."""
        ...

    @property
    def opening(self) -> Sequence[AnyMessage]:
        """The messages before the first user message, where the target gives them; it sends them itself."""
        ...

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Send the last message and return what the target did; the ones before it are the conversation so far.

        Raises:
            TargetFault: the target failed; `retryable` only where asking again cannot repeat a side effect.
        """
        ...

    async def state(self) -> dict[str, Any] | None:
        """Return the state of the target (memory blocks by label), None where it has none to show."""
        ...

    async def close(self) -> None:
        """End the conversation; called once, whatever happened before."""
        ...


class Target(Protocol):
    """A system under test; `name` tells its answers apart from those of other targets in a run.

    `stateless` targets get the whole conversation with each call, so a call may be repeated and a conversation forked.
    One that also has `knows_users = True` reads the `user` of an opening, and so can remember who comes back.
    """

    name: str
    stateless: bool

    async def open(self, opening: Opening) -> Session:
        """Begin a conversation."""
        ...

    async def close(self) -> None:
        """Release what all sessions shared."""
        ...


@runtime_checkable
class Returning(Protocol):
    """A session that has something to do before a conversation goes on that was held elsewhere."""

    async def go_on(self, messages: Sequence[AnyMessage]) -> None:
        """Make the world of the conversation what these messages left of it.

        Raises:
            SuiteFault: that cannot be told (kind `no_state`).
        """
        ...


def gets_conversation(target: Target) -> bool:
    """Return whether a target gets the whole conversation with each message, and keeps nothing of it itself."""
    return target.stateless or getattr(target, "gets_conversation", False) is True


def lacks_history(name: str) -> str:
    """Return why a target that keeps the conversation itself cannot go on from the history of a row."""
    return (
        f"{name} keeps the conversation itself and cannot be given a 'history'; use a target that gets the whole "
        "conversation with each message, or say the history again as 'input'"
    )


def read_reply(returned: object, source: str) -> Reply:
    """Read a text, a message (an object or a wire dict), a list of those, or a `Reply`.

    A list may hold tool calls, tool results and several assistant messages, in the order in which they happened.

    Raises:
        TargetFault: of kind `format`; the message begins with `source` and the evidence is what was returned.
    """
    if isinstance(returned, Reply):
        messages = cast("object", returned.messages)
        if isinstance(messages, list) and all(
            isinstance(message, AIMessage | ToolMessage) for message in cast("list[object]", messages)
        ):
            return returned
        raise _malformed(f"{source} returned a Reply with messages not from the assistant or tools", returned)
    if isinstance(returned, str):
        return Reply([said_by_assistant(returned)])
    if (shape := _foreign_shape(returned)) is not None:
        raise _malformed(f"{source} returned {shape}; {_NEEDED}", returned)
    if isinstance(returned, Message | dict) or role_of(returned) is not None:
        return Reply(_read_list([cast("Message", returned)], source))
    if not isinstance(returned, list | tuple):
        kind = "nothing (None)" if returned is None else f"something of type {type(returned).__name__}"
        raise _malformed(f"{source} returned {kind}; {_NEEDED}", returned)
    listed = cast("Sequence[object]", returned)
    for index, member in enumerate(listed):
        if (shape := _foreign_shape(member)) is not None:
            raise _malformed(f"{source} returned a list whose item {index} is {shape}; {_NEEDED}", listed)
    return Reply(_read_list(cast("Sequence[Message]", listed), source))


_OF_MESSAGE = ("role", "type", "content", "tool_calls")
"""Keys that an object needs one of to be read as a message."""
_NEEDED = "return a text, a message, or a list of messages; structured output is a text of JSON: json.dumps(value)"


def _foreign_shape(value: object) -> str | None:
    """Return in words what an object is that is not a message; None for a message and for anything but an object."""
    if not isinstance(value, dict):
        return None
    fields = cast("Mapping[object, object]", value)
    if not fields.keys().isdisjoint(_OF_MESSAGE):
        return None
    keys = shorten(", ".join(f"'{key}'" for key in fields), 100)
    return f"an object with the keys {keys}, which is not a message" if keys else "an empty object"


def _read_list(returned: Sequence[Message], source: str) -> list[AnyMessage]:
    try:
        messages = read_messages(returned)
    except (ValueError, TypeError) as error:
        raise _malformed(f"{source} returned something that is not a list of messages: {error}", returned) from error
    if not messages:
        raise _malformed(f"{source} returned an empty list; at least one message is needed", returned)
    for index, message in enumerate(messages):
        if not isinstance(message, AIMessage | ToolMessage):
            raise _malformed(
                f"{source} returned message {index} of role '{message.role}'; a reply has assistant and tool messages",
                returned,
            )
    return messages


def _malformed(text: str, returned: object) -> TargetFault:
    return TargetFault(text, kind="format", evidence=shorten(_shown(returned)))


def _shown(returned: object) -> str:
    """Return an object or a list as JSON, and as Python prints it what JSON cannot hold."""
    value: Any = returned
    try:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else repr(returned)
    except (TypeError, ValueError, RecursionError):
        return repr(returned)


_OURS = str(Path(__file__).parents[1])


def crash_of(name: str, error: BaseException, *, hint: str = "", so_far: str = "") -> TargetFault:
    """Return what the target called `name` raised as its fault.

    The evidence is the traceback within its own code, below the words of a reply that came `so_far`.
    """
    act = "cancelled its own task" if isinstance(error, asyncio.CancelledError) else f"raised {type(error).__name__}"
    said = f"{name} {act}{' in the middle of its reply' if so_far else ''}: {error}".removesuffix(": ")
    said = said.removesuffix(".") if hint else said
    frames = error.__traceback__
    while frames is not None and _is_ours(frames):
        frames = frames.tb_next
    evidence = "".join(traceback.format_exception(type(error), error, frames))
    came = f"what had come: {so_far[: EVIDENCE_LIMIT // 2]}\n\n" if so_far else ""
    evidence = came + evidence[len(came) - EVIDENCE_LIMIT :]
    return TargetFault(f"{said}{hint}", kind="crash", evidence=evidence)


def was_raised_here(error: BaseException) -> bool:
    """Return whether our own code raised an error, as it does where an object has not what it is asked for."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    return frames is not None and _is_ours(frames)


def _is_ours(frame: TracebackType) -> bool:
    return frame.tb_frame.f_code.co_filename.startswith(_OURS)


FIRST_TOKEN_KEY = "first_token"
"""The key in the metadata of the first assistant message of a turn, with the time in seconds."""


class FirstToken:
    """A clock that starts when it is made, and stops when the first piece comes."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.seconds: float | None = None
        self._pieces: list[str] = []

    def note_piece(self, piece: object = None) -> None:
        """Note that a piece came, and keep its words if it has some."""
        if self.seconds is None:
            self.seconds = time.perf_counter() - self._started
        if isinstance(piece, str):
            self._pieces.append(piece)

    @property
    def so_far(self) -> str:
        """The words that came."""
        return "".join(self._pieces)

    def noted_in(self, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
        """Return the messages of the turn, with the time in the first of the assistant, if there is any."""
        noted = list(messages)
        at = next((index for index, message in enumerate(noted) if isinstance(message, AIMessage)), None)
        if self.seconds is not None and at is not None:
            metadata = {**(noted[at].metadata or {}), FIRST_TOKEN_KEY: round(self.seconds, 6)}
            noted[at] = noted[at].model_copy(update={"metadata": metadata})
        return noted


class MadeCall(NamedTuple):
    """A call of a tool, who answered it, and whether that changed the state, or would have; None for unknown."""

    name: str
    arguments: Mapping[str, JsonValue]
    source: Source
    changed_state: bool | None


@dataclass(slots=True)
class World:
    """What the tools of one conversation find and change: the `state` of a row, and how often answers were given.

    `made` are the calls that were answered.
    """

    state: dict[str, Any] = field(default_factory=dict[str, Any])
    counts: Counter[str] = field(default_factory=Counter[str])
    made: list[MadeCall] = field(default_factory=list[MadeCall])

    def copy(self) -> World:
        """Return the same world apart from this one."""
        return World(copy.deepcopy(self.state), Counter(self.counts), list(self.made))


class ToolSession(Protocol):
    """The tools in one conversation; `offered` are their definitions, as a chat completions endpoint takes them."""

    @property
    def offered(self) -> Sequence[Mapping[str, Any]]:
        """The definitions of the tools."""
        ...

    @property
    def max_steps(self) -> int:
        """How many times in one turn calls are answered; 0 where nobody answers, so that a call ends the turn."""
        ...

    async def answer(self, call: ToolCall, history: Sequence[AnyMessage], world: World) -> ToolMessage:
        """Answer a call, the last of `history`; what the tool changes, it changes in `world`.

        Raises:
            SuiteFault: nobody answers it, or who should failed.
        """
        ...

    def state(self, world: World) -> dict[str, Any] | None:
        """Return the state of the row as the tools left it, None where that is not known."""
        ...

    async def close(self) -> None:
        """End what was begun for the conversation."""
        ...


class Tools(Protocol):
    """The tools of a target."""

    async def open(self, opening: Opening) -> ToolSession:
        """Begin a conversation.

        Raises:
            Fault: what answers cannot be reached, or the row asks for a tool that is not there.
        """
        ...


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """Tools that are only offered: a call of one ends the turn."""

    offered: Sequence[Mapping[str, Any]] = ()
    max_steps: int = 0

    async def open(self, opening: Opening) -> ToolSession:
        """Begin a conversation."""
        return self

    async def answer(self, call: ToolCall, history: Sequence[AnyMessage], world: World) -> ToolMessage:
        """Refuse.

        Raises:
            SuiteFault: always.
        """
        raise unanswered(call.name)

    def state(self, world: World) -> dict[str, Any] | None:
        """Return the state of the row, which nothing changes."""
        return world.state

    async def close(self) -> None:
        """Do nothing."""


def unanswered(name: str) -> SuiteFault:
    """Return the failure of a conversation that cannot go on without the answer to a call."""
    hint = f"give the target handlers: {{{name}: …}}, or the row tool_results: {{{name}: {{result: …}}}}"
    return SuiteFault(f"no handler answers the tool '{name}'; {hint}", kind="unanswered")
