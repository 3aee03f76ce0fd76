"""CrewAI: the output of a crew, of a task or of an agent on its own, the log of a crew (`output_log_file`), and events.

A task is what the user says, its result what the agent of that name says. Traces of CrewAI are read as those of
OpenTelemetry. Source: the models and events of crewai 1.15 and what its file handler writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vivavoce.comparing.call_outcomes import failed_if
from vivavoce.conversations.format import NO_MESSAGES, Format, Loss, Place, Record, Row
from vivavoce.conversations.shapes import (
    Message,
    drop_empty,
    fields_in,
    items_in,
    objects_in,
    set_aside,
    state_outcome,
    text_in,
    time_in,
    tool_call,
    without,
)

NAME = "crewai"
_ROLES = ("system", "user", "assistant", "tool")
_OF_MESSAGE = frozenset(("role", "content", "tool_calls", "tool_call_id", "name"))
_OF_TASK = ("name", "expected_output", "json_dict", "pydantic", "tool_failures", "plan", "todos")
_STARTS, _ENDS = "crew_kickoff_started", ("crew_kickoff_completed", "crew_kickoff_failed")


def _is_crew(fields: Row) -> bool:
    return isinstance(fields.get("tasks_output"), list) and "raw" in fields


def _is_task(fields: Row) -> bool:
    return {"description", "raw", "agent", "output_format"} <= fields.keys()


def _is_of_agent(fields: Row) -> bool:
    return {"raw", "agent_role"} <= fields.keys() and isinstance(fields.get("messages"), list)


def _is_output(fields: Row) -> bool:
    return _is_crew(fields) or _is_task(fields) or _is_of_agent(fields)


def _is_log(fields: Row) -> bool:
    return {"task", "agent", "status", "timestamp"} <= fields.keys()


def _is_event(fields: Row) -> bool:
    return {"type", "event_id", "source_fingerprint"} <= fields.keys()


def _fits(record: Record) -> bool:
    fields = record.fields or {}
    return _is_output(fields) or _is_log(fields) or _is_event(fields)


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    run = _Run()  # of the entries of a log and of events; each is a record
    for record in records:
        fields = record.fields or {}
        loss.conversation = None
        if _is_output(fields):
            yield from _require_messages(record.place, _output(fields, loss), loss)
        elif not _is_log(fields) and not _is_event(fields):
            loss.add_broken("neither an output of a crew or a task, nor an entry of a log, nor an event")
        else:
            if run.place is not None and (run.place.file != record.place.file or fields.get("type") == _STARTS):
                yield from _require_messages(run.place, run.row(), loss)
                run = _Run()
            run.place = run.place or record.place
            _log_entry(run.messages, fields) if _is_log(fields) else _event(run, fields, loss)
    if run.place is not None:
        yield from _require_messages(run.place, run.row(), loss)


class _Run:
    """What several records say of one run."""

    def __init__(self) -> None:
        self.place: Place | None = None
        self.messages: list[Message] = []
        self.metadata: Row = {}

    def row(self) -> Row:
        return drop_empty({"messages": self.messages, "metadata": self.metadata})


def _require_messages(place: Place, row: Row, loss: Loss) -> Iterator[tuple[Place, Row]]:
    if row.get("messages"):
        yield place, row
    else:
        loss.add_broken(NO_MESSAGES)


def _output(fields: Row, loss: Loss) -> Row:
    tasks = objects_in(fields.get("tasks_output")) if _is_crew(fields) else [fields]
    messages: list[Message] = []
    for task in tasks:
        messages += _task(task, len(messages), loss)
    usage = fields.get("token_usage") or fields.get("usage_metrics")
    return drop_empty({"messages": messages, "metadata": drop_empty({"usage": usage})})


def _task(task: Row, index: int, loss: Loss) -> list[Message]:
    agent = text_in(task.get("agent")) or text_in(task.get("agent_role"))
    entries = [_message(item, agent, index, loss) for item in objects_in(task.get("messages"))]
    messages = [message for message in entries if message is not None]
    if not any(message["role"] == "user" for message in messages) and (description := text_in(task.get("description"))):
        messages.insert(0, {"role": "user", "content": description})
    answer = text_in(task.get("raw"))
    if answer and not (messages and messages[-1]["role"] == "assistant" and messages[-1]["content"] == answer):
        messages.append(_by(agent, {"role": "assistant", "content": answer}))
    if messages:
        set_aside(messages[-1], NAME, drop_empty({key: task.get(key) for key in _OF_TASK}))
    return messages


def _by(agent: str | None, message: Message) -> Message:
    return {**message, "name": agent} if agent and agent != "None" else message


def _message(item: Row, agent: str | None, index: int, loss: Loss) -> Message | None:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        loss.add_dropped("a message of another role", index)
        return None
    message: Message = {"role": role, "content": content if isinstance(content, str) else None}
    if isinstance(content, list):
        message["content"] = [part for part in objects_in(items_in(content)) if _is_text(part)] or None
        if len(message["content"] or ()) < len(items_in(content)):
            loss.add_dropped("parts that are not text", index)
    if role == "assistant":
        message = _by(agent, message)
        if calls := objects_in(item.get("tool_calls")):
            message["tool_calls"] = list(map(_call, calls))
    if role == "tool":
        message["tool_call_id"] = text_in(item.get("tool_call_id"))
        message |= drop_empty({"name": text_in(item.get("name"))})
    set_aside(message, NAME, without(item, _OF_MESSAGE))
    return message


def _is_text(part: Row) -> bool:
    return part.get("type") == "text" and isinstance(part.get("text"), str)


def _call(call: Row) -> Row:
    function = fields_in(call.get("function")) or call
    return tool_call(text_in(call.get("id")), text_in(function.get("name")) or "", function.get("arguments"))


def _log_entry(messages: list[Message], entry: Row) -> None:
    """Add what an entry of a log says; that a task has started is said again when it ends."""
    time = drop_empty({"timestamp": time_in(entry.get("timestamp"))})
    output = text_in(entry.get("output"))
    if entry.get("status") == "started":
        messages.append({"role": "user", "content": text_in(entry.get("task")) or "", **time})
    elif output:
        messages.append(_by(text_in(entry.get("agent")), {"role": "assistant", "content": output, **time}))


def _event(run: _Run, event: Row, loss: Loss) -> None:
    kind, messages = text_in(event.get("type")) or "", run.messages
    time = drop_empty({"timestamp": time_in(event.get("timestamp"))})
    agent = text_in(event.get("agent_role"))
    match kind:
        case "task_started":
            question = text_in(fields_in(event.get("task")).get("description")) or text_in(event.get("task_name"))
            if question:
                messages.append({"role": "user", "content": question, **time})
        case "tool_usage_finished" | "tool_usage_error":
            messages += _usage(event, agent, time)
        case "task_completed":
            output = fields_in(event.get("output"))
            answer = text_in(output.get("raw")) or ""
            if not any(message["role"] == "user" for message in messages) and (
                question := text_in(output.get("description"))
            ):
                messages.insert(0, {"role": "user", "content": question})
            messages.append(
                _by(text_in(output.get("agent")) or agent, {"role": "assistant", "content": answer, **time})
            )
        case "crew_kickoff_started":
            run.metadata |= drop_empty({"crew": event.get("crew_name"), "inputs": event.get("inputs")})
        case _ if kind not in (*_ENDS, "tool_usage_started"):
            loss.add_dropped(f"events of the type {kind}", len(messages))
        case _:
            pass


def _usage(event: Row, agent: str | None, time: Row) -> list[Message]:
    """Return the call and the result that an event about a tool tells of."""
    name, identity = text_in(event.get("tool_name")) or "", text_in(event.get("event_id"))
    failed = event.get("type") == "tool_usage_error"
    output: Any = event.get("error") if failed else event.get("output")
    called = _by(
        agent, {"role": "assistant", "content": None, "tool_calls": [tool_call(identity, name, event.get("tool_args"))]}
    )
    result: Message = {"role": "tool", "content": text_in(output), "tool_call_id": identity, "name": name, **time}
    if output is not None and result["content"] is None:
        set_aside(result, NAME, {"output": output})
    state_outcome(result, failed_if(failed))
    return [{**called, **drop_empty({"timestamp": time_in(event.get("started_at"))})}, result]


FORMAT = Format(NAME, "CrewAI outputs, logs and events", _fits, _read)
