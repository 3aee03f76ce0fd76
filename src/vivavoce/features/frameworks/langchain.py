"""LangChain and LangGraph: a runnable or a graph, known by its shape; neither is imported.

A graph with a checkpointer remembers each conversation as a thread, and gets the new message alone. What it interrupts
itself for is what it says, and the next message resumes it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from inspect import isawaitable
from typing import Any, Protocol, cast, get_type_hints, runtime_checkable

from pydantic_core import to_jsonable_python

from vivavoce.errors import UsageError
from vivavoce.langchain_messages import role_of
from vivavoce.messages import AnyMessage, said_by_assistant
from vivavoce.pacing.loops import in_thread
from vivavoce.plugins import lazy
from vivavoce.records.score import Usage, total
from vivavoce.targets.framework import Beginning, Framework, FrameworkTarget, has, usage_in
from vivavoce.targets.target import FirstToken, Reply, read_reply

_OUTPUTS = ("output", "answer", "response", "result", "text", "content")
"""Keys under which chains give their answer."""

_INTERRUPTS = "__interrupt__"
_MODES = ("messages", "values")
_WHICH = "make a LangChainTarget of it and say with input_key which of them is the message"


@runtime_checkable
class Runnable(Protocol):
    """What LangChain and LangGraph run: `invoke(input, config=…)`, and perhaps its async twin `ainvoke`."""

    invoke: Callable[..., Any]


class LangChainTarget(FrameworkTarget):
    """A runnable that is asked by its `ainvoke`, or `invoke`.

    A chat model gets the conversation as messages. A chain gets the text of the last message under `input_key`, by
    default the one text that its input schema requires, and the messages before it, or all if it takes no text, under
    the one key that is a list. A graph gets the messages under `state_key`, only the new one where it has a
    checkpointer; one whose state has no such key gets the text as a chain does. Every call has the id of the
    conversation as `thread_id` and `session_id` in its configuration.

    It returns a text, a message, messages, or a mapping with messages or an answer; of messages, those after the user's
    last one count. `stream` and `options` are those of `FrameworkTarget`.

    Raises:
        UsageError: it is not a runnable, or its inputs are not understood and no key is given.
    """

    def __init__(
        self,
        runnable: Runnable,
        name: str | None = None,
        *,
        input_key: str | None = None,
        state_key: str = "messages",
        stream: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(runnable, Runnable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"expected a runnable with invoke, got a {type(runnable).__name__}")
        prepare = partial(_prepared, input_key=input_key, state_key=state_key)
        super().__init__(runnable, name, stream=stream, options=options, framework=_framework(prepare))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A runnable, and where in its input the text of a message and the messages belong."""

    runnable: Any
    text_key: str | None
    list_key: str | None
    remembers: bool

    @property
    def stateless(self) -> bool:
        """Whether it gets the whole conversation with each call."""
        return not self.remembers and (self.list_key is not None or self.text_key is None)

    def input_of(self, messages: Sequence[AnyMessage]) -> object:
        """Return what the runnable is given for a conversation."""
        wire = [message.to_wire() for message in (messages[-1:] if self.remembers else messages)]
        if self.text_key is None:
            return wire if self.list_key is None else {self.list_key: wire}
        text = {self.text_key: messages[-1].text}
        return text if self.list_key is None else {**text, self.list_key: wire[:-1]}


def _adapts(thing: object) -> bool:
    return has(thing, "invoke") and not callable(thing)


def _prepared(runnable: Any, name: str, input_key: str | None = None, state_key: str = "messages") -> _Asked:
    text_key, list_key = input_key, None
    if input_key is None:
        is_graph = hasattr(runnable, "checkpointer")
        text_key, list_key = _keys_of_graph(runnable, name, state_key) if is_graph else _keys(runnable, name)
    return _Asked(runnable, text_key, list_key, remembers=bool(getattr(runnable, "checkpointer", None)))


async def _open(asked: _Asked, beginning: Beginning) -> _Conversation:
    return _Conversation(asked, beginning)


@dataclass(slots=True)
class _Conversation:
    asked: _Asked
    beginning: Beginning
    is_interrupted: bool = False
    told: set[str] = field(default_factory=set[str])
    """The ids of the messages that were told already: an interrupted graph returns them once more."""

    @property
    def id(self) -> str:
        return self.beginning.conversation_id

    async def send(self, messages: Sequence[AnyMessage], token: FirstToken) -> Reply:
        given = self.asked.input_of(messages)
        if self.is_interrupted:
            given = lazy("langgraph.types:Command")(resume=messages[-1].text)
        own = self.beginning.options
        config = cast("Mapping[str, Any]", own.get("config") or {})
        ids = {"thread_id": self.id, "session_id": self.id, **config.get("configurable", {})}
        options = {**own, "config": {**config, "configurable": ids}}
        returned = await (self._streamed(given, options, token) if self.beginning.stream else self._run(given, options))
        interrupts = _interrupts(returned)
        self.is_interrupted = bool(interrupts)
        found = self._new(_answer(returned))
        reply = Reply([]) if interrupts and found == [] else read_reply(found, self.beginning.name)
        return Reply([*reply.messages, *map(said_by_assistant, interrupts)], _usage(found))

    async def _run(self, given: object, options: dict[str, Any]) -> object:
        run = getattr(self.asked.runnable, "ainvoke", None)
        if callable(run):
            returned = run(given, **options)
        else:
            returned = await in_thread(partial(self.asked.runnable.invoke, given, **options))
        return await returned if isawaitable(returned) else returned

    async def _streamed(self, given: object, options: dict[str, Any], token: FirstToken) -> object:
        """Return what the pieces are together; of a graph, its last state."""
        if not hasattr(self.asked.runnable, "checkpointer"):
            pieces = cast("AsyncIterator[Any]", self.asked.runnable.astream(given, **options))
            whole: Any = None
            async for piece in pieces:
                token.note_piece(getattr(piece, "content", piece))
                whole = piece if whole is None else whole + piece
            return whole
        state: Any = None
        async for mode, piece in self.asked.runnable.astream(given, stream_mode=list(_MODES), **options):
            if mode == "values":
                state = piece
            elif role_of(piece[0]) == "assistant":
                token.note_piece(getattr(piece[0], "content", None))
        return state

    async def close(self) -> None:
        """Nothing is held."""

    def _new(self, found: object) -> object:
        """Return the answer without the messages that were told before an interruption."""
        if not isinstance(found, list):
            return found
        listed = cast("list[object]", found)
        new = [one for one in listed if (identity := getattr(one, "id", None)) is None or identity not in self.told]
        self.told |= {identity for one in new if isinstance(identity := getattr(one, "id", None), str)}
        return new


def _interrupts(returned: object) -> list[str]:
    """Return what a graph interrupts itself for, as texts."""
    waiting = cast("Mapping[str, Any]", returned).get(_INTERRUPTS) if isinstance(returned, Mapping) else None
    values = [getattr(one, "value", one) for one in cast("Sequence[object]", waiting or ())]
    return [
        value if isinstance(value, str) else json.dumps(to_jsonable_python(value, fallback=str)) for value in values
    ]


def _keys(runnable: object, name: str) -> tuple[str | None, str | None]:
    """Return the keys of a text and of messages in the input of a runnable; two times None for messages as they are."""
    describe = getattr(runnable, "get_input_jsonschema", None)
    schema: dict[str, Any] = {}
    with suppress(Exception):  # it is of the user's types, of which some have no schema
        schema = cast("dict[str, Any]", describe() if callable(describe) else {})
    fields = cast("dict[str, dict[str, Any]]", schema.get("properties") or {})
    if schema.get("type") != "object" or not fields:
        return None, None
    lists = [key for key, one in fields.items() if one.get("type") == "array"]
    required = cast("Sequence[str]", schema.get("required") or fields)
    texts = [key for key in required if key not in lists]
    if len(texts) > 1 or len(lists) > 1:
        raise UsageError(f"{name} takes {', '.join(fields)}; {_WHICH}, and fill the others before, as with partial()")
    return (texts[0] if texts else None), (lists[0] if lists else None)


def _keys_of_graph(graph: Any, name: str, state_key: str) -> tuple[str | None, str | None]:
    """Return the same of a graph: the key of its messages, or else the only one of a text."""
    try:
        fields = get_type_hints(graph.builder.input_schema)
    except (AttributeError, NameError, TypeError):  # it has no state of named fields, or types of another module
        return None, state_key
    if state_key in fields or not fields:
        return None, state_key
    texts = [key for key, kind in fields.items() if kind is str]
    if len(texts) != 1:
        raise UsageError(f"{name} takes {', '.join(fields)}; {_WHICH}, or with state_key which are the messages")
    return texts[0], None


def _answer(returned: object) -> object:
    """Return the answer in what a runnable returned: its new messages, or a text."""
    if isinstance(returned, Mapping):
        fields = cast("Mapping[str, object]", returned)
        key = next((key for key in ("messages", *_OUTPUTS) if fields.get(key) is not None), None)
        return fields if key is None else _answer(fields[key])
    if isinstance(returned, list | tuple):
        messages = cast("Sequence[object]", returned)
        asked = [index for index, message in enumerate(messages) if _is_of_user(message)]
        return list(messages[asked[-1] + 1 :]) if asked else list(messages)
    return [returned] if role_of(returned) is not None else returned


def _is_of_user(message: object) -> bool:
    role = cast("Mapping[str, object]", message).get("role") if isinstance(message, Mapping) else role_of(message)
    return role == "user"


def _usage(found: object) -> Usage | None:
    """Return what messages say that they used, None where none says it."""
    listed = cast("Sequence[object]", found) if isinstance(found, list) else ()
    return total(
        usage_in(
            getattr(one, "usage_metadata", None),
            input_tokens="input_tokens",
            output_tokens="output_tokens",
            cached_input_tokens="input_token_details.cache_read",
            reasoning_tokens="output_token_details.reasoning",
        )
        for one in listed
    )


def _framework(prepare: Callable[[Any, str], _Asked]) -> Framework:
    return Framework("LangChain or LangGraph", "langgraph", "1.2", _adapts, _open, prepare=prepare, streams=True)


FRAMEWORK = _framework(_prepared)
