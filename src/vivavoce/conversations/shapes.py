"""Values of foreign records: texts, objects, points of time, tool calls, and data in addresses."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from vivavoce.comparing.call_outcomes import CallOutcome
from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.conversations.format import Loss

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
    arguments: object = _called(call).get("arguments")
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return parse(arguments) if arguments.strip() else {}
    except BrokenJson:
        return arguments


def name_of(call: Mapping[str, Any]) -> str:
    """Return the name of the tool that is called."""
    return str(_called(call).get("name"))


def _called(call: Mapping[str, Any]) -> Mapping[str, Any]:
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
    listed = cast("list[Any]", tools)
    names = [name for one in listed if (name := _tool_name(one)) is not None]
    return list(dict.fromkeys(names)) if names or not listed else None


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


def embedded(url: str) -> tuple[str, str] | None:
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
    """Return a number; truth values, NaN and the infinite are none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def time_in(value: Any) -> str | None:
    """Return a time as ISO text: as it is written, if it is one already; None for a clock that was never set."""
    written = iso(seconds(value))
    if written is None or not isinstance(value, str):
        return written
    try:
        text = datetime.fromisoformat(value).isoformat()
    except ValueError:
        return written  # a number, as a text
    return value if value.removesuffix("Z") == text.removesuffix("+00:00") else text


def without(fields: Mapping[str, Any], keys: Collection[str]) -> Fields:
    """Return the other members of an object, as far as they have a value."""
    return {key: value for key, value in fields.items() if key not in keys and value is not None}


def filled(values: Mapping[str, Any]) -> Fields:
    """Return the members that hold something: a value, and no empty list or object."""
    return {key: value for key, value in values.items() if value is not None and value not in ({}, [])}
