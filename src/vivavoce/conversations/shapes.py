"""What readers and writers of formats share: values of foreign records, and messages in our shape as plain data.

The records of many formats are conversations: an object with a list of messages, the list itself, or a message each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from vivavoce.comparing.call_outcomes import CallOutcome
from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.comparing.text import join_text_parts
from vivavoce.conversations.format import ROW_FIELDS, Format, Loss, Place, Record, Row

_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""From where on a number counts nanoseconds, microseconds, milliseconds, and how many of them a second has."""
_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC).timestamp()
"""Before it, a time is a clock that was never set."""


def seconds(value: Any) -> float | None:
    """Return a time as seconds since 1970; None for anything else, and for 0, which was never set."""
    if isinstance(value, str):
        text = value.strip()
        try:
            value = float(text) if text[:1].isdigit() and "-" not in text and ":" not in text else _moment(text)
        except (ValueError, OverflowError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if not math.isfinite(number) or number <= 0:
        return None
    for least, per_second in _UNITS:
        if number >= least:
            return number / per_second
    return number


@lru_cache(maxsize=1024)  # a conversation names each of its times more than once
def iso(time: float | None) -> str | None:
    """Return seconds since 1970 as an ISO text in UTC, None if that is not a date."""
    if time is None or time < _EARLIEST:
        return None
    try:
        return datetime.fromtimestamp(time, UTC).replace(tzinfo=None).isoformat() + "Z"
    except (ValueError, OverflowError, OSError):
        return None


def _moment(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def tool_call(identity: str | None, name: str, arguments: Any) -> dict[str, Any]:
    """Return a call; arguments that are a text stay as they are."""
    text = (
        arguments
        if isinstance(arguments, str)
        else json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    )
    call = {"type": "function", "function": {"name": name, "arguments": text}}
    return call if identity is None else {"id": identity, **call}


def state_outcome(message: dict[str, Any], outcome: CallOutcome | None) -> None:
    """Put into the result of a call how it ended, where the format states it."""
    if outcome is not None:
        message["outcome"] = outcome


def did_fail(message: Mapping[str, Any]) -> bool:
    """Return whether a result states that its call failed or was refused, for formats that write no more than that."""
    return message.get("outcome") in ("failed", "refused")


def arguments_of(call: Mapping[str, Any]) -> Any:
    """Return the arguments of a call as an object; a text that is not JSON stays one."""
    arguments: object = _function_fields(call).get("arguments")
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return parse(arguments) if arguments.strip() else {}
    except BrokenJson:
        return arguments


def name_of(call: Mapping[str, Any]) -> str:
    """Return the name of the tool that is called."""
    return str(_function_fields(call).get("name"))


def _function_fields(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object with the name and the arguments of a call; those of a custom tool are its input."""
    custom: object = call.get("custom")
    if isinstance(custom, Mapping) and call.get("type") == "custom":
        fields = cast("Mapping[str, Any]", custom)
        return {"name": fields.get("name"), "arguments": {"input": fields.get("input")}}
    return call.get("function") or call


def tool_names(tools: Any) -> list[str] | None:
    """Return the names in a list of tools, which are names or have one in any of the shapes of APIs; None if none does.

    An empty list says that there are no tools.
    """
    if not isinstance(tools, list):
        return None
    items = cast("list[Any]", tools)
    names = [name for tool in items if (name := _tool_name(tool)) is not None]
    return list(dict.fromkeys(names)) if names or not items else None


def _tool_name(tool: Any) -> str | None:
    if isinstance(tool, Mapping):
        fields = cast("Mapping[str, Any]", tool)
        inner: object = next((fields[key] for key in ("function", "toolSpec") if key in fields), fields)
        tool = cast("Mapping[str, Any]", inner).get("name") if isinstance(inner, Mapping) else None
    return tool if isinstance(tool, str) and tool.strip() else None


def check_calls(messages: Sequence[Any], loss: Loss) -> None:
    """Tell the report of calls that nothing answers before the conversation goes on, and of results without a call.

    Where neither calls nor results have ids, as in Ragas, as many results may follow as calls were made.
    """
    waiting: dict[str, tuple[int, str]] = {}
    unnamed = 0
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            continue
        fields = cast("dict[str, Any]", message)
        role = fields.get("role")
        if role == "tool":
            called = fields.get("tool_call_id")
            if called is None and unnamed:
                unnamed -= 1
            elif called is None or waiting.pop(called, None) is None:
                loss.orphan_result(str(fields.get("name") or called or "without an id"), index)
        elif role in ("user", "assistant"):
            for at, name in waiting.values():
                loss.orphan_call(name, at)
            waiting, unnamed = {}, 0
        for call in cast("list[dict[str, Any]]", fields.get("tool_calls") or ()):
            if (identity := call.get("id")) is not None:
                waiting[identity] = (index, name_of(call))
            else:
                unnamed += 1


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return the media type and the base64 text of a data URL; None for another address."""
    kind, comma, data = url.partition(",")
    if comma and kind.startswith("data:") and kind.endswith(";base64"):
        return kind[len("data:") : -len(";base64")], data
    return None


Fields = dict[str, Any]


def no_items() -> list[Any]:
    """Return an empty list."""
    return []


def no_fields() -> Fields:
    """Return an empty object."""
    return {}


def fields_in(value: Any) -> Fields:
    """Return an object, or an empty one where there is none."""
    return cast("Fields", value) if isinstance(value, dict) else {}


def items_in(value: Any) -> list[Any]:
    """Return a list, or an empty one where there is none."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def objects_in(value: Any) -> list[Fields]:
    """Return the objects of a list; anything else is left out."""
    return [cast("Fields", item) for item in items_in(value) if isinstance(item, dict)]


def texts_in(value: Any) -> list[str]:
    """Return the texts of a list that say something; anything else is left out."""
    return [item for item in items_in(value) if isinstance(item, str) and item.strip()]


def first_in(fields: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """Return the first of these members that has a value, which an empty text is not; None without any."""
    for key in keys:
        if (value := fields.get(key)) is not None and value != "":
            return value
    return None


def text_in(value: Any) -> str | None:
    """Return a text that says something, or a number as one."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def words_in(value: Any) -> str:
    """Return a value as text, the empty text where there is none."""
    return "" if value is None else value if isinstance(value, str) else str(value)


def number_in(value: Any) -> float | int | None:
    """Return a number; truth values, NaN and the infinite do not count."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def time_in(value: Any) -> str | None:
    """Return a time as ISO text: as it is written, if it is one already; None for a clock that was never set."""
    iso_time = iso(seconds(value))
    if iso_time is None or not isinstance(value, str):
        return iso_time
    try:
        text = datetime.fromisoformat(value).isoformat()
    except ValueError:
        return iso_time  # a number, as a text
    return value if value.removesuffix("Z") == text.removesuffix("+00:00") else text


def without(fields: Mapping[str, Any], keys: Collection[str]) -> Fields:
    """Return the other members of an object, as far as they have a value."""
    return {key: value for key, value in fields.items() if key not in keys and value is not None}


def drop_empty(values: Mapping[str, Any]) -> Fields:
    """Return the members that hold something: a value, and no empty list or object."""
    return {key: value for key, value in values.items() if value is not None and value not in ({}, [])}


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
        read: returns our messages of items; the object around them is the second, and it may take keys out of that.
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
        fields = cast("Mapping[str, Any]", value)
        lists = (fields[key] for key in self.keys if isinstance(fields.get(key), list))
        return next(lists, None)

    def _fits(self, record: Record) -> bool:
        items = self.items_of(record.value)
        if items is None:
            return self.is_certain(record.value)
        return any(map(self.is_certain, items)) and all(map(self.is_message, items))

    def _read(self, records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
        items_of_file: Items = []  # messages that are records of their own: the conversation of a whole file
        began: Place | None = None
        for record in records:
            items = self.items_of(record.value)
            if items is None and self.is_message(record.value):
                if began is not None and began.file != record.place.file:
                    yield from self._row(began, items_of_file, {}, loss)
                    items_of_file, began = [], None
                began = began or record.place
                items_of_file.append(record.value)
            elif items is None:
                loss.add_broken(f"no messages of {self.title} in a record")
            else:
                yield from self._row(record.place, items, record.fields or {}, loss)
        if began is not None:
            yield from self._row(began, items_of_file, {}, loss)

    def _row(self, place: Place, items: Items, beside: Row, loss: Loss) -> Iterator[tuple[Place, Row]]:
        key = next((key for key in self.keys if isinstance(beside.get(key), list)), None)
        rest = {name: value for name, value in beside.items() if name != key}
        loss.line = place.line
        loss.at(rest)
        try:
            messages = self.read(items, rest, loss)
        except Unreadable as error:
            loss.add_broken(str(error))
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


def difference(row: Row, original: Mapping[str, Any]) -> Row:
    """Return what a writer needs in addition to our message, to write what was read instead of `written`."""
    extra: Row = {}
    if other := {key: value for key, value in original.items() if key not in row or row[key] != value}:
        extra["fields"] = other
    if absent := [key for key in row if key not in original]:
        extra["absent"] = absent
    return extra


def restore(row: Row, extra: Mapping[str, Any]) -> Row:
    """Return what was read: what would be written, changed by what `difference` returned."""
    absent = cast("list[str]", extra.get("absent") or [])
    whole: Row = {**row, **cast("Row", extra.get("fields") or {})}
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


def hand_over(messages: Sequence[Message], receiver: str, sender: str | None = None) -> bool:
    """Say of the latest message of the assistant in this turn that it hands over, and whether there was one.

    With `sender` it is the latest of that agent.
    """
    for message in reversed(messages):
        if message["role"] == "user":
            return False
        if message["role"] == "assistant" and sender in (None, message.get("name")):
            message["handoff_to"] = receiver
            return True
    return False
