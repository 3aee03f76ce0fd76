"""tau-bench and tau²-bench (tau3): results of runs, with the reward as labels and the task as the goal.

Only what the agent does is in the messages; tools that the simulated user calls (telecom) are kept in the metadata of
what the user says next. Source: `run.py` and `types.py` of tau-bench, the data models of tau2-bench.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vivavoce.comparing.call_outcomes import failed_if
from vivavoce.conversations.format import NO_MESSAGES, Format, Loss, Place, Record, Row, scan_records
from vivavoce.conversations.shapes import (
    Message,
    drop_empty,
    fields_in,
    number_in,
    objects_in,
    set_aside,
    state_outcome,
    text_in,
    texts_in,
    time_in,
    tool_call,
    without,
)
from vivavoce.errors import Problem

NAME = "tau"
_LISTS = (("simulations",),)
_FOLDER = "simulations"
_ROLES = ("system", "user", "assistant", "tool")
_READ_KEYS = frozenset(
    ("role", "content", "tool_calls", "tool_call_id", "name", "timestamp", "id", "requestor", "raw_data")
)
_SOLVED = 1 - 1e-6


def _is_old(fields: Row) -> bool:
    return isinstance(fields.get("traj"), list) and "reward" in fields


def _is_simulation(fields: Row) -> bool:
    return {"task_id", "termination_reason"} <= fields.keys() and ("messages" in fields or "ticks" in fields)


def _is_head(fields: Row) -> bool:
    """Whether it is what stands next to a folder of simulations."""
    return {"tasks", "info", "simulation_index"} <= fields.keys()


def _fits(record: Record) -> bool:
    fields = record.fields or {}
    return _is_old(fields) or _is_simulation(fields) or _is_head(fields)


def _records(path: Path) -> Iterator[Record | Problem]:
    """Yield each simulation, also where each is a file in the folder next to `results.json`."""
    for record in scan_records(path, _LISTS):
        if isinstance(record, Problem) or not _is_head(record.fields or {}):
            yield record
            continue
        for file in sorted((path.parent / _FOLDER).glob("*.json")):
            for part in scan_records(file):
                yield Record(part.place, part.value, record.fields or {}) if isinstance(part, Record) else part


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    for record in records:
        fields = record.fields or {}
        loss.conversation = text_in(fields.get("task_id"))
        if not _is_old(fields) and not _is_simulation(fields):
            loss.add_broken("not a tau-bench result: it needs a task_id with 'traj', 'messages' or 'ticks'")
            continue
        row = _old_row(fields, loss) if _is_old(fields) else _row(fields, record.beside, loss)
        if "messages" in row:
            yield record.place, row
        else:
            loss.add_broken(NO_MESSAGES)


def _old_row(result: Row, loss: Loss) -> Row:
    info = fields_in(result.get("info"))
    task = fields_in(info.get("task"))
    checked = fields_in(fields_in(info.get("reward_info")).get("info"))
    row = drop_empty(
        {
            "id": text_in(result.get("task_id")),
            "trial": _trial(result.get("trial")),
            "messages": _messages(objects_in(result.get("traj")), loss),
            "goal": text_in(task.get("instruction")),
            "reference_tool_calls": _reference(task.get("actions")),
            "labels": _labels(result.get("reward"), without(checked, ())),
        }
    )
    row["metadata"] = drop_empty(
        {
            "user": task.get("user_id"),
            "outputs": task.get("outputs"),
            "user_cost": info.get("user_cost"),
            **without(result, ("task_id", "trial", "traj", "reward", "info")),
            NAME: without(info, ("task", "user_cost")),
        }
    )
    return row


def _row(simulation: Row, beside: Any, loss: Loss) -> Row:
    run = fields_in(fields_in(beside).get("info"))
    world, agent = fields_in(run.get("environment_info")), fields_in(run.get("agent_info"))
    task = _task_of(simulation.get("task_id"), beside, loss)
    reward = fields_in(simulation.get("reward_info"))
    messages = simulation.get("messages")
    entries = (
        objects_in(messages) if isinstance(messages, list) else _of_ticks(objects_in(simulation.get("ticks")), loss)
    )
    identity = text_in(simulation.get("task_id"))
    domain = text_in(world.get("domain_name"))
    more: Row = {}
    row = drop_empty(
        {
            "id": f"{domain}/{identity}" if domain else identity,
            "trial": _trial(simulation.get("trial")),
            "messages": _messages(entries, loss, more),
            "policy": text_in(simulation.get("policy")) or text_in(world.get("policy")),
            **_wishes(task),
            "labels": _labels(reward.get("reward"), fields_in(reward.get("reward_breakdown"))),
        }
    )
    row["metadata"] = drop_empty(
        {
            "model": agent.get("llm"),
            "domain": domain,
            "simulation": simulation.get("id"),
            "cost": simulation.get("agent_cost"),
            "outputs": fields_in(task.get("evaluation_criteria")).get("communicate_info"),
            **more,
            NAME: without(simulation, ("id", "task_id", "trial", "messages", "ticks", "policy", "agent_cost")),
        }
    )
    return row


def _task_of(identity: Any, beside: Any, loss: Loss) -> Row:
    tasks = objects_in(fields_in(beside).get("tasks"))
    task = next((task for task in tasks if task.get("id") == identity), None)
    if task is None:
        loss.add_dropped("goal and policy: the file lacks the task of the simulation")
    return task or {}


def _wishes(task: Row) -> Row:
    """Return what the task says of the user and of the right end."""
    scenario, criteria = fields_in(task.get("user_scenario")), fields_in(task.get("evaluation_criteria"))
    task_text = scenario.get("instructions")
    instructions = fields_in(task_text)
    known = text_in(instructions.get("known_info"))
    return {
        "goal": text_in(task_text) or text_in(instructions.get("reason_for_call")),
        "instructions": text_in(instructions.get("task_instructions")),
        "facts": {"known": known} if known else None,
        "persona": text_in(scenario.get("persona")),
        "must": texts_in(criteria.get("nl_assertions")),
        "reference_tool_calls": _reference(criteria.get("actions")),
    }


def _reference(actions: Any) -> list[Row] | None:
    """Return the calls of the agent that solve the task."""
    if not isinstance(actions, list):
        return None
    named_actions = (
        (text_in(action.get("name")) or text_in(action.get("action")), action) for action in objects_in(actions)
    )
    return [
        tool_call(None, name, action.get("arguments", action.get("kwargs")))
        for name, action in named_actions
        if name and action.get("requestor", "assistant") == "assistant"
    ]


def _labels(reward: Any, parts: Row) -> Row:
    """Return the reward, whether it is a success, and the numbers that it was made of."""
    amount = number_in(reward)
    labels: Row = {} if amount is None else {"reward": amount, "success": amount >= _SOLVED}
    numbers = {name.lower(): value for name, value in parts.items() if isinstance(value, bool | int | float)}
    return {**labels, **{name: value for name, value in numbers.items() if value == value}}


def _messages(items: list[Row], loss: Loss, rest: Row | None = None) -> list[Message]:
    messages: list[Message] = []
    of_user: list[Row] = []  # what the user did with tools since the last message
    for item in _each(items):
        message = _message(item, len(messages), loss)
        if message is None:
            continue
        if item.get("requestor") == "user":
            of_user.append(message)
            continue
        if message["role"] == "user":
            of_user += [{"tool_calls": message.pop("tool_calls")}] if "tool_calls" in message else []
            if message["content"] is None:
                continue
            if of_user:
                loss.aside("tools that the user called", len(messages))
                set_aside(message, NAME, {"user_tools": of_user})
                of_user = []
        messages.append(message)
    if of_user and rest is not None:
        rest["user_tools"] = of_user
    return messages


def _each(items: list[Row]) -> Iterator[Row]:
    for item in items:
        several = objects_in(item.get("tool_messages"))
        yield from several or [item]


def _message(item: Row, index: int, loss: Loss) -> Message | None:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        loss.add_dropped(f"a message of the role {role!r}"[:80], index)
        return None
    message: Message = {"role": role, "content": content if isinstance(content, str) else None}
    if content is not None and not isinstance(content, str):
        loss.aside("content that is not text", index)
        set_aside(message, NAME, {"content": content})
    if calls := [_call(call) for call in objects_in(item.get("tool_calls"))]:
        message["tool_calls"] = calls
    if role == "tool":
        message["tool_call_id"] = text_in(item.get("tool_call_id")) or text_in(item.get("id"))
        state_outcome(message, failed_if(item.get("error") is True))
    if name := text_in(item.get("name")):
        message["name"] = name
    if (time := time_in(item.get("timestamp"))) is not None:
        message["timestamp"] = time
    if item.get("raw_data") is not None:
        loss.add_repeated("what a model's provider sent (raw_data)")
    set_aside(message, NAME, {key: value for key, value in without(item, _READ_KEYS).items() if value is not False})
    return message


def _call(call: Row) -> Row:
    function = fields_in(call.get("function")) or call
    return tool_call(text_in(call.get("id")), str(function.get("name")), function.get("arguments"))


def _of_ticks(ticks: list[Row], loss: Loss) -> list[Row]:
    """Return the messages of a spoken conversation, whose ticks hold what both say at the same time."""
    messages: list[Row] = []
    for tick in ticks:
        for speaker, role in (("agent", "assistant"), ("user", "user")):
            chunk, calls = fields_in(tick.get(f"{speaker}_chunk")), objects_in(tick.get(f"{speaker}_tool_calls"))
            words = text_in(chunk.get("content")) or ""
            last = messages[-1] if messages else {}
            if words and last.get("role") == role and not last.get("tool_calls") and not calls:
                last["content"] += words
            elif words or calls:
                time = chunk.get("timestamp") or tick.get("timestamp")
                messages.append({"role": role, "content": words or None, "tool_calls": calls, "timestamp": time})
            messages += objects_in(tick.get(f"{speaker}_tool_results"))
    loss.add_guess("where messages of a spoken conversation begin")
    return messages


def _trial(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


FORMAT = Format(NAME, "tau-bench results", _fits, _read, lists=_LISTS, records=_records)
