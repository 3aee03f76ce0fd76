"""Conversations written as the text of a file of any format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.exchange.agents import OF_AGENTS
from vivavoce.exchange.format import Format, Row
from vivavoce.exchange.formats import NATIVE
from vivavoce.exchange.loss import Loss
from vivavoce.messages import AnyMessage, ToolMessage, read_messages
from vivavoce.safe_text import encodable

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def texts(rows: Iterable[Row], format_: Format, loss: Loss) -> Iterator[str]:
    """Return the text of a file piece by piece.

    Raises:
        UsageError: the format is one that is read only.
    """
    if format_.write is None:
        raise UsageError(f"{format_.title} is a format that is read only")
    records = format_.write(rows if format_.name == NATIVE else _conversation_rows(rows, format_, loss), loss)
    return map(_text, records) if format_.document is None else iter([_text(format_.document(records))])


def _conversation_rows(rows: Iterable[Row], format_: Format, loss: Loss) -> Iterator[Row]:
    """Yield the rows that hold a conversation, with its messages in our shape."""
    for row in rows:
        loss.at(row)
        messages: object = row.get("messages")
        if not isinstance(messages, list):
            loss.dropped("row without a recorded conversation")
            continue
        try:
            read = read_messages(cast("list[Row]", messages))
        except ValueError as error:
            loss.broken(str(error))
        else:
            for index, message in enumerate(read if not format_.keeps_keys else ()):
                beside = {**(message.model_extra or {}), **({"session": message.session} if message.session else {})}
                loss.left_out(beside, beside, index)
            written = [_with_outcome(message) for message in read]
            unknown = () if format_.keeps_agents else OF_AGENTS
            unknown += () if format_.keeps_outcomes or format_.keeps_keys else ("outcome",)
            yield {**row, "messages": _without(written, unknown, loss)}


def _with_outcome(message: AnyMessage) -> Row:
    """Return a message as plain data; how a call ended is its `outcome`, whatever mark said so."""
    written = message.to_dict()
    if isinstance(message, ToolMessage) and (outcome := message.stated_outcome) is not None:
        written["outcome"] = outcome
    return written


def _without(messages: list[Row], keys: tuple[str, ...], loss: Loss) -> list[Row]:
    """Return messages without what a format cannot hold, and tell the report."""
    for index, message in enumerate(messages):
        loss.left_out(message, keys, index)
    return [{key: value for key, value in message.items() if key not in keys} for message in messages]


def _text(value: Any) -> str:
    return encodable(_ENCODE(value)) + "\n"
