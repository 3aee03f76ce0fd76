"""`FrameworkTarget`: an agent, a graph, a crew or a pipeline of a framework under test."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from vivavoce.errors import Fault, SuiteFault, TargetFault, UsageError
from vivavoce.exchange.own_traffic import marked_spans
from vivavoce.messages import AnyMessage
from vivavoce.targets.frameworks.framework import Beginning, Conversation, Framework, framework_of, frameworks
from vivavoce.targets.target import FirstToken, Opening, Reply, crash_of, was_raised_here
from vivavoce.user_code import foreign_code, original_error

T = TypeVar("T")


class FrameworkTarget:
    """An object of a framework, known by its shape: see `docs/guides/frameworks.md` for which.

    Each conversation has its own thread, session or history in the framework. With `stream` the framework is asked for
    the pieces of a reply, so that the time to the first is recorded. `options` are further keyword arguments of the
    method that runs the object, such as `deps` of an agent of Pydantic AI. `framework` is found out unless it is given.

    Raises:
        UsageError: the object is of no framework that is known, or the framework has no pieces.
    """

    def __init__(
        self,
        thing: object,
        name: str | None = None,
        *,
        stream: bool = False,
        options: Mapping[str, Any] | None = None,
        framework: Framework | None = None,
    ) -> None:
        self.framework = framework or _framework(thing)
        self.name = name or _name_of(thing)
        self.prepared: Any = self.framework.prepare(thing, self.name)
        self.stateless: bool = getattr(self.prepared, "stateless", False) is True
        self.stream, self.options = stream, dict(options or {})
        if stream and not self.framework.streams:
            raise UsageError(f"stream: {self.name} is of {self.framework.title}, which does not stream replies")

    async def open(self, opening: Opening) -> FrameworkSession:
        """Begin a conversation.

        Raises:
            SuiteFault: the row has a state, which only a function can be told.
            TargetFault: the framework failed.
        """
        if opening.state is not None:
            hint = "make it in a function that takes 'state' and returns it, and name that function"
            raise SuiteFault(
                f"state: {self.name} is an object of {self.framework.title}, which does not receive it; {hint}"
            )
        beginning = Beginning(opening.conversation_id, self.name, self.stream, self.options)
        return FrameworkSession(self, await _theirs(self, self.framework.open(self.prepared, beginning)))

    async def close(self) -> None:
        """Do nothing: the object is its owner's."""


@dataclass(frozen=True, slots=True)
class FrameworkSession:
    """One conversation with an object of a framework."""

    target: FrameworkTarget
    conversation: Conversation
    opening: Sequence[AnyMessage] = ()

    @property
    def id(self) -> str | None:
        """The framework's id of the conversation."""
        return self.conversation.id

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Run the object.

        Raises:
            TargetFault: it raised (kind `crash`), or it returned what is not understood (kind `format`).
        """
        token = FirstToken()
        with marked_spans():
            reply = await _theirs(self.target, self.conversation.send(messages, token), token)
        if not reply.messages:
            raise TargetFault(f"{self.target.name} said nothing and called no tool", kind="format")
        return Reply(token.noted_in(reply.messages), reply.usage)

    async def state(self) -> dict[str, Any] | None:
        """Return None: what a framework remembers is not shown."""
        return None

    async def close(self) -> None:
        """Release what the conversation held."""
        await _theirs(self.target, self.conversation.close())


def _framework(thing: object) -> Framework:
    found = framework_of(thing)
    if found is None:
        known = ", ".join(framework.title for framework in frameworks())
        raise UsageError(f"an object of {known} is needed, got a {type(thing).__name__}")
    return found


def _name_of(thing: object) -> str:
    own = getattr(thing, "name", None)
    return own if isinstance(own, str) and own else type(thing).__name__


async def _theirs(target: FrameworkTarget, running: Awaitable[T], token: FirstToken | None = None) -> T:
    """Wait for the framework; whatever it raises is the fault of the target, base exceptions of its own too.

    The words of a reply that had come by then are part of the evidence.
    What our own code raises over its objects says that they are not those of the version that was tried.
    """
    try:
        with foreign_code(raises_interrupts=True):
            return await running
    except Fault:
        raise
    except Exception as broken:
        error = original_error(broken)
        if not was_raised_here(error):
            so_far = "" if token is None else token.so_far
            raise crash_of(target.name, error, hint=_hint(error), so_far=so_far) from error
        framework = target.framework
        message = (
            f"{target.name} is of {framework.installed}, which is not understood as {framework.tried} was: "
            f"{type(error).__name__}: {error}; name a function as the target instead, which calls it and returns a text"
        )
        raise TargetFault(message, kind="format", evidence=crash_of(target.name, error).evidence) from error


def _hint(error: BaseException) -> str:
    """Return what to do about an event loop that is not the framework's own."""
    text = str(error).lower()
    if "event loop" not in text and "can't patch loop" not in text:
        return ""
    return "; it wants an event loop of its own: name a function as the target, which runs it by its sync method"
