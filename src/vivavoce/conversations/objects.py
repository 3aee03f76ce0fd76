"""Objects of other packages as plain data, so that the formats of their files read them as well.

An object is known by what it can do (`model_dump`, `to_dict`, the fields of a dataclass), never by its class: no
package is imported for it.
"""

from __future__ import annotations

import base64
import dataclasses
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast
from uuid import UUID

from vivavoce.conversations.format import LOSSES, NATIVE, Format, Loss, Place, Record, Row, all_formats, format_named
from vivavoce.conversations.own_rows import is_native, is_native_message
from vivavoce.errors import UsageError
from vivavoce.messages import AnyMessage, Message, read_messages

_MAX_DEPTH = 64
_SCAN_LIMIT = 20
_NOWHERE = Place(Path("in memory"), 0)
_HOLDERS = ("all_messages", "to_input_list")
"""Methods of results that return the messages of a run: of Pydantic AI, and of the OpenAI Agents SDK."""


_WRITERS = ("model_dump", "to_dict", "tolist")
"""Methods that return what an object holds: of pydantic's models, of many classes, of numbers and lists of numpy."""


class _Model(Protocol):
    def model_dump(self) -> dict[str, Any]: ...


class _Fields(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


Live = _Model | _Fields
"""An object of another package, as type checkers know it."""


class LossWarning(UserWarning):
    """Something of a conversation was left out or guessed when it became one of ours."""


def is_live(value: object) -> bool:
    """Return whether a value is an object of another package that can say what it holds."""
    if isinstance(value, type | Message | Mapping | list | tuple | str):
        return False
    names = (*_HOLDERS, *_WRITERS)
    return dataclasses.is_dataclass(value) or any(callable(getattr(value, name, None)) for name in names)


def conversation_of(value: object) -> Row | None:
    """Return the row of a conversation in any format: its messages, or an object around them; None if it is of none.

    Warns:
        LossWarning: something of it had to be left out or guessed.

    Raises:
        UsageError: it is of a format, and broken; or could be of several formats.
    """
    record = plain(_messages_held(value))
    whole = {"messages": cast("Any", record)} if isinstance(record, list) else record
    if is_native(whole):
        return cast("Row", whole)
    formats = _formats_of(record)
    if len(formats) > 1:
        names = ", ".join(format_.name for format_ in formats)
        raise UsageError(f"the messages match several formats, {names}; read them from a file, with --from")
    return _read(formats[0], record) if formats else None


def read_conversation(messages: Iterable[object]) -> list[AnyMessage]:
    """Read the messages of a conversation in any format, live objects among them.

    Raises:
        ValueError: a message is malformed; the text begins with its index.
        UsageError: as `conversation_of` does.
    """
    items = list(messages)
    if not all(isinstance(item, Message) or is_native_message(item) for item in items):
        row = conversation_of(items)
        items = items if row is None else cast("list[object]", row["messages"])
    return read_messages(cast("list[Mapping[str, Any] | Message]", items))


def messages_of(record: object, format_name: str) -> list[AnyMessage]:
    """Read the messages of a conversation, as plain data of a format that is known.

    Warns:
        LossWarning: something of them had to be left out or guessed.

    Raises:
        UsageError: they are not of that format.
    """
    return read_messages(_read(format_named(format_name), record)["messages"])


def written_as(format_name: str, messages: Sequence[AnyMessage]) -> Row:
    """Return the record with the messages of a conversation in a format that is written."""
    write = format_named(format_name).write
    assert write is not None
    [record] = write([{"messages": [message.to_dict() for message in messages]}], Loss())
    return cast("Row", record)


def are_messages(values: Sequence[object]) -> bool:
    """Return whether values are the messages of one conversation in any format; it looks at the first of them."""
    if _holder(values[0]) is not None:
        return False
    record = plain(values[:_SCAN_LIMIT])
    return all(map(is_native_message, record)) or bool(_formats_of(record))


def _formats_of(record: Any) -> list[Format]:
    formats = (
        format_ for format_ in all_formats() if format_.name != NATIVE and format_.read and not format_.is_general
    )
    return [format_ for format_ in formats if format_.fits(Record(_NOWHERE, record))]


def plain(value: object, depth: int = 0) -> Any:
    """Return what an object holds as plain JSON types; NaN and infinity stay as they are.

    Raises:
        UsageError: it has something in it that cannot say what it holds, or is nested without end.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value.value if isinstance(value, Enum) else value
    if depth > _MAX_DEPTH:
        raise UsageError(f"an object is nested more than {_MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in cast("Mapping[Any, object]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, depth + 1) for item in cast("Iterable[object]", value)]
    if (known := next((write for kind, write in _LEAVES if isinstance(value, kind)), None)) is not None:
        return plain(known(value), depth + 1)
    return plain(_fields(value), depth + 1)


_LEAVES: tuple[tuple[Any, Callable[[Any], object]], ...] = (
    (Message, Message.to_dict),
    (Enum, lambda value: value.value),
    (date, lambda value: value.isoformat()),
    ((UUID, Path), str),
    ((bytes, bytearray), lambda value: base64.b64encode(value).decode()),
)


def _fields(value: Any) -> object:
    """Return the fields of an object; those of a pydantic model in Python's types, for any type may be within."""
    kind: str = type(value).__name__
    for name in _WRITERS:
        if callable(method := getattr(value, name, None)) and not isinstance(value, type):
            return method()
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    rule = "give plain data, as json.dumps takes it"
    raise UsageError(f"an object of the class {kind} cannot be read; {rule}")


def _messages_held(value: object) -> object:
    holder = _holder(value)
    return value if holder is None else holder()


def _holder(value: object) -> Callable[[], object] | None:
    if isinstance(value, Mapping | list | tuple):
        return None
    methods = (getattr(value, name, None) for name in _HOLDERS)
    return next((method for method in methods if callable(method)), None)


def _read(format_: Format, record: Any) -> Row:
    assert format_.read is not None
    loss = Loss()
    rows = [row for _, row in format_.read([Record(_NOWHERE, record)], loss)]
    lost = [entry for entry in loss.entries() if entry.kind in LOSSES]
    if len(rows) != 1 or any(entry.kind == "broken" for entry in lost):
        what = "; ".join(entry.what for entry in lost) or f"{len(rows)} conversations in one"
        raise UsageError(f"cannot read this as {format_.title}: {what}")
    if lost:
        losses = "; ".join(f"{entry.kind}: {entry.count} × {entry.what}" for entry in lost)
        warnings.warn(
            f"a conversation in the format {format_.title} was read with losses: {losses}", LossWarning, stacklevel=2
        )
    return rows[0]
