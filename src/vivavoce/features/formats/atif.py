"""ATIF, the Agent Trajectory Interchange Format: 1.0 to 1.7 read, 1.7 written.

A step of the agent becomes its message and one for each result that it observed. What else a step tells (reasoning,
metrics, the model) and trajectories of other agents within are kept in the metadata.
Source: RFC 0001 of the Harbor project and its models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from vivavoce.conversations.format import NO_MESSAGES, ROW_FIELDS, Format, Loss, Place, Record, Row
from vivavoce.conversations.shapes import (
    Message,
    arguments_of,
    fields_in,
    name_of,
    objects_in,
    set_aside,
    taken_back,
    text_in,
    time_in,
    tool_call,
)

NAME = "atif"
_VERSION = "ATIF-v1.7"
_OURS = "vivavoce"
"""Where in an `extra` stands what a trajectory has no field for."""
_ROLES = {"user": "user", "agent": "assistant", "system": "system"}
_SOURCES = {role: source for source, role in _ROLES.items()} | {"developer": "system"}
_KNOWN_KEYS = frozenset(
    (
        *("schema_version", "session_id", "trajectory_id", "agent", "steps", "notes", "final_metrics", "extra"),
        *("continued_trajectory_ref", "subagent_trajectories"),
    )
)
_TEXTS = ("name", "refusal", "handoff_to")
"""What a message of ours has and no step of theirs, as far as it is text."""
_KNOWN_OF_STEP = frozenset(
    (
        *("step_id", "timestamp", "source", "model_name", "reasoning_effort", "message", "reasoning_content"),
        *("tool_calls", "observation", "metrics", "extra", "llm_call_count", "is_copied_context"),
    )
)


def _fits(record: Record) -> bool:
    fields = record.fields or {}
    version = fields.get("schema_version")
    return isinstance(version, str) and version.startswith("ATIF-") and isinstance(fields.get("steps"), list)


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    for record in records:
        fields = record.fields
        if fields is None or not isinstance(fields.get("steps"), list):
            loss.add_broken("not a trajectory: no 'steps'")
            continue
        row = _row(fields, loss)
        if row["messages"]:
            yield record.place, row
        else:
            loss.add_broken(NO_MESSAGES)


def _row(trajectory: Row, loss: Loss) -> Row:
    identity = text_in(trajectory.get("trajectory_id")) or text_in(trajectory.get("session_id"))
    loss.conversation = identity
    rest = {key: value for key, value in trajectory.items() if key != "steps"}
    for key in rest.keys() - _KNOWN_KEYS:
        loss.unknown(key)
    if others := objects_in(rest.get("subagent_trajectories")):
        loss.aside("nested trajectories of other agents", count=len(others))
    ours, extra = _ours(rest.get("extra"))
    if ours:
        del rest["extra"]
        rest |= extra
    messages: list[Message] = []
    for number, step in enumerate(objects_in(trajectory["steps"]), 1):
        messages += _messages(step, number, len(messages), loss)
    row: Row = {} if identity is None else {"id": identity}
    row |= {name: value for name, value in ours.items() if name in ROW_FIELDS - {"id", "messages"}}
    return {**row, "messages": messages, "metadata": {**fields_in(ours.get("metadata")), NAME: rest}}


def _ours(extra: Any) -> tuple[Row, Row]:
    """Return what we wrote into an `extra`, and an object with the extra that is left, empty if none is."""
    fields = fields_in(extra)
    others = {key: value for key, value in fields.items() if key != _OURS}
    return fields_in(fields.get(_OURS)), {"extra": others} if others else {}


def _of_ours(ours: Row) -> Row:
    """Return the members of a message that we wrote into an `extra`, as far as they are what a message may have."""
    kinds = {**dict.fromkeys(_TEXTS, str), "metadata": dict, "retrieval_context": list, "agent_tools": list}
    fields = {key: ours[key] for key, kind in kinds.items() if isinstance(ours.get(key), kind)}
    if not all(isinstance(part, str | dict) for part in fields.get("retrieval_context", ())):
        del fields["retrieval_context"]
    if not all(isinstance(tool, str) for tool in fields.get("agent_tools", ())):
        del fields["agent_tools"]
    if (time := time_in(ours.get("timestamp"))) is not None:
        fields["timestamp"] = time
    return fields


def _messages(step: Row, number: int, index: int, loss: Loss) -> list[Message]:
    source = step.get("source")
    if not isinstance(source, str) or source not in _ROLES:
        loss.add_dropped(f"a step of {source!r}"[:80], index)
        return []
    ours, extra = _ours(step.get("extra"))
    rest = {key: value for key, value in step.items() if key not in ("source", "message")}
    if ours:
        del rest["extra"]
        rest |= extra
    if rest.get("step_id") == number:
        del rest["step_id"]
    message: Message = {"role": _ROLES[source], **_of_ours(ours)}
    if source == "system" and ours.get("role") == "developer":
        message["role"] = "developer"
    message["content"] = _content(step.get("message"), rest, "message", index, loss)
    if source == "agent" and (calls := step.get("tool_calls")):
        message["tool_calls"] = _calls(calls, rest)
    if (time := time_in(step.get("timestamp"))) is not None:
        message["timestamp"] = time
        if time == step.get("timestamp"):
            del rest["timestamp"]
    results = _results(step.get("observation"), rest, index, loss) if source == "agent" else []
    for key in step.keys() - _KNOWN_OF_STEP:
        loss.unknown(key, index)
    for key in ("reasoning_content", "observation"):
        if rest.get(key):
            loss.aside(key, index)
    set_aside(message, NAME, rest)
    return [message, *results]


def _calls(calls: Any, rest: Row) -> list[Row]:
    """Return the calls of a step, and keep what we have no place for by their numbers."""
    more: Row = {}
    tool_calls: list[Row] = []
    for call in objects_in(calls):
        others = {name: value for name, value in call.items() if name not in _OF_CALL}
        if others:
            more[str(len(tool_calls))] = others
        name = text_in(call.get("function_name")) or ""
        tool_calls.append(tool_call(text_in(call.get("tool_call_id")), name, call.get("arguments")))
    del rest["tool_calls"]
    if more:
        rest["of_calls"] = more
    return tool_calls


_OF_CALL = frozenset(("tool_call_id", "function_name", "arguments"))


def _results(observation: Any, leftover: Row, index: int, loss: Loss) -> list[Message]:
    results = objects_in(fields_in(observation).get("results"))
    if not results:
        return []
    rest = {key: value for key, value in fields_in(observation).items() if key != "results"}
    del leftover["observation"]
    if rest:
        leftover["of_observation"] = rest
    return [_result(result, index + 1 + place, loss) for place, result in enumerate(results)]


def _result(result: Row, index: int, loss: Loss) -> Message:
    ours, extra = _ours(result.get("extra"))
    rest = {key: value for key, value in result.items() if key not in ("source_call_id", "content")}
    if ours:
        del rest["extra"]
        rest |= extra
    content = _content(result.get("content"), rest, "content", index, loss)
    message: Message = {"role": "tool", "content": content, "tool_call_id": text_in(result.get("source_call_id"))}
    message |= _of_ours(ours)
    if "content" not in result:
        rest["no"] = ["content"]
    if "source_call_id" not in result:
        rest["no"] = [*rest.get("no", ()), "source_call_id"]
    if rest.get("subagent_trajectory_ref"):
        loss.aside("subagent_trajectory_ref", index)
    set_aside(message, NAME, rest)
    return message


def _content(content: Any, rest: Row, key: str, index: int, loss: Loss) -> Any:
    """Return what was said as ours; where we cannot say it, it is kept whole."""
    if isinstance(content, str) or content is None:
        return content
    parts = [_part(part) for part in objects_in(content)]
    if isinstance(content, list) and len(parts) == len(cast("list[Any]", content)) and None not in parts and parts:
        return parts
    loss.aside("parts that are neither text nor image", index)
    rest[key] = content
    return [part for part in parts if part is not None] or None


def _part(part: Row) -> Row | None:
    source = fields_in(part.get("source"))
    match part.get("type"):
        case "text" if isinstance(part.get("text"), str):
            return part
        case "image" if isinstance(source.get("path"), str):
            others = {key: value for key, value in part.items() if key not in ("type", "source")}
            kind = {key: value for key, value in source.items() if key != "path"}
            return {
                "type": "image_url",
                "image_url": {"url": source["path"]},
                **others,
                **({NAME: kind} if kind else {}),
            }
        case _:
            return None


def _write(rows: Iterable[Row], loss: Loss) -> Iterator[Row]:
    for row in rows:
        identity = text_in(row.get("id"))
        loss.conversation = identity
        metadata = dict(fields_in(row.get("metadata")))
        rest: Row = dict(fields_in(metadata.pop(NAME, None)))
        trajectory: Row = {"schema_version": _VERSION, **rest}
        if not {"session_id", "trajectory_id"} & trajectory.keys() and identity is not None:
            trajectory["session_id"] = identity
        if "agent" not in trajectory:
            model = text_in(metadata.get("model"))
            trajectory["agent"] = {
                "name": "assistant",
                "version": "unknown",
                **({"model_name": model} if model else {}),
            }
        others = {name: value for name, value in row.items() if name not in ("id", "messages", "metadata")}
        _tell(trajectory, {**others, **({"metadata": metadata} if metadata else {})})
        trajectory["steps"] = _steps(cast("list[Message]", row.get("messages") or []), loss)
        yield trajectory


def _tell(holder: Row, members: Row) -> None:
    """Write into `extra` what has no field of its own."""
    if members:
        holder["extra"] = {**fields_in(holder.get("extra")), _OURS: members}


def _steps(messages: list[Message], loss: Loss) -> list[Row]:
    steps: list[Row] = []
    for index, message in enumerate(messages):
        extra = taken_back(message, NAME)
        if message["role"] == "tool":
            _observe(steps, message, extra, index, loss)
        else:
            steps.append(_step(message, extra, len(steps) + 1, index, loss))
    return steps


def _step(message: Message, extra: Row, number: int, index: int, loss: Loss) -> Row:
    more, rest = fields_in(extra.pop("of_calls", None)), extra.pop("of_observation", None)
    step: Row = {"step_id": number, "source": _SOURCES[message["role"]]}
    if message.get("timestamp") is not None:
        step["timestamp"] = message["timestamp"]
    step["message"] = _write_content(message.get("content"), index, loss) or ""
    calls = cast("list[Row]", message.get("tool_calls") or [])
    if calls:
        step["tool_calls"] = [_use(call, place, more, index, loss) for place, call in enumerate(calls)]
    if rest:
        step["observation"] = rest
    members = _no_field_for(message)
    if message["role"] == "developer":
        members["role"] = "developer"
    step |= extra
    _tell(step, members)
    return step


def _no_field_for(message: Message) -> Row:
    members = {
        key: message[key] for key in (*_TEXTS, "retrieval_context", "agent_tools") if message.get(key) is not None
    }
    metadata = {key: value for key, value in fields_in(message.get("metadata")).items() if key != NAME}
    return {**members, **({"metadata": metadata} if metadata else {})}


def _use(call: Row, place: int, more: Row, index: int, loss: Loss) -> Row:
    identity = call.get("id")
    if identity is None:
        loss.add_guess("id of a tool call", index)
        identity = f"call_{index}_{place}"
    arguments = arguments_of(call)
    if not isinstance(arguments, dict):
        loss.add_guess("call arguments that are not an object: written as one", index)
        arguments = {"arguments": arguments}
    return {
        "tool_call_id": identity,
        "function_name": name_of(call),
        "arguments": arguments,
        **fields_in(more.get(str(place))),
    }


def _observe(steps: list[Row], message: Message, extra: Row, index: int, loss: Loss) -> None:
    """Add a result to the step of the agent that it follows, or to an empty one where it follows none."""
    if not steps or steps[-1]["source"] != "agent":
        steps.append({"step_id": len(steps) + 1, "source": "agent", "message": ""})
    step = steps[-1]
    result: Row = {
        "source_call_id": message.get("tool_call_id"),
        "content": _write_content(message.get("content"), index, loss),
    }
    calls: list[Any] = [call["tool_call_id"] for call in objects_in(step.get("tool_calls"))]
    if calls and result["source_call_id"] not in (None, *calls):
        loss.add_dropped("which call a result answers: it is of an earlier step", index)
        result["source_call_id"] = None
    for key in cast("list[str]", extra.pop("no", [])):
        result.pop(key, None)
    result |= extra
    time = message.get("timestamp")
    _tell(result, {**_no_field_for(message), **({} if time is None else {"timestamp": time})})
    observed = fields_in(step.get("observation"))
    step["observation"] = {**observed, "results": [*observed.get("results", ()), result]}


def _write_content(content: Any, index: int, loss: Loss) -> Any:
    if not isinstance(content, list):
        return content
    parts = [_as_part(part) for part in cast("list[Row]", content)]
    if None in parts:
        loss.add_dropped("parts that are neither text nor image", index, parts.count(None))
    return [part for part in parts if part is not None]


def _as_part(part: Mapping[str, Any]) -> Row | None:
    match part.get("type"):
        case "text" | "refusal":
            return dict(part) if part["type"] == "text" else {"type": "text", "text": part.get("refusal")}
        case "image_url":
            path = str(part["image_url"]["url"])
            others = {key: value for key, value in part.items() if key not in ("type", "image_url", NAME)}
            kind = fields_in(part.get(NAME)) or {"media_type": _kind_of(path)}
            return {"type": "image", "source": {**kind, "path": path}, **others}
        case _:
            return None


def _kind_of(path: str) -> str:
    if path.startswith("data:"):
        return path[len("data:") :].partition(";")[0]
    ending = path.rpartition(".")[2].lower()
    return f"image/{ending}" if ending in ("png", "gif", "webp") else "image/jpeg"


FORMAT = Format(NAME, "ATIF trajectories", _fits, _read, _write, keeps_agents=True)
