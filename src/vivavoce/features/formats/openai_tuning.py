"""OpenAI's files for fine-tuning: conversations to imitate, and pairs of a better and a worse turn.

Source: the guides on supervised fine-tuning and on direct preference optimization in OpenAI's documentation. The roles
in the outputs of a pair are assistant and tool; the last message is the assistant's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from vivavoce.conversations.format import Format, Loss, Record, Row
from vivavoce.conversations.messages_of_formats import Message
from vivavoce.features.formats.labelled import good, pairs

_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal")


def wire(messages: list[Message]) -> list[Message]:
    """Return messages with the keys that OpenAI's files have."""
    return [{key: message[key] for key in _KEYS if key in message} for message in messages]


def tools_of(row: Row) -> dict[str, list[Row]]:
    """Return the descriptions of tools that are kept with a conversation, as they stand next to messages."""
    metadata: object = row.get("metadata")
    tools: object = cast("Row", metadata).get("tools") if isinstance(metadata, dict) else None
    listed = cast("list[Any]", tools) if isinstance(tools, list) else []
    found = [cast("Row", one) for one in listed if isinstance(one, dict)]
    return {"tools": found} if found else {}


def _write(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for row, messages in good(rows, loss):
        yield {"messages": wire(messages), **tools_of(row)}


def _write_pairs(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for pair in pairs(rows, loss):
        yield {
            "input": {"messages": wire(pair.before), "tools": [], "parallel_tool_calls": True, **tools_of(pair.row)},
            "preferred_output": wire(pair.preferred),
            "non_preferred_output": wire(pair.other),
        }


def fits_none(record: Record) -> bool:
    """Return that no record is of a format that is written only."""
    return False


TUNING = Format("openai-tuning", "OpenAI supervised fine-tuning", fits_none, None, _write)
PREFERENCE = Format("openai-preference", "OpenAI preference optimization", fits_none, None, _write_pairs)
