"""What the steps of a trace say that happened, and what was looked up in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from vivavoce.conversations.shapes import Message, arguments_of, fields_in, name_of, no_fields, no_items, text_of

_PASSAGES = ("page_content", "pageContent", "content", "text")


def passages_in(value: Any) -> list[str]:
    """Return the texts of passages that were looked up, as a list of texts or of objects with a text."""
    fields = fields_in(value)
    documents: Any = fields.get("documents", fields.get("output", value))
    texts: list[str] = []
    for document in cast("list[Any]", documents) if isinstance(documents, list) else []:
        inner = fields_in(document)
        inner = {**inner, **fields_in(inner.get("kwargs")), **fields_in(inner.get("document"))}
        text = document if isinstance(document, str) else next((inner[key] for key in _PASSAGES if key in inner), None)
        if isinstance(text, str) and text:
            texts.append(text)
    return texts


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
        system: what the system message says, where it is not among the messages.
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
    inputs: list[Message] = field(default_factory=no_items)
    outputs: list[Message] = field(default_factory=no_items)
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
        return bool(self.inputs or self.outputs)


class StepTree:
    """The steps of one trace, below one another; each question about all of them takes one pass.

    Of steps in a circle, the first is below none. Of steps with the same id, others are below the last.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self._by_id = {step.id: step for step in steps}
        self._cut = self._first_in_circles()

    def parent(self, step: Step) -> Step | None:
        """Return the step that a step is directly below, None if it is below none."""
        if step.parent is None or step.parent == step.id:
            return None
        if step.id in self._cut and self._by_id[step.id] is step:
            return None
        return self._by_id.get(step.parent)

    def ids_above(self, steps: Iterable[Step]) -> set[str]:
        """Return the ids of all steps that any of these is below."""
        ids: set[str] = set()
        for step in steps:
            above = self.parent(step)
            while above is not None and above.id not in ids:
                ids.add(above.id)
                above = self.parent(above)
        return ids

    def without_above(self, steps: Iterable[Step], is_wanted: Callable[[Step], bool]) -> list[Step]:
        """Return those of these steps that are below no step that is wanted."""
        covered: dict[str, bool] = {}
        for step in self.top_down():
            above = self.parent(step)
            covered[step.id] = is_wanted(step) or (above is not None and covered[above.id])
        return [step for step in steps if (above := self.parent(step)) is None or not covered[above.id]]

    def top_down(self, after: Callable[[Step], object] = lambda _: None) -> Iterator[Step]:
        """Yield each step after the one that it is below; `left` is called after all that is below a step."""
        below: dict[str, list[Step]] = {}
        waiting: list[tuple[Step, bool]] = []
        for step in self._by_id.values():
            above = self.parent(step)
            if above is None:
                waiting.append((step, False))
            else:
                below.setdefault(above.id, []).append(step)
        waiting.reverse()
        while waiting:
            step, is_done = waiting.pop()
            if is_done:
                after(step)
                continue
            yield step
            waiting.append((step, True))
            waiting += [(lower, False) for lower in reversed(below.get(step.id, ()))]

    def _first_in_circles(self) -> set[str]:
        cut: set[str] = set()
        known: set[str] = set()
        for start in self._by_id:
            path: set[str] = set()
            at: str | None = start
            while at is not None and at in self._by_id and at not in known:
                known.add(at)
                path.add(at)
                at = self._by_id[at].parent
            if at in path:
                cut.add(at)
        return cut


def hand_down(steps: Iterable[Step]) -> None:
    """Say of each step which agent it is a part of, and give a model's call the passages looked up before it."""
    traces: dict[str, list[Step]] = {}
    for step in steps:
        traces.setdefault(step.trace, []).append(step)
    for of_trace in traces.values():
        _hand_down_agents(StepTree(of_trace))
        passages: list[str] = []
        for step in {step.id: step for step in of_trace}.values():
            if step.kind == "retrieval":
                passages += step.passages
            elif step.kind == "model" and step.outputs and passages:
                step.passages, passages = list(dict.fromkeys(passages)), []


def _hand_down_agents(tree: StepTree) -> None:
    """Give each step the agent of the nearest step above that has one, and the tools of the nearest of its agent."""
    tools_of: dict[str | None, list[list[str] | None]] = {}
    for step in tree.top_down(lambda step: tools_of[step.agent].pop()):
        above = tree.parent(step)
        if step.agent is None and above is not None:
            step.agent = above.agent
        tools = tools_of.setdefault(step.agent, [])
        if step.tools is None and tools:
            step.tools = tools[-1]
        tools.append(step.tools)


def print_of(message: Message) -> int:
    """Return a number that messages share which say the same, whatever ids, blanks and notes they have."""
    calls = cast("list[dict[str, Any]]", message.get("tool_calls") or ())
    content: object = message.get("content")
    words = "".join((content if isinstance(content, str) else text_of(content)).split())
    if not words and isinstance(content, list):
        words = json.dumps(content, sort_keys=True)
    return hash((message["role"], words, *((name_of(call), _canonical(call)) for call in calls)))


def call_key(call: dict[str, Any]) -> tuple[str, str]:
    """Return what calls share that ask one tool for the same."""
    return name_of(call), _canonical(call)


def _canonical(call: dict[str, Any]) -> str:
    arguments = arguments_of(call)
    return arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True)
