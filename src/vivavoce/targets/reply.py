"""Reads the value that a target returned as the messages of one turn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from vivavoce.errors import TargetFault
from vivavoce.message_objects import role_of
from vivavoce.messages import AIMessage, AnyMessage, Message, ToolMessage, read_messages, said_by_assistant
from vivavoce.records.score import shorten
from vivavoce.targets.target import Reply


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
        raise _malformed(f"{source} returned a Reply whose messages are not all of assistant and tools", returned)
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
