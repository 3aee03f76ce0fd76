"""Traces as conversations: what is common to all formats that record steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from vivavoce.exchange.assembly import assembled
from vivavoce.exchange.conversations import Message
from vivavoce.exchange.format import Row
from vivavoce.exchange.grouping import Group, Member, grouped
from vivavoce.exchange.loss import Loss
from vivavoce.exchange.records import Place
from vivavoce.exchange.shapes import fields_in
from vivavoce.exchange.steps import Step
from vivavoce.exchange.times import iso

StepsOf = Callable[[list[Member], Loss], list[Step]]
RowOf = Callable[[list[Member], Loss], Row]
"""Returns what a row has beside the messages: labels, tags, metadata."""

NO_WORDS = "a trace has no messages: what is said was not recorded"


def conversations(
    members: Iterable[Member], steps_of: StepsOf, beside: RowOf, loss: Loss
) -> Iterator[tuple[Place, Row]]:
    """Yield a row for each conversation of traces."""
    for group in grouped(members, loss):
        first = min(member.place for member in group.members)
        loss.line, loss.conversation = first.line, group.id
        row = _row(group, steps_of(group.members, loss), beside, loss)
        if row is not None:
            yield first, row
        loss.conversation = None


def _row(group: Group, steps: list[Step], beside: RowOf, loss: Loss) -> Row | None:
    made = assembled(steps, loss)
    if not made.messages:
        if any(step.kind in ("model", "agent", "tool") for step in steps):
            loss.broken(NO_WORDS)
        else:
            loss.dropped("a trace without a model call")
        return None
    _complete_ids(made.messages, loss)
    known = beside(group.members, loss)
    metadata = {**_about(steps), **cast("Row", known.pop("metadata", {}))}
    if made.beside:
        metadata["beside"] = made.beside
    return {"id": group.id, "messages": made.messages, **known, **({"metadata": metadata} if metadata else {})}


def _about(steps: list[Step]) -> Row:
    """Return when a conversation was, which models took part, and what they used."""
    usage: dict[str, Any] = {}
    cost = 0.0
    for step in steps:
        if step.kind == "model":
            for name, count in fields_in(step.about.get("usage")).items():
                usage[name] = usage.get(name, 0) + count
            cost += step.about.get("cost") or 0
    found: Row = {
        "started": iso(min((step.start for step in steps if step.start is not None), default=None)),
        "ended": iso(max((step.end for step in steps if step.end is not None), default=None)),
        "models": list(dict.fromkeys(step.about["model"] for step in steps if step.about.get("model"))),
        "usage": usage,
        "cost": cost,
        "traces": list(dict.fromkeys(step.trace for step in steps)),
    }
    return {key: value for key, value in found.items() if value}


def _complete_ids(messages: list[Message], loss: Loss) -> None:
    """Give calls without an id one, and results without theirs that of the first call that waits."""
    waiting: list[str] = []
    for index, message in enumerate(messages):
        for number, call in enumerate(cast("list[dict[str, Any]]", message.get("tool_calls") or ())):
            if call.get("id") is None:
                call["id"] = f"call_{index}_{number}"
                loss.guessed("id of a tool call", index)
                waiting.append(call["id"])
        if message["role"] == "tool" and message.get("tool_call_id") is None and waiting:
            message["tool_call_id"] = waiting.pop(0)
        elif message["role"] == "user":
            waiting = []
