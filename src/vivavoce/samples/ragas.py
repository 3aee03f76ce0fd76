"""What Ragas calls the parts of a sample: the columns, and the messages and calls in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vivavoce.conversations.format import Row
from vivavoce.conversations.shapes import Message, arguments_of, fields_in, name_of, text_of

TYPES = {"user": "human", "assistant": "ai", "tool": "tool"}
"""The type of the message of each role."""
OLD_NAMES = {
    "question": "user_input",
    "answer": "response",
    "contexts": "retrieved_contexts",
    "ground_truth": "reference",
}
"""What Ragas 0.1 called columns."""


def new_name(column: str, row: Mapping[str, Any]) -> str:
    """Return the name of a column, for that of Ragas 0.1 the later one, unless the row has both."""
    name = OLD_NAMES.get(column, column)
    return column if name in row else name


def ragas_message(message: Message) -> Row:
    """Return a message of a person, the assistant or a tool as Ragas reads it.

    Raises:
        ValueError: the arguments of a call are not a JSON object.
    """
    row = {key: value for key, value in message.items() if key != "role"}
    row |= {"content": text_of(message.get("content")), "type": TYPES[message["role"]]}
    if message.get("tool_calls") is not None:
        row["tool_calls"] = [ragas_call(call) for call in message["tool_calls"]]
    return row


def ragas_call(call: Row) -> Row:
    """Return a call as Ragas reads it.

    Raises:
        ValueError: its arguments are not a JSON object.
    """
    args: Any = arguments_of(call)
    if not isinstance(args, dict):
        arguments_text = str(fields_in(call.get("function")).get("arguments"))
        raise ValueError(f"arguments of {name_of(call)} are not a JSON object: {arguments_text[:80]}")
    others = {key: value for key, value in call.items() if key not in ("type", "function")}
    return {**others, "name": name_of(call), "args": args}
