"""Our own rows: the datasets of suites, and conversations for `viva judge`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from vivavoce.exchange.format import Format, Row
from vivavoce.exchange.loss import Loss
from vivavoce.exchange.records import Place, Record

_ROLES = ("system", "developer", "user", "assistant", "tool")
_ASKED = frozenset(("input", "prompt", "user_input", "goal"))
_PARTS = ("text", "image_url", "input_audio", "file", "refusal")


def is_native(value: Any) -> bool:
    """Return whether a record is a row of ours and nothing in it speaks for another format."""
    if not isinstance(value, Mapping):
        return False
    row = cast("Mapping[str, Any]", value)
    messages = row.get("messages")
    if messages is None:
        return any(_is_asked(row.get(key)) for key in _ASKED)
    return isinstance(messages, list) and all(map(is_native_message, cast("list[Any]", messages)))


def _is_asked(value: Any) -> bool:
    """Return whether a value is what a row may ask: a text, or texts and messages of a user one after the other."""
    if not isinstance(value, list):
        return isinstance(value, str) or is_native_message(value)
    return all(
        not isinstance(one, Mapping) or (cast("Row", one).get("role") == "user" and is_native_message(one))
        for one in cast("list[Any]", value)
    )


def is_native_message(value: Any) -> bool:
    """Return whether a value is a message of ours, in plain data."""
    if not isinstance(value, Mapping):
        return False
    message = cast("Mapping[str, Any]", value)
    content = message.get("content")
    if message.get("role") not in _ROLES or "parts" in message:
        return False
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        return all(isinstance(part, Mapping) and cast("Row", part).get("type") in _PARTS for part in parts)
    return content is None or isinstance(content, str)


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    for record in records:
        if record.fields is None:
            loss.broken("a row must be an object {…}")
        else:
            yield record.place, record.fields


def _write(rows: Iterable[Row], loss: Loss) -> Iterator[Row]:
    return iter(rows)


FORMAT = Format("vivavoce", "our own rows", lambda record: is_native(record.value), _read, _write)
