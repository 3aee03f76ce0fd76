"""`LangChainTarget`: a LangChain runnable or a LangGraph graph under test, known by its shape; neither is imported."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

from vivavoce.errors import Fault, TargetFault, UsageError
from vivavoce.message_objects import role_of
from vivavoce.messages import AnyMessage
from vivavoce.pacing.waiting import in_thread
from vivavoce.records.failure import EVIDENCE_LIMIT
from vivavoce.records.usage import Usage
from vivavoce.targets.reply import read_reply
from vivavoce.targets.target import Opening, Reply

_OUTPUTS = ("output", "answer", "response", "result", "text", "content")
"""Keys under which chains give their answer."""


@runtime_checkable
class Runnable(Protocol):
    """What LangChain and LangGraph run: `invoke(input, config=…)`, and perhaps its async twin `ainvoke`."""

    invoke: Callable[..., Any]


class LangChainTarget:
    """A runnable that is asked by its `ainvoke`, or `invoke`.

    A chat model gets the conversation as messages. A chain gets the text of the last message under `input_key`, by
    default the one text that its schema of inputs requires, and the messages before it, or all where it wants no text,
    under the one key that is a list. A graph gets the messages under `state_key`, only the new one where it has a
    checkpointer. Every call has the id of the conversation as `thread_id` and `session_id` in its configuration.

    What is returned is a text, a message, messages, or a mapping with messages or an answer; of messages, those after
    the last one of the user count.

    Raises:
        UsageError: it is no runnable, or its inputs are not understood and no key is given.
    """

    def __init__(
        self,
        runnable: Runnable,
        name: str | None = None,
        *,
        input_key: str | None = None,
        state_key: str = "messages",
    ) -> None:
        if not isinstance(runnable, Runnable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"a runnable with invoke is needed, got a {type(runnable).__name__}")
        self.runnable = runnable
        own = getattr(runnable, "name", None)
        self.name = name or (own if isinstance(own, str) and own else type(runnable).__name__)
        graph = hasattr(runnable, "checkpointer")
        self.remembers = graph and bool(getattr(runnable, "checkpointer", None))
        self.text_key, self.list_key = (None, state_key) if graph else (input_key, None)
        if not graph and input_key is None:
            self.text_key, self.list_key = _keys(runnable, self.name)
        self.stateless = not self.remembers and (self.list_key is not None or self.text_key is None)

    async def open(self, opening: Opening) -> LangChainSession:
        """Begin a conversation."""
        return LangChainSession(self, opening.conversation_id)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def input_of(self, messages: Sequence[AnyMessage]) -> object:
        """Return what the runnable is given for a conversation."""
        wire = [message.to_wire() for message in (messages[-1:] if self.remembers else messages)]
        if self.text_key is None:
            return wire if self.list_key is None else {self.list_key: wire}
        text = {self.text_key: messages[-1].text}
        return text if self.list_key is None else {**text, self.list_key: wire[:-1]}


@dataclass(frozen=True, slots=True)
class LangChainSession:
    """One conversation with a runnable."""

    target: LangChainTarget
    id: str
    opening: Sequence[AnyMessage] = ()

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Run it.

        Raises:
            TargetFault: it raised (kind `crash`, the traceback as evidence), or returned no message (`format`).
        """
        target = self.target
        given, config = target.input_of(messages), {"configurable": {"thread_id": self.id, "session_id": self.id}}
        run = getattr(target.runnable, "ainvoke", None)
        try:
            if callable(run):
                returned = run(given, config=config)
            else:
                returned = await in_thread(partial(target.runnable.invoke, given, config=config))
            if inspect.isawaitable(returned):
                returned = await returned
        except Fault:
            raise
        except Exception as error:
            message = f"{target.name} raised {type(error).__name__}: {error}".removesuffix(": ")
            evidence = "".join(traceback.format_exception(error))[-EVIDENCE_LIMIT:]
            raise TargetFault(message, kind="crash", evidence=evidence) from error
        found = _answer(returned)
        reply = read_reply(found, target.name)
        return Reply(reply.messages, _usage(found))

    async def state(self) -> dict[str, Any] | None:
        """Return None: a runnable shows no state."""
        return None

    async def close(self) -> None:
        """Do nothing."""


def _keys(runnable: object, name: str) -> tuple[str | None, str | None]:
    """Return the keys of a text and of messages in the input of a runnable; two times None for messages as they are."""
    describe = getattr(runnable, "get_input_jsonschema", None)
    schema = cast("dict[str, Any]", describe() if callable(describe) else {})
    fields = cast("dict[str, dict[str, Any]]", schema.get("properties") or {})
    if schema.get("type") != "object" or not fields:
        return None, None
    lists = [key for key, one in fields.items() if one.get("type") == "array"]
    required = cast("Sequence[str]", schema.get("required") or fields)
    texts = [key for key in required if key not in lists]
    if len(texts) > 1 or len(lists) > 1:
        rule = "say with input_key which of them is the message, and fill the others before, as with partial()"
        raise UsageError(f"{name} takes {', '.join(fields)}; {rule}")
    return (texts[0] if texts else None), (lists[0] if lists else None)


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
    said = [cast("Mapping[str, int]", used) for one in listed if (used := getattr(one, "usage_metadata", None))]
    usages = [
        Usage(input_tokens=used.get("input_tokens", 0), output_tokens=used.get("output_tokens", 0), calls=1)
        for used in said
    ]
    return sum(usages, Usage()) if usages else None
