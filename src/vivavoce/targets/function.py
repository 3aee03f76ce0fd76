"""`FunctionTarget`: a Python function under test."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from vivavoce.errors import Fault, TargetFault, UsageError
from vivavoce.messages import AnyMessage
from vivavoce.pacing.waiting import in_thread
from vivavoce.records.failure import EVIDENCE_LIMIT
from vivavoce.targets.reply import read_reply
from vivavoce.targets.target import Opening, Reply

_NAMED = ("message", "messages", "conversation_id")


@dataclass(frozen=True, slots=True)
class _Taken:
    """Something a function takes, and the keyword for it; None for by position."""

    what: str
    keyword: str | None


class FunctionTarget:
    """A function, sync or async, that answers a user's message.

    It takes the text of the last message (its first parameter), or, as a parameter called `messages`, the whole
    conversation as a list of wire dicts; and a `conversation_id` where it has such a parameter. It returns a text, a
    message, a list of messages (tool calls and results among them), or a `Reply`. A sync function runs in a thread of
    its own, so that it may block, and one that hangs can be given up.

    Raises:
        UsageError: the function needs parameters that nobody fills.
    """

    stateless = False

    def __init__(self, function: Callable[..., object], name: str | None = None) -> None:
        if not callable(function):
            raise UsageError(f"a function target needs a function, got a {type(function).__name__}")
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.is_async = _is_async(function)
        self.function = function
        self.takes = _takes(function, self.name)

    async def open(self, opening: Opening) -> FunctionSession:
        """Begin a conversation."""
        return FunctionSession(self, opening.conversation_id)

    async def close(self) -> None:
        """Do nothing: the function holds what it holds."""


@dataclass(frozen=True, slots=True)
class FunctionSession:
    """One conversation with a function."""

    target: FunctionTarget
    id: str
    opening: Sequence[AnyMessage] = ()

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Call the function.

        Raises:
            TargetFault: it raised (kind `crash`, the traceback as evidence), or returned no message (`format`).
        """
        target = self.target
        call = self._call(messages)
        try:
            returned = call() if target.is_async else await in_thread(call)
            if inspect.isawaitable(returned):
                returned = await returned
        except Fault:
            raise
        except (Exception, SystemExit) as error:
            said = f"{target.name} raised {type(error).__name__}: {error}".removesuffix(": ")
            raise TargetFault(said, kind="crash", evidence=_their_traceback(error)) from error
        return read_reply(returned, target.name)

    async def state(self) -> dict[str, Any] | None:
        """Return None: a function does not tell what it remembers."""
        return None

    async def close(self) -> None:
        """Do nothing."""

    def _call(self, messages: Sequence[AnyMessage]) -> Callable[[], object]:
        args: list[object] = []
        kwargs: dict[str, object] = {}
        for taken in self.target.takes:
            if taken.what == "messages":
                value = [message.to_wire() for message in messages]
            else:
                value = messages[-1].text if taken.what == "message" else self.id
            if taken.keyword is None:
                args.append(value)
            else:
                kwargs[taken.keyword] = value
        return partial(self.target.function, *args, **kwargs)


def _is_async(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _takes(function: Callable[..., object], name: str) -> list[_Taken]:
    """Decide from the signature what the function is given.

    Raises:
        UsageError: it takes no message, or something that nobody fills.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise UsageError(f"{name}: its parameters cannot be read; wrap it in a function of your own") from error
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    whats = {p.name: p.name for p in named if p.name in _NAMED}
    if not whats.keys() & {"message", "messages"}:
        first = next((p for p in parameters if p.name not in _NAMED and p.kind is not p.VAR_KEYWORD), None)
        if first is None:
            raise UsageError(f"{name} takes no message; give it a parameter 'message' or 'messages'")
        whats[first.name] = "message"
    unfilled = [p.name for p in named if p.default is p.empty and p.name not in whats]
    if unfilled:
        raise UsageError(
            f"{name} needs {', '.join(unfilled)}, which nobody fills; a target takes 'message' or 'messages', "
            "and 'conversation_id'"
        )
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    return [_Taken(whats[p.name], None if p.kind in by_position else p.name) for p in parameters if p.name in whats]


def _their_traceback(error: BaseException) -> str:
    """Return the end of the traceback, without the frames of this file."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))[-EVIDENCE_LIMIT:]
