"""What the steps of a trace say that happened, and what was looked up in them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from vivavoce.exchange.conversations import Message, text_of
from vivavoce.exchange.shapes import arguments_of, fields_in, name_of, no_fields, no_items

_PASSAGES = ("page_content", "pageContent", "content", "text")


def passages_in(value: Any) -> list[str]:
    """Return the texts of passages that were looked up, as a list of texts or of objects with a text."""
    fields = fields_in(value)
    held: Any = fields.get("documents", fields.get("output", value))
    found: list[str] = []
    for one in cast("list[Any]", held) if isinstance(held, list) else []:
        inner = fields_in(one)
        inner = {**inner, **fields_in(inner.get("kwargs")), **fields_in(inner.get("document"))}
        text = one if isinstance(one, str) else next((inner[key] for key in _PASSAGES if key in inner), None)
        if isinstance(text, str) and text:
            found.append(text)
    return found


STEP = "step"
"""The key in the metadata of a message that says which step made it: its trace, its id, its agent and its model."""

Kind = Literal["model", "agent", "tool", "retrieval", "other"]


@dataclass(slots=True)
class Step:
    """One thing that happened in a trace, in our shapes.

    Attributes:
        trace: the trace that it is in.
        id: its own id there.
        parent: the id of the step that it is below.
        kind: what happened; an agent, or another step with messages, has model calls below it.
        start: when it began, in seconds since 1970.
        end: when it ended.
        given: the messages that went in.
        made: the messages that came out.
        agent: the name of the agent that did it.
        tools: the names of the tools that the agent had, None if that is unknown.
        handoff: the agent that handed the conversation over, and the one that it was handed to.
        system: what the model was told beforehand, where it is not among the messages.
        call: the call that a tool answers, in our shape.
        result: what the tool returned, None if that is unknown.
        passages: what was looked up.
        continues: whether only what is new went in, because the model's side keeps the history.
        about: what is known of it in addition to that: model, usage, cost, an error.
    """

    trace: str
    id: str
    parent: str | None = None
    kind: Kind = "other"
    start: float | None = None
    end: float | None = None
    given: list[Message] = field(default_factory=no_items)
    made: list[Message] = field(default_factory=no_items)
    agent: str | None = None
    tools: list[str] | None = None
    handoff: tuple[str, str] | None = None
    system: str | None = None
    call: dict[str, Any] | None = None
    result: str | None = None
    passages: list[str] = field(default_factory=no_items)
    continues: bool = False
    about: dict[str, Any] = field(default_factory=no_fields)

    @property
    def has_messages(self) -> bool:
        """Whether any message went in or came out."""
        return bool(self.given or self.made)


def ancestors(step: Step, by_id: dict[str, Step]) -> Iterable[Step]:
    """Yield the steps that a step is below, the nearest first; a circle ends."""
    seen = {step.id}
    above = step.parent
    while above is not None and above in by_id and above not in seen:
        seen.add(above)
        yield by_id[above]
        above = by_id[above].parent


def hand_down(steps: Iterable[Step]) -> None:
    """Say of each step which agent it is a part of, and give a model's call the passages looked up before it."""
    traces: dict[str, dict[str, Step]] = {}
    for step in steps:
        traces.setdefault(step.trace, {})[step.id] = step
    for by_id in traces.values():
        passages: list[str] = []
        for step in by_id.values():
            above = [*ancestors(step, by_id)] if step.agent is None or step.tools is None else []
            if step.agent is None:
                step.agent = next((one.agent for one in above if one.agent is not None), None)
            if step.tools is None:
                of_agent = (one.tools for one in above if one.agent == step.agent)
                step.tools = next((tools for tools in of_agent if tools is not None), None)
            if step.kind == "retrieval":
                passages += step.passages
            elif step.kind == "model" and step.made and passages:
                step.passages, passages = list(dict.fromkeys(passages)), []


def print_of(message: Message) -> int:
    """Return a number that messages share which say the same, whatever ids, blanks and notes they have."""
    calls = cast("list[dict[str, Any]]", message.get("tool_calls") or ())
    content: object = message.get("content")
    words = "".join((content if isinstance(content, str) else text_of(content)).split())
    if not words and isinstance(content, list):
        words = json.dumps(content, sort_keys=True)
    return hash((message["role"], words, *((name_of(call), _canonical(call)) for call in calls)))


def same_call(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two calls ask one tool for the same."""
    return name_of(one) == name_of(other) and _canonical(one) == _canonical(other)


def _canonical(call: dict[str, Any]) -> str:
    arguments = arguments_of(call)
    return arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True)
