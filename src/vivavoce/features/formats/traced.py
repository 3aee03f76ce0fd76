"""Traces as conversations: one conversation made of the steps of its traces.

A model is given the whole history with every call, so most messages occur in many steps; each is kept once. A call that
goes on from where another ended belongs to the same line of talk. The line that answers the user is the conversation;
what stands next to it (a title made up, an agent asked by another) is kept apart.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, cast

from vivavoce.comparing.call_outcomes import failed_if
from vivavoce.conversations.format import Loss, Member, Place, Row
from vivavoce.conversations.grouping import Group, group_members
from vivavoce.conversations.shapes import (
    Message,
    fields_in,
    iso,
    no_items,
    set_aside,
    state_outcome,
    taken_back,
    text_of,
)
from vivavoce.features.formats.steps import STEP, Step, StepTree, call_key, print_of


@dataclass(slots=True)
class Line:
    """Messages that follow from each other; `first_given` of them went into the first call."""

    messages: list[Message] = field(default_factory=no_items)
    system: str | None = None
    agent: str | None = None
    first_given: int = 0
    end: float | None = None
    _prints: list[int] = field(default_factory=no_items)
    _seen: int = 0
    _last_words: int | None = None
    _last_question: int | None = None
    _last_places: dict[int, int] = field(default_factory=dict[int, int])
    _after_users: dict[int, int] = field(default_factory=dict[int, int])

    @property
    def prints(self) -> list[int]:
        """The prints of the messages, which are made when they are first compared."""
        self._prints += [print_of(message) for message in self.messages[len(self._prints) :]]
        return self._prints

    def first_call(self) -> Line:
        """Return the messages that went into the first call."""
        return Line(self.messages[: self.first_given], _prints=self._prints[: self.first_given])

    def cut(self, length: int) -> None:
        """Take the messages from there on away."""
        del self.messages[length:], self._prints[length:]
        self._forget()

    def put(self, messages: list[Message]) -> None:
        """Put other messages in the place of those that are there."""
        self.messages, self._prints = messages, []
        self._forget()

    def _forget(self) -> None:
        self._seen, self._last_words, self._last_question = 0, None, None
        self._last_places, self._after_users = {}, {}

    def _look(self) -> None:
        """Look at the messages that were added: where words were said last, and by the user."""
        for at in range(self._seen, len(self.messages)):
            message = self.messages[at]
            if _has_words(message):
                self._last_words = at
            if message["role"] == "user":
                if self._last_question is not None:
                    self._after_users[self.prints[self._last_question]] = at
                self._last_question = at
            self._last_places[self.prints[at]] = at
        self._seen = len(self.messages)

    def count_known(self, call: Line) -> int | None:
        """Return how many of the messages that went into a call lead up to the end of this line, None if none do."""
        if not self.messages:
            return None
        self._look()
        call._look()
        ends = [self.prints[-1]]
        if self._last_words is not None and self.messages[self._last_words]["role"] == "assistant":
            ends.append(self.prints[self._last_words])  # histories without calls and results are given as well
        for end in ends:
            if (at := call._last_places.get(end)) is not None:
                return at + 1
        # An answer may be given in other words than it was made: thoughts, for one, are left out of a history. Then
        # the user's last words tell, when others follow them.
        return None if self._last_question is None else call._after_users.get(self.prints[self._last_question])

    def ties(self) -> set[int]:
        """Return prints; a call whose messages lead up to this line was given at least one of them."""
        if not self.messages:
            return set()
        self._look()
        return {self.prints[at] for at in (0, self._last_words or 0, self._last_question or 0, len(self.messages) - 1)}

    def begins_with(self, call: Line) -> bool:
        """Return whether this line begins with the messages of a call, and the user said nothing after them."""
        self._look()
        length = len(call.messages)
        if self._last_question is not None and self._last_question >= length:
            return False
        return self.prints[:length] == call.prints


MAX_LINES = 500
"""Lines of talk with which a call is compared; those that ended long before are left out where a trace has more."""


@dataclass(slots=True)
class Lines:
    """The lines of talk of a trace so far: a call is compared with those alone that it can continue with."""

    every: list[Line] = field(default_factory=no_items)
    _by_tie: dict[int, dict[int, None]] = field(default_factory=dict[int, dict[int, None]])
    _latest: dict[int, None] = field(default_factory=dict[int, None])
    _places: dict[int, int] = field(default_factory=dict[int, int])

    def near(self, call: Line, step: Step) -> Iterator[tuple[Line, bool]]:
        """Yield the lines that a call may continue with, the one that ended last first, and whether a tie says so."""
        tied = self._find_tied(call)
        places = set(tied)
        of_any = step.continues or (step.agent is not None and call.system is not None)
        if of_any or (call.messages and call.messages[0]["role"] == "tool"):
            places |= self._latest.keys()
        for place in sorted(sorted(places), key=lambda index: self.every[index].end or 0, reverse=True):
            yield self.every[place], place in tied

    def keep(self, line: Line) -> None:
        """Take note of a line that is new or has grown."""
        place = self._places.setdefault(id(line), len(self.every))
        if place == len(self.every):
            self.every.append(line)
        _renew(self._latest, place)
        for tie in line.ties():
            _renew(self._by_tie.setdefault(tie, {}), place)

    def _find_tied(self, call: Line) -> set[int]:
        """Return the lines that share a message with a call; those that share the last messages come first."""
        lines: set[int] = set()
        left = MAX_LINES
        for tie in dict.fromkeys(reversed(call.prints)):
            places = self._by_tie.get(tie, {})
            lines.update(places)
            left -= len(places)
            if left <= 0:
                break
        return lines


def _renew(places: dict[int, None], place: int) -> None:
    """Make a place the latest, and forget the oldest where there are too many."""
    places.pop(place, None)
    places[place] = None
    if len(places) > MAX_LINES:
        del places[next(iter(places))]


@dataclass(slots=True)
class Assembled:
    """A conversation, and the lines of talk next to it."""

    messages: list[Message]
    beside: list[list[Message]]


def assemble(steps: Sequence[Step], loss: Loss) -> Assembled:
    """Return the conversation of steps that are sorted by their times."""
    whole, beside = Line(), list[list[Message]]()
    traces: dict[str, list[Step]] = {}
    for step in steps:
        traces.setdefault(step.trace, []).append(step)
    for of_trace in traces.values():
        lines = _lines(of_trace, loss)
        main = _main(lines, of_trace)
        if main is None:
            continue
        others = [line for line in lines if line is not main]
        _answer_calls(main, of_trace, loss)
        beside += [line.messages for line in others]
        _append(whole, main, loss)
    if beside:
        loss.aside("model calls outside the conversation", count=len(beside))
    messages = [*([{"role": "system", "content": whole.system}] if whole.system else []), *whole.messages]
    if len({step.agent for step in steps} - {None}) > 1 or any(step.handoff for step in steps):
        name_agents(messages, steps)
    return Assembled(messages, beside)


def _append(whole: Line, main: Line, loss: Loss) -> None:
    """Continue the conversation of the traces before."""
    known = whole.count_known(main.first_call()) or 0
    if known:
        loss.add_repeated("messages of the history", known)
    if not whole.messages:
        whole.system = main.system
    elif main.system != whole.system and main.system is not None:
        loss.aside("another system prompt, later on")
    whole.messages += main.messages[known:]


def _lines(steps: Sequence[Step], loss: Loss) -> list[Line]:
    lines = Lines()
    for step in _calls(steps, loss):
        system, inputs = _without_system(step)
        _stamp(step, inputs)
        call = Line(inputs, system, step.agent, len(inputs))
        outputs = step.outputs[len(inputs) :] if _repeats(step.outputs, call) else step.outputs
        line = _gone_on(lines, call, outputs, step, loss)
        if line is None:
            line = call
            line.messages += outputs
        lines.keep(line)
        if system is not None and line.system is not None and system != line.system:
            loss.aside("another system prompt, later on")
        line.end = step.end or step.start or line.end
    return lines.every


def _gone_on(lines: Lines, call: Line, outputs: list[Message], step: Step, loss: Loss) -> Line | None:
    """Return the line that a call continues, with what the call adds; None if it begins a new one."""
    inputs = call.messages
    for line, is_tied in lines.near(call, step):
        if is_tied and (known := line.count_known(call)) is not None:
            loss.add_repeated("messages of the history", known)
            line.messages += [*inputs[known:], *outputs]
            return line
        if is_tied and (line.agent, line.system) == (call.agent, call.system) and line.begins_with(call):
            _again(line, len(inputs), outputs, loss)
            return line
        if _continues(line, step, inputs, call.system):
            line.messages += [*inputs, *outputs]
            return line
    return None


def _repeats(outputs: Sequence[Message], call: Line) -> bool:
    """Return whether what came out begins with all that went in."""
    length = len(call.messages)
    return 0 < length < len(outputs) and [print_of(message) for message in outputs[:length]] == call.prints


def _calls(steps: Sequence[Step], loss: Loss) -> list[Step]:
    """Return the steps whose messages count: the innermost calls of models, or without any, the outermost steps."""
    tree = StepTree(steps)
    talking = [step for step in steps if step.has_messages and step.kind in ("model", "agent")]
    models = [step for step in talking if step.kind == "model"]
    if models:
        above = tree.ids_above(models)
        calls = [step for step in models if step.id not in above]
    else:
        calls = tree.without_above(talking, lambda step: step.has_messages)
    if len(talking) > len(calls):
        loss.add_repeated("agent messages already in its model calls", len(talking) - len(calls))
    return calls


def _without_system(step: Step) -> tuple[str | None, list[Message]]:
    first = next((at for at, message in enumerate(step.inputs) if message["role"] not in ("system", "developer")), None)
    instructions, inputs = step.inputs[:first], [] if first is None else step.inputs[first:]
    instructions = [text_of(message.get("content")) for message in instructions]
    texts = [text for text in (step.system, *instructions) if text]
    return "\n\n".join(dict.fromkeys(texts)) or None, inputs


MAX_COPIES = 10
"""Messages of one model call that are each given the passages that were looked up for it."""


def _stamp(step: Step, inputs: list[Message]) -> None:
    """Say when what is new was said, and of what the model made, by which step."""
    start, went = iso(step.start), iso(step.end or step.start)
    for message in reversed(inputs):
        if message["role"] != "user":
            break
        if start is not None:
            message.setdefault("timestamp", start)
    agent = {} if step.agent is None else {"agent": step.agent}
    left = MAX_COPIES
    for message in step.outputs:
        if went is not None:
            message.setdefault("timestamp", went)
        if step.passages and message["role"] == "assistant" and (left := left - 1) >= 0:
            message["retrieval_context"] = list(step.passages)
        set_aside(message, STEP, {"trace": step.trace, "id": step.id, **agent, **step.about})


def _again(line: Line, known: int, outputs: list[Message], loss: Loss) -> None:
    """A call with the same history: the same again, or another answer in the place of the first."""
    loss.add_repeated("messages of the history", known)
    again = [print_of(message) for message in outputs]
    if line.prints[known : known + len(again)] == again:
        loss.add_repeated("answers", len(again))
        return
    if outputs:
        if len(line.messages) > known:
            loss.add_dropped("regenerated answers", len(line.messages) - known)
        line.cut(known)
        line.messages += outputs


def _continues(line: Line, step: Step, inputs: list[Message], system: str | None) -> bool:
    """Return whether a call without a history continues a line."""
    if inputs and inputs[0]["role"] == "tool":
        return bool(line.messages) and bool(line.messages[-1].get("tool_calls"))
    if line.end is not None and step.start is not None and step.start < line.end:
        return False
    same = (line.agent, line.system) == (step.agent, system)
    return step.continues or (same and step.agent is not None and system is not None)


def _main(lines: list[Line], steps: Sequence[Step]) -> Line | None:
    """Return the line that answers the user: with the answer of the whole trace, or else with most said by users."""
    if len(lines) < 2:
        return next(iter(lines), None)
    outer = StepTree(steps).without_above((step for step in steps if step.outputs), lambda step: bool(step.outputs))
    answers = {print_of(step.outputs[-1]) for step in outer if step.kind != "model"}

    def weight(line: Line) -> tuple[bool, int, int, float]:
        questions = sum(message["role"] == "user" for message in line.messages)
        return bool(answers.intersection(line.prints)), questions, len(line.messages), line.end or 0

    return max(lines, key=weight, default=None)


def _answer_calls(line: Line, steps: Sequence[Step], loss: Loss) -> None:
    """Put in what tools returned and no model was given, or that they were called at all."""
    runs = [step for step in steps if step.kind == "tool" and step.call is not None and _came_back(step) is not None]
    if not runs:
        return
    if not any(message.get("tool_calls") for message in line.messages):
        _put_in_calls(line, runs, loss)
        return
    messages: list[Message] = []
    first_given = line.first_given
    waiting = _Runs(runs)
    for at, message in enumerate(line.messages):
        messages.append(message)
        calls = cast("list[dict[str, Any]]", message.get("tool_calls") or ())
        results = _results_after(line.messages, at) if calls and message["role"] != "tool" else {}
        for call in calls:
            if (result := results.get(call.get("id"))) is not None:
                run = waiting.of(call)
                state_outcome(result, failed_if(run is not None and run.about.get("error")))
                continue
            if (run := waiting.of(call)) is not None:
                waiting.remove(run)
                messages.append(_result(call.get("id"), run))
                line.first_given += at < first_given
    line.put(messages)


def _results_after(messages: list[Message], at: int) -> dict[Any, Message]:
    """Return the results that directly follow a message, by the ids of their calls."""
    results: dict[Any, Message] = {}
    for after in range(at + 1, len(messages)):
        message = messages[after]
        if message["role"] != "tool":
            break
        results[message.get("tool_call_id")] = message
    return results


class _Runs:
    """The runs of tools that no call was answered with: each call finds its own by its id, or by what it asks for."""

    def __init__(self, runs: Iterable[Step]) -> None:
        self._by_key: dict[Hashable, deque[Step]] = {}
        self._removed: set[int] = set()
        for run in runs:
            call = run.call or {}
            key = _id_key(call) if call.get("id") else call_key(call)
            self._by_key.setdefault(key, deque()).append(run)

    def of(self, call: dict[str, Any]) -> Step | None:
        """Return the first run of a call."""
        run = self._first(_id_key(call)) if call.get("id") else None
        return run or self._first(call_key(call))

    def remove(self, run: Step) -> None:
        """Leave a run out from now on."""
        self._removed.add(id(run))

    def _first(self, key: Hashable) -> Step | None:
        runs = self._by_key.get(key, deque())
        while runs and id(runs[0]) in self._removed:
            runs.popleft()
        return runs[0] if runs else None


def _id_key(call: dict[str, Any]) -> Hashable:
    return ("id", str(call["id"]), "")


def _put_in_calls(line: Line, runs: list[Step], loss: Loss) -> None:
    """Put runs of tools that no message tells of before the last answer."""
    last = next((at for at in range(len(line.messages) - 1, -1, -1) if line.messages[at]["role"] == "assistant"), None)
    at = len(line.messages) if last is None else last
    put_in: list[Message] = []
    for number, run in enumerate(runs):
        loss.add_guess("where in the conversation a tool was called", at + 2 * number)
        assert run.call is not None
        call = run.call if run.call.get("id") else {"id": f"run_{run.id}", **run.call}
        put_in += [{"role": "assistant", "content": None, "tool_calls": [call]}, _result(call["id"], run)]
    line.put([*line.messages[:at], *put_in, *line.messages[at:]])


def _came_back(run: Step) -> str | None:
    """Return the result of a tool, or the error that it ended with."""
    return run.about.get("error") if run.result is None else run.result


def _result(called: str | None, run: Step) -> Message:
    message: Message = {"role": "tool", "content": _came_back(run), "tool_call_id": called}
    state_outcome(message, failed_if(run.about.get("error")))
    if (when := iso(run.end)) is not None:
        message["timestamp"] = when
    return message


def _has_words(message: Message) -> bool:
    return message["role"] in ("user", "assistant") and bool(text_of(message.get("content")))


StepsOf = Callable[[list[Member], Loss], list[Step]]
RowOf = Callable[[list[Member], Loss], Row]
"""Returns what a row has in addition to the messages: labels, tags, metadata."""

NO_WORDS = "a trace has no messages: their text was not recorded"


def conversations(
    members: Iterable[Member], steps_of: StepsOf, beside: RowOf, loss: Loss
) -> Iterator[tuple[Place, Row]]:
    """Yield a row for each conversation of traces."""
    for group in group_members(members, loss):
        first = min(member.place for member in group.members)
        loss.line, loss.conversation = first.line, group.id
        row = _row(group, steps_of(group.members, loss), beside, loss)
        if row is not None:
            yield first, row
        loss.conversation = None


def _row(group: Group, steps: list[Step], beside: RowOf, loss: Loss) -> Row | None:
    assembled_steps = assemble(steps, loss)
    if not assembled_steps.messages:
        if any(step.kind in ("model", "agent", "tool") for step in steps):
            loss.add_broken(NO_WORDS)
        else:
            loss.add_dropped("a trace without a model call")
        return None
    _complete_ids(assembled_steps.messages, loss)
    known = beside(group.members, loss)
    metadata = {**_about(steps), **cast("Row", known.pop("metadata", {}))}
    if assembled_steps.beside:
        metadata["beside"] = assembled_steps.beside
    return {
        "id": group.id,
        "messages": assembled_steps.messages,
        **known,
        **({"metadata": metadata} if metadata else {}),
    }


def _about(steps: list[Step]) -> Row:
    """Return when a conversation was, which models took part, and what they used."""
    usage: dict[str, Any] = {}
    cost = 0.0
    for step in steps:
        if step.kind == "model":
            for name, count in fields_in(step.about.get("usage")).items():
                usage[name] = usage.get(name, 0) + count
            cost += step.about.get("cost") or 0
    details: Row = {
        "started": iso(min((step.start for step in steps if step.start is not None), default=None)),
        "ended": iso(max((step.end for step in steps if step.end is not None), default=None)),
        "models": list(dict.fromkeys(step.about["model"] for step in steps if step.about.get("model"))),
        "usage": usage,
        "cost": cost,
        "traces": list(dict.fromkeys(step.trace for step in steps)),
    }
    return {key: value for key, value in details.items() if value}


def _complete_ids(messages: list[Message], loss: Loss) -> None:
    """Give calls without an id one, and results without theirs that of the first call that waits."""
    waiting: deque[str] = deque()
    for index, message in enumerate(messages):
        for number, call in enumerate(cast("list[dict[str, Any]]", message.get("tool_calls") or ())):
            if call.get("id") is None:
                call["id"] = f"call_{index}_{number}"
                loss.add_guess("id of a tool call", index)
                waiting.append(call["id"])
        if message["role"] == "tool" and message.get("tool_call_id") is None and waiting:
            message["tool_call_id"] = waiting.popleft()
        elif message["role"] == "user":
            waiting.clear()


KeyOf = Callable[[Row], Hashable | None]
"""Returns a key that objects share which say the same, None of an object that may occur more than once."""


class Repeats:
    """What is kept already; the same again is left out, and counted."""

    def __init__(self, key_of: KeyOf, rows: Iterable[Row]) -> None:
        self._key_of = key_of
        self._row_keys = {key_of(row) for row in rows} - {None}
        self._count = 0

    def rest_of(self, value: Any) -> Any:
        """Return a value without the objects within it that were kept before, None for such an object itself."""
        if isinstance(value, dict):
            fields = cast("Row", value)
            if (key := self._key_of(fields)) is not None:
                if key in self._row_keys:
                    self._count += 1
                    return None
                self._row_keys.add(key)
            return {name: rest for name, inner in fields.items() if (rest := self.rest_of(inner)) is not None}
        if isinstance(value, list):
            return [rest for inner in cast("list[Any]", value) if (rest := self.rest_of(inner)) is not None]
        return value

    def tell(self, loss: Loss, events: int) -> None:
        """Tell the report what was left out, and that the rest of the events is kept aside."""
        if self._count:
            loss.add_repeated("messages, calls and scores that events repeat", self._count)
        if events:
            loss.aside("events", count=events)


def name_agents(messages: Sequence[Message], steps: Sequence[Step]) -> None:
    """Say which agent speaks, with which tools, and when it hands over, where the steps tell of several agents."""
    by_place = {(step.trace, step.id): step for step in steps}
    outputs: list[tuple[Message, Step]] = []
    for message in messages:
        origin = taken_back(message, STEP)
        step = by_place.get((str(origin.get("trace")), str(origin.get("id"))))
        if message["role"] == "assistant" and step is not None and step.agent is not None:
            outputs.append((message, step))
    over = [step for step in steps if step.handoff is not None]
    if len({step.agent for _, step in outputs}) < 2 and not over:
        return
    for message, step in outputs:
        message.setdefault("name", step.agent)
        if step.tools is not None:
            message.setdefault("agent_tools", step.tools)
    agent_messages = _AgentMessages(outputs)
    for handing in over:
        assert handing.handoff is not None
        sender, receiver = handing.handoff
        last = agent_messages.last_before(handing, sender)
        if last is not None:
            last["handoff_to"] = receiver


class _AgentMessages:
    """What each agent said in each trace, by time: who hands over is found without looking at all messages."""

    def __init__(self, outputs: Sequence[tuple[Message, Step]]) -> None:
        self._messages = [message for message, _ in outputs]
        self._places: dict[tuple[str, str | None], list[tuple[float, int]]] = {}
        for place, (_, step) in enumerate(outputs):
            when = -math.inf if step.start is None else step.start
            self._places.setdefault((step.trace, step.agent), []).append((when, place))
        for places in self._places.values():
            places.sort()
        self._last = {key: [*accumulate((place for _, place in of), max)] for key, of in self._places.items()}

    def last_before(self, step: Step, agent: str) -> Message | None:
        """Return the last message of an agent in the trace of a step that was not made after it began."""
        key = (step.trace, agent)
        until = math.inf if step.start is None else step.start
        count = bisect_right(self._places.get(key, ()), (until, math.inf))
        return self._messages[self._last[key][count - 1]] if count else None
