"""Formats whose records are conversations: an object with a list of messages, the list itself, or a message each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from vivavoce.comparing.text import join_text_parts
from vivavoce.conversations.format import ROW_FIELDS, Format, Loss, Place, Record, Row

Items = list[Any]
Message = dict[str, Any]
"""A message in our shape, as plain data."""


class Unreadable(ValueError):
    """A conversation cannot be read; the text says why in one line."""


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of one format and how they become ours.

    Attributes:
        name: the name of the format.
        title: the format in words.
        keys: where an object keeps its list of messages; the writer uses the first.
        is_certain: whether an item is a message that only this format writes so.
        is_message: whether an item may be a message of this format.
        read: returns our messages of items; the object around them, of which it may take keys out, is the second.
        write: returns the members of an object that holds our messages.
        keeps_outcomes: whether the writer states how calls ended.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    is_certain: Callable[[Any], bool]
    is_message: Callable[[Any], bool]
    read: Callable[[Items, Row, Loss], list[Message]]
    write: Callable[[list[Message], Loss], Row] | None = None
    keeps_outcomes: bool = False

    def format(self) -> Format:
        """Return the format of files with such messages."""
        write = self._write if self.write else None
        return Format(self.name, self.title, self._fits, self._read, write, keeps_outcomes=self.keeps_outcomes)

    def items_of(self, value: Any) -> Items | None:
        """Return the list of messages of a record, None if it has none."""
        if isinstance(value, list):
            return cast("Items", value)
        if not isinstance(value, Mapping):
            return None
        held = cast("Mapping[str, Any]", value)
        found = (held[key] for key in self.keys if isinstance(held.get(key), list))
        return next(found, None)

    def _fits(self, record: Record) -> bool:
        items = self.items_of(record.value)
        if items is None:
            return self.is_certain(record.value)
        return any(map(self.is_certain, items)) and all(map(self.is_message, items))

    def _read(self, records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
        said: Items = []  # messages that are records of their own: the conversation of a whole file
        began: Place | None = None
        for record in records:
            items = self.items_of(record.value)
            if items is None and self.is_message(record.value):
                if began is not None and began.file != record.place.file:
                    yield from self._row(began, said, {}, loss)
                    said, began = [], None
                began = began or record.place
                said.append(record.value)
            elif items is None:
                loss.broken(f"no messages of {self.title} in a record")
            else:
                yield from self._row(record.place, items, record.fields or {}, loss)
        if began is not None:
            yield from self._row(began, said, {}, loss)

    def _row(self, place: Place, items: Items, beside: Row, loss: Loss) -> Iterator[tuple[Place, Row]]:
        key = next((key for key in self.keys if isinstance(beside.get(key), list)), None)
        rest = {name: value for name, value in beside.items() if name != key}
        loss.line = place.line
        loss.at(rest)
        try:
            messages = self.read(items, rest, loss)
        except Unreadable as error:
            loss.broken(str(error))
            return
        yield place, row_of(messages, rest)

    def _write(self, rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
        assert self.write is not None
        for row in rows:
            loss.at(row)
            members = self.write(cast("list[Message]", row["messages"]), loss)
            yield {**{name: value for name, value in row.items() if name != "messages"}, **members}


def row_of(messages: list[Message], beside: Mapping[str, Any]) -> Row:
    """Return a row of messages; what stands next to them and is not a field of a row goes into the metadata."""
    row = {name: value for name, value in beside.items() if name in ROW_FIELDS and name != "metadata"}
    others = {name: value for name, value in beside.items() if name not in ROW_FIELDS}
    known: object = beside.get("metadata")
    if isinstance(known, Mapping):
        others = {**others, **cast("Mapping[str, Any]", known)}
    elif known is not None:
        others["metadata"] = known
    row["messages"] = messages
    if others:
        row["metadata"] = others
    return row


def set_aside(message: Message, format_name: str, values: Mapping[str, Any]) -> None:
    """Keep in the metadata of a message, under the name of the format, what ours cannot hold."""
    if values:
        metadata = message.setdefault("metadata", {})
        metadata[format_name] = {**metadata.get(format_name, {}), **values}


def taken_back(message: Mapping[str, Any], format_name: str) -> Row:
    """Return what `set_aside` kept for this format."""
    metadata: object = message.get("metadata")
    return dict(cast("Row", metadata).get(format_name) or {}) if isinstance(metadata, dict) else {}


def difference(written: Row, original: Mapping[str, Any]) -> Row:
    """Return what a writer needs in addition to our message, to write what was read instead of `written`."""
    kept: Row = {}
    if other := {key: value for key, value in original.items() if key not in written or written[key] != value}:
        kept["fields"] = other
    if absent := [key for key in written if key not in original]:
        kept["absent"] = absent
    return kept


def restored(written: Row, kept: Mapping[str, Any]) -> Row:
    """Return what was read: what would be written, changed by what `difference` returned."""
    absent = cast("list[str]", kept.get("absent") or [])
    whole: Row = {**written, **cast("Row", kept.get("fields") or {})}
    return {key: value for key, value in whole.items() if key not in absent}


class Between:
    """Items between messages: they are kept in the metadata of the next message, at the end in that of the last."""

    def __init__(self, format_name: str) -> None:
        self._name, self._waiting = format_name, list[Any]()

    def add(self, item: Any) -> None:
        """Keep an item for the next message."""
        self._waiting.append(item)

    def give_to(self, message: Message, key: str = "before") -> None:
        """Put what waits into the metadata of a message."""
        if self._waiting:
            set_aside(message, self._name, {key: self._waiting})
            self._waiting = []

    def end(self, messages: list[Message]) -> None:
        """Put what still waits into the metadata of the last message, if there is any."""
        if messages:
            self.give_to(messages[-1], "after")


def text_of(content: Any) -> str:
    """Return the text of a message's content: its text parts, concatenated."""
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    texts = (cast("Row", part).get("text") for part in parts if isinstance(part, dict))
    return join_text_parts(text for text in texts if isinstance(text, str))
