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
_KNOWN = frozenset(
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
            loss.broken("no trajectory: it needs 'steps'")
            continue
        row = _row(fields, loss)
        if row["messages"]:
            yield record.place, row
        else:
            loss.broken(NO_MESSAGES)


def _row(trajectory: Row, loss: Loss) -> Row:
    identity = text_in(trajectory.get("trajectory_id")) or text_in(trajectory.get("session_id"))
    loss.conversation = identity
    kept = {key: value for key, value in trajectory.items() if key != "steps"}
    for key in kept.keys() - _KNOWN:
        loss.unknown(key)
    if others := objects_in(kept.get("subagent_trajectories")):
        loss.aside("trajectories of other agents within", count=len(others))
    told, extra = _ours(kept.get("extra"))
    if told:
        del kept["extra"]
        kept |= extra
    messages: list[Message] = []
    for number, step in enumerate(objects_in(trajectory["steps"]), 1):
        messages += _messages(step, number, len(messages), loss)
    row: Row = {} if identity is None else {"id": identity}
    row |= {name: value for name, value in told.items() if name in ROW_FIELDS - {"id", "messages"}}
    return {**row, "messages": messages, "metadata": {**fields_in(told.get("metadata")), NAME: kept}}


def _ours(extra: Any) -> tuple[Row, Row]:
    """Return what we wrote into an `extra`, and an object with the extra that is left, empty if none is."""
    fields = fields_in(extra)
    others = {key: value for key, value in fields.items() if key != _OURS}
    return fields_in(fields.get(_OURS)), {"extra": others} if others else {}


def _of_ours(told: Row) -> Row:
    """Return the members of a message that we wrote into an `extra`, as far as they are what a message may have."""
    kinds = {**dict.fromkeys(_TEXTS, str), "metadata": dict, "retrieval_context": list, "agent_tools": list}
    found = {key: told[key] for key, kind in kinds.items() if isinstance(told.get(key), kind)}
    if not all(isinstance(part, str | dict) for part in found.get("retrieval_context", ())):
        del found["retrieval_context"]
    if not all(isinstance(tool, str) for tool in found.get("agent_tools", ())):
        del found["agent_tools"]
    if (time := time_in(told.get("timestamp"))) is not None:
        found["timestamp"] = time
    return found


def _messages(step: Row, number: int, index: int, loss: Loss) -> list[Message]:
    source = step.get("source")
    if not isinstance(source, str) or source not in _ROLES:
        loss.dropped(f"a step of {source!r}"[:80], index)
        return []
    told, extra = _ours(step.get("extra"))
    kept = {key: value for key, value in step.items() if key not in ("source", "message")}
    if told:
        del kept["extra"]
        kept |= extra
    if kept.get("step_id") == number:
        del kept["step_id"]
    message: Message = {"role": _ROLES[source], **_of_ours(told)}
    if source == "system" and told.get("role") == "developer":
        message["role"] = "developer"
    message["content"] = _content(step.get("message"), kept, "message", index, loss)
    if source == "agent" and (calls := step.get("tool_calls")):
        message["tool_calls"] = _calls(calls, kept)
    if (time := time_in(step.get("timestamp"))) is not None:
        message["timestamp"] = time
        if time == step.get("timestamp"):
            del kept["timestamp"]
    results = _results(step.get("observation"), kept, index, loss) if source == "agent" else []
    for key in step.keys() - _KNOWN_OF_STEP:
        loss.unknown(key, index)
    for key in ("reasoning_content", "observation"):
        if kept.get(key):
            loss.aside(key, index)
    set_aside(message, NAME, kept)
    return [message, *results]


def _calls(calls: Any, kept: Row) -> list[Row]:
    """Return the calls of a step, and keep what we have no place for by their numbers."""
    more: Row = {}
    found: list[Row] = []
    for call in objects_in(calls):
        others = {name: value for name, value in call.items() if name not in _OF_CALL}
        if others:
            more[str(len(found))] = others
        name = text_in(call.get("function_name")) or ""
        found.append(tool_call(text_in(call.get("tool_call_id")), name, call.get("arguments")))
    del kept["tool_calls"]
    if more:
        kept["of_calls"] = more
    return found


_OF_CALL = frozenset(("tool_call_id", "function_name", "arguments"))


def _results(observation: Any, kept: Row, index: int, loss: Loss) -> list[Message]:
    found = objects_in(fields_in(observation).get("results"))
    if not found:
        return []
    rest = {key: value for key, value in fields_in(observation).items() if key != "results"}
    del kept["observation"]
    if rest:
        kept["of_observation"] = rest
    return [_result(result, index + 1 + place, loss) for place, result in enumerate(found)]


def _result(result: Row, index: int, loss: Loss) -> Message:
    told, extra = _ours(result.get("extra"))
    kept = {key: value for key, value in result.items() if key not in ("source_call_id", "content")}
    if told:
        del kept["extra"]
        kept |= extra
    content = _content(result.get("content"), kept, "content", index, loss)
    message: Message = {"role": "tool", "content": content, "tool_call_id": text_in(result.get("source_call_id"))}
    message |= _of_ours(told)
    if "content" not in result:
        kept["no"] = ["content"]
    if "source_call_id" not in result:
        kept["no"] = [*kept.get("no", ()), "source_call_id"]
    if kept.get("subagent_trajectory_ref"):
        loss.aside("subagent_trajectory_ref", index)
    set_aside(message, NAME, kept)
    return message


def _content(said: Any, kept: Row, key: str, index: int, loss: Loss) -> Any:
    """Return what was said as ours; where we cannot say it, it is kept whole."""
    if isinstance(said, str) or said is None:
        return said
    parts = [_part(part) for part in objects_in(said)]
    if isinstance(said, list) and len(parts) == len(cast("list[Any]", said)) and None not in parts and parts:
        return parts
    loss.aside("parts that are neither text nor image", index)
    kept[key] = said
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
        kept: Row = dict(fields_in(metadata.pop(NAME, None)))
        trajectory: Row = {"schema_version": _VERSION, **kept}
        if not {"session_id", "trajectory_id"} & trajectory.keys() and identity is not None:
            trajectory["session_id"] = identity
        if "agent" not in trajectory:
            model = text_in(metadata.get("model"))
            trajectory["agent"] = {
                "name": "assistant",
                "version": "unknown",
                **({"model_name": model} if model else {}),
            }
        told = {name: value for name, value in row.items() if name not in ("id", "messages", "metadata")}
        _tell(trajectory, {**told, **({"metadata": metadata} if metadata else {})})
        trajectory["steps"] = _steps(cast("list[Message]", row.get("messages") or []), loss)
        yield trajectory


def _tell(holder: Row, told: Row) -> None:
    """Write into `extra` what has no field of its own."""
    if told:
        holder["extra"] = {**fields_in(holder.get("extra")), _OURS: told}


def _steps(messages: list[Message], loss: Loss) -> list[Row]:
    steps: list[Row] = []
    for index, message in enumerate(messages):
        kept = taken_back(message, NAME)
        if message["role"] == "tool":
            _observe(steps, message, kept, index, loss)
        else:
            steps.append(_step(message, kept, len(steps) + 1, index, loss))
    return steps


def _step(message: Message, kept: Row, number: int, index: int, loss: Loss) -> Row:
    more, rest = fields_in(kept.pop("of_calls", None)), kept.pop("of_observation", None)
    step: Row = {"step_id": number, "source": _SOURCES[message["role"]]}
    if message.get("timestamp") is not None:
        step["timestamp"] = message["timestamp"]
    step["message"] = _said(message.get("content"), index, loss) or ""
    calls = cast("list[Row]", message.get("tool_calls") or [])
    if calls:
        step["tool_calls"] = [_use(call, place, more, index, loss) for place, call in enumerate(calls)]
    if rest:
        step["observation"] = rest
    told = _no_field_for(message)
    if message["role"] == "developer":
        told["role"] = "developer"
    step |= kept
    _tell(step, told)
    return step


def _no_field_for(message: Message) -> Row:
    told = {key: message[key] for key in (*_TEXTS, "retrieval_context", "agent_tools") if message.get(key) is not None}
    metadata = {key: value for key, value in fields_in(message.get("metadata")).items() if key != NAME}
    return {**told, **({"metadata": metadata} if metadata else {})}


def _use(call: Row, place: int, more: Row, index: int, loss: Loss) -> Row:
    identity = call.get("id")
    if identity is None:
        loss.guessed("id of a tool call", index)
        identity = f"call_{index}_{place}"
    arguments = arguments_of(call)
    if not isinstance(arguments, dict):
        loss.guessed("arguments of a call that are not an object, written as one", index)
        arguments = {"arguments": arguments}
    return {
        "tool_call_id": identity,
        "function_name": name_of(call),
        "arguments": arguments,
        **fields_in(more.get(str(place))),
    }


def _observe(steps: list[Row], message: Message, kept: Row, index: int, loss: Loss) -> None:
    """Add a result to the step of the agent that it follows, or to an empty one where it follows none."""
    if not steps or steps[-1]["source"] != "agent":
        steps.append({"step_id": len(steps) + 1, "source": "agent", "message": ""})
    step = steps[-1]
    result: Row = {"source_call_id": message.get("tool_call_id"), "content": _said(message.get("content"), index, loss)}
    calls: list[Any] = [call["tool_call_id"] for call in objects_in(step.get("tool_calls"))]
    if calls and result["source_call_id"] not in (None, *calls):
        loss.dropped("which call a result answers: it is of an earlier step", index)
        result["source_call_id"] = None
    for key in cast("list[str]", kept.pop("no", [])):
        result.pop(key, None)
    result |= kept
    time = message.get("timestamp")
    _tell(result, {**_no_field_for(message), **({} if time is None else {"timestamp": time})})
    observed = fields_in(step.get("observation"))
    step["observation"] = {**observed, "results": [*observed.get("results", ()), result]}


def _said(content: Any, index: int, loss: Loss) -> Any:
    if not isinstance(content, list):
        return content
    parts = [_as_part(part) for part in cast("list[Row]", content)]
    if None in parts:
        loss.dropped("parts that are neither text nor image", index, parts.count(None))
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
