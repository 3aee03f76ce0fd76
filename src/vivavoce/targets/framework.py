"""Frameworks of agents as systems under test: what we know of one, and how a conversation with it is held."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol, TypeVar, cast

from pydantic_core import to_jsonable_python

from vivavoce.errors import Fault, SuiteFault, TargetFault, UsageError, VivavoceError
from vivavoce.extensions import WITHOUT, is_built_in
from vivavoce.messages import AIMessage, AnyMessage, ToolMessage, said_by_assistant
from vivavoce.plugins import Registry
from vivavoce.records.score import Usage, reported_usage
from vivavoce.targets.target import FirstToken, Opening, Reply, crash_of, was_raised_here
from vivavoce.user_code import foreign_code, original_error
from vivavoce.wire.own_traffic import marked_spans

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a conversation begins with: its id, the name of the target, and how its object is run.

    With `stream` the framework is asked for the pieces of a reply. `options` are further keyword arguments of the
    method that runs the object.
    """

    conversation_id: str
    name: str
    stream: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Conversation(Protocol):
    """One conversation with an object of a framework."""

    @property
    def id(self) -> str | None:
        """The framework's id of the conversation, None where it has none."""
        ...

    async def send(self, messages: Sequence[AnyMessage], token: FirstToken) -> Reply:
        """Send the last message; `token` hears of the first piece of the reply where pieces come."""
        ...

    async def close(self) -> None:
        """Release what the conversation held."""
        ...


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework of agents.

    Attributes:
        title: its name.
        package: the distribution that it comes in.
        tried: the version that was tried.
        adapts: whether an object is one that can be asked, told by what it has; nothing is imported.
        open: begins a conversation with such an object, as `prepare` returned it.
        prepare: looks at an object once, given the name of the target, before the first conversation.
        streams: whether it can be asked for the pieces of a reply.
    """

    title: str
    package: str
    tried: str
    adapts: Callable[[Any], bool]
    open: Callable[[Any, Beginning], Awaitable[Conversation]]
    prepare: Callable[[Any, str], Any] = lambda thing, name: thing
    streams: bool = False

    @property
    def installed(self) -> str:
        """The name with the version that is installed."""
        try:
            return f"{self.title} {version(self.package)}"
        except PackageNotFoundError:
            return f"{self.title} of an unknown version"


def has(thing: object, *names: str) -> bool:
    """Return whether an object, which is not a class, has all these attributes."""
    return not isinstance(thing, type) and all(hasattr(thing, name) for name in names)


def text_of(messages: Sequence[AnyMessage], title: str) -> str:
    """Return the text of the last message.

    Raises:
        SuiteFault: it has something besides, which this framework is not given.
    """
    content = messages[-1].content
    if isinstance(content, list) and (other := next((part.type for part in content if part.type != "text"), None)):
        raise SuiteFault(f"an object of {title} takes only text, but the message has a part of type {other}")
    return messages[-1].text


def with_answer(messages: Sequence[AnyMessage], output: object) -> list[AnyMessage]:
    """Return the messages of a turn, and what it came to as their end where no message says it.

    An answer that is not a text, as one of a schema, is written as JSON.
    """
    said = list(messages)
    if output is None or (said and isinstance(said[-1], AIMessage) and said[-1].content and not said[-1].tool_calls):
        return said
    text = output if isinstance(output, str) else json.dumps(to_jsonable_python(output, fallback=str))
    return [*said, said_by_assistant(text)]


def of_target(messages: Iterable[AnyMessage]) -> list[AnyMessage]:
    """Return the messages that a reply is made of: those of the assistant and of tools."""
    return [message for message in messages if isinstance(message, AIMessage | ToolMessage)]


def waits_for(name: str, what: str) -> TargetFault:
    """Return the fault of a target that waits for a decision that nobody makes in a conversation."""
    hint = "decide it in a function that is the target, or let the tool act without being asked"
    return TargetFault(f"{name} waits for {what}, which a conversation cannot give; {hint}", kind="interrupted")


def usage_in(used: object, **names: str) -> Usage | None:
    """Return the usage in the fields of an object or a mapping, None where it says nothing.

    `names` are what it calls our `input_tokens`, `output_tokens`, `cached_input_tokens`, `reasoning_tokens`, and
    `calls`, with dots between the names of nested fields.
    """
    if used is None:
        return None
    found = {ours: value_in(used, theirs) for ours, theirs in names.items()}
    calls = found.pop("calls", None)
    if all(value is None for value in found.values()):
        return None
    keys = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")
    usage = reported_usage(*(found.get(key) for key in keys))
    return usage if usage is None or not isinstance(calls, int) else usage.model_copy(update={"calls": calls})


def value_in(thing: Any, path: str) -> Any:
    """Return what stands at a path of attributes or keys, None if there is nothing."""
    for name in path.split("."):
        is_mapping = isinstance(thing, Mapping)
        thing = cast("Mapping[str, Any]", thing).get(name) if is_mapping else getattr(thing, name, None)
        if thing is None:
            return None
    return thing


_frameworks: Registry[Framework] = Registry("framework", {}, admit="vivavoce.targets.framework:admit_framework")


def admit_framework(name: str, loaded: object, plugin: str) -> Framework:
    """Return what a plugin adds under a name, if it is a framework; an error of its functions names the plugin.

    Raises:
        UsageError: it is something else.
    """
    owner = f"the framework '{name}' of the plugin '{plugin}'"
    if not isinstance(loaded, Framework):
        raise UsageError(f"{owner} is a {type(loaded).__name__}; it must be a vivavoce.targets.framework.Framework")
    if is_built_in(plugin):
        return loaded
    return replace(loaded, adapts=_naming(owner, loaded.adapts), prepare=_naming(owner, loaded.prepare))


def _naming(owner: str, function: Callable[..., R]) -> Callable[..., R]:
    """Return a function of a plugin whose errors name their owner.

    Raises:
        UsageError: it raised something else than an error of ours.
    """

    def call(*arguments: Any) -> R:
        try:
            with foreign_code():
                return function(*arguments)
        except VivavoceError:
            raise
        except Exception as error:
            raise UsageError(f"{owner} failed: {type(error).__name__}: {' '.join(str(error).split())}") from error

    return call


def frameworks() -> Iterator[Framework]:
    """Yield every framework, in the order in which they are asked about an object."""
    return (framework for _, framework in _frameworks.entries(of_plugins=True))


def known_objects() -> str:
    """Return the objects that can be targets, in words."""
    known = ", ".join(framework.title for framework in frameworks())
    if off := _frameworks.switched_off():
        return f"an object of {known or 'a framework'} ({WITHOUT}={','.join(off)} switches off frameworks)"
    return f"an object of {known}"


def framework_of(thing: object) -> Framework | None:
    """Return the framework whose object this is, None if it is of none."""
    return next((framework for framework in frameworks() if framework.adapts(thing)), None)


class FrameworkTarget:
    """An object of a framework, known by its shape: see `docs/guides/frameworks.md` for which.

    Each conversation has its own thread, session or history in the framework. With `stream` the framework is asked for
    replies, so that the time to the first piece is recorded. `options` are further keyword arguments of the
    method that runs the object, such as `deps` of an agent of Pydantic AI. `framework` is detected unless it is given.

    Raises:
        UsageError: the framework of the object is unknown, or it does not stream.
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
            raise UsageError(f"stream: {self.name} uses {self.framework.title}, which does not stream replies")

    async def open(self, opening: Opening) -> FrameworkSession:
        """Begin a conversation.

        Raises:
            SuiteFault: the row has a state, which only a function can receive.
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
        """Do nothing: its owner closes it."""


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
        raise UsageError(f"{known_objects()} is needed, got a {type(thing).__name__}")
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
