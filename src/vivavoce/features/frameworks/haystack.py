"""Haystack: an `Agent`, which gets the messages of the conversation, or a `Pipeline`.

Of a pipeline, each input that must be given gets the text of the last message where it is a text, and the messages of
the conversation where it is a list of messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from vivavoce.conversations.objects import plain
from vivavoce.errors import TargetFault, UsageError
from vivavoce.messages import AnyMessage, read_messages
from vivavoce.pacing.loops import in_thread
from vivavoce.plugins import lazy
from vivavoce.records.score import Usage, total
from vivavoce.targets.framework import (
    Beginning,
    Framework,
    has,
    of_target,
    text_of,
    usage_in,
    value_in,
    with_answer,
)
from vivavoce.targets.target import FirstToken, Reply

_TITLE = "Haystack"
_ANSWERS = ("messages", "replies", "last_message", "answers", "answer", "response", "output")
"""Outputs of components in which an answer is looked for, in this order."""

_MESSAGES = "ChatMessage"


@dataclass(frozen=True, slots=True)
class _Asked:
    """An agent, or a pipeline with the inputs that get the text and the messages: component and name of each."""

    thing: Any
    texts: Sequence[tuple[str, str]] = ()
    lists: Sequence[tuple[str, str]] = ()

    @property
    def is_agent(self) -> bool:
        return not (self.texts or self.lists)


def _is_pipeline(thing: object) -> bool:
    return has(thing, "run", "add_component", "inputs")


def _adapts(thing: object) -> bool:
    return _is_pipeline(thing) or has(thing, "run", "chat_generator", "exit_conditions")


def _prepared(thing: Any, name: str) -> _Asked:
    if not _is_pipeline(thing):
        return _Asked(thing)
    needed = [
        (component, key, str(about.get("type")))
        for component, inputs in thing.inputs().items()
        for key, about in inputs.items()
        if about.get("is_mandatory")
    ]
    lists = [(component, key) for component, key, kind in needed if _MESSAGES in kind]
    texts = [(component, key) for component, key, kind in needed if _may_be_text(kind)]
    others = [f"{component}.{key}" for component, key, _ in needed if (component, key) not in (*lists, *texts)]
    if others or not needed:
        rule = "it only gets a text and messages" if others else "no input has a place for a message"
        told = f"needs {', '.join(others)}" if others else "needs nothing"
        raise UsageError(f"the pipeline {name} {told}, and {rule}; run it in a function that is the target")
    return _Asked(thing, texts, lists)


def _may_be_text(kind: str) -> bool:
    return kind in ("<class 'str'>", "str", "typing.Any") or kind.startswith(("str |", "typing.Optional[str]"))


async def _open(asked: _Asked, beginning: Beginning) -> _Conversation:
    return _Conversation(asked, beginning)


@dataclass(slots=True)
class _Conversation:
    asked: _Asked
    beginning: Beginning
    history: list[Any] = field(default_factory=list[Any])

    @property
    def id(self) -> str:
        return self.beginning.conversation_id

    async def send(self, messages: Sequence[AnyMessage], token: FirstToken) -> Reply:
        text = text_of(messages, _TITLE)
        said = [*self.history, lazy("haystack.dataclasses:ChatMessage").from_user(text)]
        options = dict(self.beginning.options)
        if self.asked.is_agent:
            if self.beginning.stream:
                options["streaming_callback"] = partial(_came, token)
            returned = await self._run(partial(_keywords, messages=said, **options))
        else:
            data: dict[str, dict[str, Any]] = {}
            for component, key in self.asked.texts:
                data.setdefault(component, {})[key] = text
            for component, key in self.asked.lists:
                data.setdefault(component, {})[key] = said
            returned = await self._run(partial(_keywords, data=data, **options))
        new = _new(_answer(returned, self.beginning.name))
        self.history = [*said, *new]
        return Reply(_messages(new), total(map(_usage, new)))

    async def _run(self, keywords: partial[dict[str, Any]]) -> Any:
        """Run the object by its async method where it has no callback, which would have to be async as well."""
        given = keywords()
        if "streaming_callback" in given or not hasattr(self.asked.thing, "run_async"):
            return await in_thread(partial(self.asked.thing.run, **given))
        return await self.asked.thing.run_async(**given)

    async def close(self) -> None:
        """Nothing is held."""


def _came(token: FirstToken, piece: object) -> None:
    token.note_piece(getattr(piece, "content", None))


def _keywords(**given: Any) -> dict[str, Any]:
    return given


def _answer(returned: Any, name: str) -> list[Any]:
    """Return the messages or texts that an agent or the last component of a pipeline returned."""
    fields = cast("Mapping[str, Any]", returned)
    inner = [cast("Mapping[str, Any]", value) for value in fields.values() if isinstance(value, Mapping)]
    for key in _ANSWERS:
        for place in (*reversed(inner), fields):
            if (value := place.get(key)) is not None:
                return cast("list[Any]", value) if isinstance(value, list) else [value]
    outputs = ", ".join(fields) or "nothing"
    hint = f"an answer is looked for as {', '.join(_ANSWERS)}; run it in a function that is the target"
    raise TargetFault(f"{name} returned {outputs}; {hint}", kind="format")


def _new(answer: Sequence[Any]) -> list[Any]:
    """Return the messages after the last one of the user."""
    asked = [index for index, one in enumerate(answer) if value_in(one, "role.value") == "user"]
    return list(answer[asked[-1] + 1 :] if asked else answer)


def _messages(new: Sequence[Any]) -> list[AnyMessage]:
    """Return messages of Haystack as ours; a text, or an answer with its documents, as one of the assistant."""
    told: list[AnyMessage] = []
    for one in new:
        if hasattr(one, "to_openai_dict_format"):
            [message] = of_target(read_messages([one.to_openai_dict_format(require_tool_call_ids=False)])) or [None]
            has_failed = any(value_in(result, "error") is True for result in value_in(one, "tool_call_results") or ())
            told += [] if message is None else [message.model_copy(update={"outcome": "failed"} if has_failed else {})]
            continue
        text = one if isinstance(one, str) else value_in(one, "data") or plain(one)
        [said] = with_answer([], text)
        found = [document.content for document in getattr(one, "documents", None) or () if document.content]
        told.append(said.model_copy(update={"retrieval_context": found}) if found else said)
    return told


def _usage(message: Any) -> Usage | None:
    used = value_in(message, "meta.usage")
    return usage_in(
        used,
        input_tokens="prompt_tokens",
        output_tokens="completion_tokens",
        cached_input_tokens="prompt_tokens_details.cached_tokens",
        reasoning_tokens="completion_tokens_details.reasoning_tokens",
    )


FRAMEWORK = Framework(_TITLE, "haystack-ai", "3.4", _adapts, _open, prepare=_prepared, streams=True)
