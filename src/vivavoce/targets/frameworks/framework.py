"""What we know of a framework: which of its objects are targets, and how a conversation with one is held."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol, cast

from pydantic_core import to_jsonable_python

from vivavoce.errors import SuiteFault, TargetFault
from vivavoce.messages import AIMessage, AnyMessage, ToolMessage, said_by_assistant
from vivavoce.plugins import lazy
from vivavoce.records.score import Usage, reported_usage
from vivavoce.targets.target import FirstToken, Reply


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


_MODULES = (
    *("openai_agents", "pydantic_ai", "crewai", "google_adk", "autogen", "llama_index", "haystack"),
    "langchain",
)


def frameworks() -> Iterator[Framework]:
    """Yield every framework."""
    return (cast("Framework", lazy(f"vivavoce.targets.frameworks.{module}:FRAMEWORK")) for module in _MODULES)


def framework_of(thing: object) -> Framework | None:
    """Return the framework whose object this is, None if it is of none."""
    return next((framework for framework in frameworks() if framework.adapts(thing)), None)
