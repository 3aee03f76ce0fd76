"""Tool calls in our shape, whose arguments are JSON text, and in that of formats that write them as objects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from vivavoce.comparing.call_outcomes import CallOutcome
from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.exchange.loss import Loss


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
