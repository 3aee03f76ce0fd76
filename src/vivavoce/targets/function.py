"""`FunctionTarget`: a Python function under test."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType
from typing import Any, cast

from vivavoce.errors import Fault, TargetFault, UsageError
from vivavoce.messages import AnyMessage
from vivavoce.pacing.loops import in_thread
from vivavoce.plugins import lazy
from vivavoce.targets.target import Opening, Reply, Target, crash_of, read_reply
from vivavoce.user_code import foreign_code, name_of, original_error
from vivavoce.wire.own_traffic import marked_spans

_USER = "user"
"""A parameter for the id of the user; where it stands first and none is called `message`, it is for the message."""
_KNOWN_NAMES = ("message", "messages", "conversation_id", "state", _USER)


@dataclass(frozen=True, slots=True)
class _Parameter:
    """The value that a parameter gets, and its keyword; None for by position."""

    value: str
    keyword: str | None


class FunctionTarget:
    """A function, sync or async, that answers a user's message.

    It takes the text of the last message (its first parameter), or, as a parameter called `messages`, the whole
    conversation as a list of wire dicts; and, where it has such parameters, a `conversation_id`, the id of the `user`,
    which stays the same in all sessions of a user, and the `state` of the row, to be changed in place. It returns a
    text, a message, a list of messages (tool calls and results among them), or a `Reply`. A sync function runs in a
    thread of its own, so that it may block, and one that hangs can be given up.

    Raises:
        UsageError: the function needs parameters that are never filled.
    """

    stateless = False

    def __init__(self, function: Callable[..., object], name: str | None = None) -> None:
        if not callable(function):
            raise UsageError(f"a function target needs a function, got a {type(function).__name__}")
        if isinstance(function, type):
            raise UsageError(f"a function target needs a function, got the class {function.__name__} itself")
        self.name = name or name_of(function)
        self.is_async = _is_async(function)
        self.function = function
        self.parameters = _parameters_of(function, self.name)
        self.knows_users = any(parameter.value == _USER for parameter in self.parameters)

    @property
    def gets_conversation(self) -> bool:
        """Whether it is called with the whole conversation, and with nothing that identifies it."""
        values = {parameter.value for parameter in self.parameters}
        return "messages" in values and not values & {"conversation_id", "state"}

    async def open(self, opening: Opening) -> FunctionSession:
        """Begin a conversation."""
        world = copy.deepcopy(dict(opening.state or {}))
        has_state = opening.state is not None
        return FunctionSession(self, opening.conversation_id, opening.user_id, world=world, has_state=has_state)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


@dataclass(frozen=True, slots=True)
class FunctionSession:
    """One conversation with a function."""

    target: FunctionTarget
    id: str
    user: str
    opening: Sequence[AnyMessage] = ()
    world: dict[str, Any] = field(default_factory=dict[str, Any])
    has_state: bool = False

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Call the function.

        Raises:
            TargetFault: it raised (kind `crash`, the traceback as evidence), or returned no message (`format`).
        """
        target = self.target
        call = self._call(messages)
        try:
            with marked_spans(), foreign_code(raises_interrupts=True):
                returned = call() if target.is_async else await in_thread(call)
                if not isinstance(returned, str) and inspect.isawaitable(returned):
                    returned = await returned
        except Fault:
            raise
        except Exception as error:
            raised = original_error(error)
            raise crash_of(target.name, raised) from raised
        return read_reply(returned, target.name)

    async def state(self) -> dict[str, Any] | None:
        """Return the state of the row as the function left it, None where the row has none.

        Raises:
            TargetFault: it holds something that JSON does not have.
        """
        if not self.has_state:
            return None
        try:
            json.dumps(self.world, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TargetFault(
                f"{self.target.name} put a value into the state that JSON cannot represent: {error}"
            ) from error
        return self.world

    async def close(self) -> None:
        """Do nothing."""

    def _call(self, messages: Sequence[AnyMessage]) -> Callable[[], object]:
        args: list[object] = []
        kwargs: dict[str, object] = {}
        for parameter in self.target.parameters:
            value = self._value(parameter.value, messages)
            if parameter.keyword is None:
                args.append(value)
            else:
                kwargs[parameter.keyword] = value
        return partial(self.target.function, *args, **kwargs)

    def _value(self, name: str, messages: Sequence[AnyMessage]) -> object:
        match name:
            case "messages":
                return [message.to_wire() for message in messages]
            case "message":
                return messages[-1].text
            case "state":
                return self.world
            case "user":
                return self.user
            case _:
                return self.id


def _is_async(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _parameters_of(function: Callable[..., object], name: str) -> list[_Parameter]:
    """Return the parameters that the function is called with, by its signature.

    Raises:
        UsageError: it takes no message, or needs a parameter that is never filled.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise UsageError(f"{name}: its parameters cannot be read; wrap it in a function of your own") from error
    fillable = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    values = {p.name: p.name for p in fillable if p.name in _KNOWN_NAMES}
    if not values.keys() & {"message", "messages"}:
        known = _KNOWN_NAMES[:-1] if parameters and parameters[0].name == _USER else _KNOWN_NAMES
        first = next((p for p in parameters if p.name not in known and p.kind is not p.VAR_KEYWORD), None)
        if first is None:
            raise UsageError(f"{name} takes no message; give it a parameter 'message' or 'messages'")
        values[first.name] = "message"
    unfilled = [p.name for p in fillable if p.default is p.empty and p.name not in values]
    if unfilled:
        raise UsageError(
            f"{name} needs {', '.join(unfilled)}, which are never filled; a target takes 'message' or 'messages', "
            "'conversation_id', 'user' and 'state'"
        )
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    return [
        _Parameter(values[p.name], None if p.kind in by_position else p.name) for p in parameters if p.name in values
    ]


def as_target(thing: object, name: str | None = None, *, stream: bool = False) -> Target:
    """Return what is given as a target called `name`, by default as it calls itself.

    With `stream` the framework of an object is asked for the pieces of a reply.

    Raises:
        UsageError: it is neither a function, nor an object of a framework that is known, nor a target; or it gives no
            pieces.
    """
    if not isinstance(thing, type):
        if callable(getattr(thing, "open", None)) and isinstance(getattr(thing, "name", None), str):
            return _called(cast("Target", thing), name, stream=stream)
        framework = None if _is_plain(thing) else lazy("vivavoce.targets.framework:framework_of")(thing)
        if framework is not None:
            made = lazy("vivavoce.targets.framework:FrameworkTarget")
            return cast("Target", made(thing, name, stream=stream, framework=framework))
    if not callable(thing):
        known = lazy("vivavoce.targets.framework:known_objects")()
        raise UsageError(f"a function is needed, or {known}; got a {type(thing).__name__}")
    if stream:
        raise UsageError("stream: a function returns its whole reply; use stream with an object of a framework")
    return FunctionTarget(cast("Any", thing), name)


def _is_plain(thing: object) -> bool:
    """Return whether a thing is called as it is, and no framework need be asked about it."""
    return isinstance(thing, FunctionType | MethodType | partial)


def _called(target: Target, name: str | None, *, stream: bool) -> Target:
    if stream:
        raise UsageError(f"stream: set it where the target {target.name} is created")
    if name is None or name == target.name:
        return target
    named = copy.copy(target)
    named.name = name
    return named
