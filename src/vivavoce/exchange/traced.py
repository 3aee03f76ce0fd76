"""Traces as conversations: one conversation made of the steps of its traces.

A model is given the whole history with every call, so most messages occur in many steps; each is kept once. A call that
goes on from where another ended belongs to the same line of talk. The line that answers the user is the conversation;
what stands next to it (a title made up, an agent asked by another) is kept apart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, cast

from vivavoce.comparing.call_outcomes import failed_if
from vivavoce.exchange.agents import name_agents
from vivavoce.exchange.conversations import Message, set_aside, text_of
from vivavoce.exchange.format import Loss, Place, Row
from vivavoce.exchange.grouping import Group, Member, grouped
from vivavoce.exchange.shapes import fields_in, iso, no_items, state_outcome
from vivavoce.exchange.steps import STEP, Step, ancestors, print_of, same_call


@dataclass(slots=True)
class Line:
    """Messages that follow from each other; `first_given` of them went into the first call."""

    messages: list[Message] = field(default_factory=no_items)
    system: str | None = None
    agent: str | None = None
    first_given: int = 0
    end: float | None = None
    _prints: list[int] = field(default_factory=no_items)

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

    def put(self, messages: list[Message]) -> None:
        """Put other messages in the place of those that are there."""
        self.messages, self._prints = messages, []

    def known(self, given: Line) -> int | None:
        """Return how many of the messages that went into a call lead up to the end of this line, None if none do."""
        if not self.messages:
            return None
        ends = [self.prints[-1]]
        said = next((at for at in range(len(self.messages) - 1, -1, -1) if _has_words(self.messages[at])), None)
        if said is not None and self.messages[said]["role"] == "assistant":
            ends.append(self.prints[said])  # histories without calls and results are given as well
        prints = given.prints
        for end in ends:
            for at in range(len(prints) - 1, -1, -1):
                if prints[at] == end:
                    return at + 1
        return self._known_by_the_user(given)

    def _known_by_the_user(self, given: Line) -> int | None:
        """Return where what is new begins, if the last answer was given in other words than it was made.

        Thoughts, for one, are left out of a history. Then the user's last words tell, when others follow them.
        """
        asked = next((at for at in range(len(self.messages) - 1, -1, -1) if self.messages[at]["role"] == "user"), None)
        if asked is None:
            return None
        users = [at for at, message in enumerate(given.messages) if message["role"] == "user"]
        after_each = reversed([*pairwise(users)])
        return next((after for at, after in after_each if given.prints[at] == self.prints[asked]), None)

    def ties(self) -> set[int]:
        """Return the prints of which a call was given at least one if its messages lead up to this line."""
        if not self.messages:
            return set()
        last = len(self.messages) - 1
        said = next((at for at in range(last, -1, -1) if _has_words(self.messages[at])), 0)
        asked = next((at for at in range(last, -1, -1) if self.messages[at]["role"] == "user"), 0)
        return {self.prints[at] for at in (0, said, asked, last)}

    def begins_with(self, given: Line) -> bool:
        """Return whether this line begins with the messages of a call, and the user said nothing after them."""
        after = self.messages[len(given.messages) :]
        return all(one["role"] != "user" for one in after) and self.prints[: len(given.prints)] == given.prints


@dataclass(slots=True)
class Lines:
    """The lines of talk of a trace so far: a call is compared with those alone that it can continue with."""

    every: list[Line] = field(default_factory=no_items)
    _by_tie: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    _places: dict[int, int] = field(default_factory=dict[int, int])

    def near(self, call: Line, step: Step) -> Iterator[tuple[Line, bool]]:
        """Yield the lines that a call may continue with, the one that ended last first, and whether a tie says so."""
        tied = {place for tie in set(call.prints) for place in self._by_tie.get(tie, ())}
        of_any = step.continues or (step.agent is not None and call.system is not None)
        if of_any or (call.messages and call.messages[0]["role"] == "tool"):
            places = range(len(self.every))
        else:
            places = sorted(tied)
        for place in sorted(places, key=lambda one: self.every[one].end or 0, reverse=True):
            yield self.every[place], place in tied

    def keep(self, line: Line) -> None:
        """Take note of a line that is new or has grown."""
        place = self._places.setdefault(id(line), len(self.every))
        if place == len(self.every):
            self.every.append(line)
        for tie in line.ties():
            self._by_tie.setdefault(tie, set()).add(place)


@dataclass(slots=True)
class Assembled:
    """A conversation, and the lines of talk next to it."""

    messages: list[Message]
    beside: list[list[Message]]


def assembled(steps: Sequence[Step], loss: Loss) -> Assembled:
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
        loss.aside("model calls beside the conversation", count=len(beside))
    messages = [*([{"role": "system", "content": whole.system}] if whole.system else []), *whole.messages]
    if len({step.agent for step in steps} - {None}) > 1 or any(step.handoff for step in steps):
        name_agents(messages, steps)
    return Assembled(messages, beside)


def _append(whole: Line, main: Line, loss: Loss) -> None:
    """Continue the conversation of the traces before."""
    known = whole.known(main.first_call()) or 0
    if known:
        loss.repeated("messages of the history", known)
    if not whole.messages:
        whole.system = main.system
    elif main.system != whole.system and main.system is not None:
        loss.aside("another system prompt, later on")
    whole.messages += main.messages[known:]


def _lines(steps: Sequence[Step], loss: Loss) -> list[Line]:
    lines = Lines()
    for step in _calls(steps, loss):
        system, given = _without_system(step)
        _stamp(step, given)
        call = Line(given, system, step.agent, len(given))
        made = step.made[len(given) :] if _repeats(step.made, call) else step.made
        line = _gone_on(lines, call, made, step, loss)
        if line is None:
            line = call
            line.messages += made
        lines.keep(line)
        if system is not None and line.system is not None and system != line.system:
            loss.aside("another system prompt, later on")
        line.end = step.end or step.start or line.end
    return lines.every


def _gone_on(lines: Lines, call: Line, made: list[Message], step: Step, loss: Loss) -> Line | None:
    """Return the line that a call continues, with what the call adds; None if it begins a new one."""
    given = call.messages
    for line, is_tied in lines.near(call, step):
        if is_tied and (known := line.known(call)) is not None:
            loss.repeated("messages of the history", known)
            line.messages += [*given[known:], *made]
            return line
        if is_tied and (line.agent, line.system) == (call.agent, call.system) and line.begins_with(call):
            _again(line, len(given), made, loss)
            return line
        if _goes_on(line, step, given, call.system):
            line.messages += [*given, *made]
            return line
    return None


def _repeats(made: Sequence[Message], given: Line) -> bool:
    """Return whether what came out begins with all that went in."""
    length = len(given.messages)
    return 0 < length < len(made) and [print_of(one) for one in made[:length]] == given.prints


def _calls(steps: Sequence[Step], loss: Loss) -> list[Step]:
    """Return the steps whose messages count: the innermost calls of models, or without any, the outermost steps."""
    by_id = {step.id: step for step in steps}
    talking = [step for step in steps if step.has_messages and step.kind in ("model", "agent")]
    models = [step for step in talking if step.kind == "model"]
    if models:
        above = {one.id for step in models for one in ancestors(step, by_id)}
        calls = [step for step in models if step.id not in above]
    else:
        calls = [step for step in talking if not any(one.has_messages for one in ancestors(step, by_id))]
    if len(talking) > len(calls):
        loss.repeated("messages of an agent that its model calls have", len(talking) - len(calls))
    return calls


def _without_system(step: Step) -> tuple[str | None, list[Message]]:
    first = next((at for at, one in enumerate(step.given) if one["role"] not in ("system", "developer")), None)
    told, given = step.given[:first], [] if first is None else step.given[first:]
    told = [text_of(one.get("content")) for one in told]
    texts = [text for text in (step.system, *told) if text]
    return "\n\n".join(dict.fromkeys(texts)) or None, given


def _stamp(step: Step, given: list[Message]) -> None:
    """Say when what is new was said, and of what the model made, by which step."""
    came, went = iso(step.start), iso(step.end or step.start)
    for message in reversed(given):
        if message["role"] != "user":
            break
        if came is not None:
            message.setdefault("timestamp", came)
    agent = {} if step.agent is None else {"agent": step.agent}
    for message in step.made:
        if went is not None:
            message.setdefault("timestamp", went)
        if step.passages and message["role"] == "assistant":
            message["retrieval_context"] = list(step.passages)
        set_aside(message, STEP, {"trace": step.trace, "id": step.id, **agent, **step.about})


def _again(line: Line, known: int, made: list[Message], loss: Loss) -> None:
    """A call with the same history: the same again, or another answer in the place of the first."""
    loss.repeated("messages of the history", known)
    again = [print_of(message) for message in made]
    if line.prints[known : known + len(again)] == again:
        loss.repeated("answers", len(again))
        return
    if made:
        if len(line.messages) > known:
            loss.dropped("answers that were made once more", len(line.messages) - known)
        line.cut(known)
        line.messages += made


def _goes_on(line: Line, step: Step, given: list[Message], system: str | None) -> bool:
    """Return whether a call without a history continues a line."""
    if given and given[0]["role"] == "tool":
        return bool(line.messages) and bool(line.messages[-1].get("tool_calls"))
    if line.end is not None and step.start is not None and step.start < line.end:
        return False
    same = (line.agent, line.system) == (step.agent, system)
    return step.continues or (same and step.agent is not None and system is not None)


def _main(lines: list[Line], steps: Sequence[Step]) -> Line | None:
    """Return the line that answers the user: with the answer of the whole trace, or else with most said by users."""
    if len(lines) < 2:
        return next(iter(lines), None)
    by_id = {step.id: step for step in steps}
    outer = [step for step in steps if step.made and not any(one.made for one in ancestors(step, by_id))]
    answers = {print_of(step.made[-1]) for step in outer if step.kind != "model"}

    def weight(line: Line) -> tuple[bool, int, int, float]:
        asked = sum(message["role"] == "user" for message in line.messages)
        return bool(answers.intersection(line.prints)), asked, len(line.messages), line.end or 0

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
    given = line.first_given
    for at, message in enumerate(line.messages):
        messages.append(message)
        calls = cast("list[dict[str, Any]]", message.get("tool_calls") or ())
        answered = {one.get("tool_call_id"): one for one in _results_after(line.messages, at)}
        for call in calls:
            if (result := answered.get(call.get("id"))) is not None:
                run = _run_of(call, runs)
                state_outcome(result, failed_if(run is not None and run.about.get("error")))
                continue
            if (run := _run_of(call, runs)) is not None:
                runs.remove(run)
                messages.append(_result(call.get("id"), run))
                line.first_given += at < given
    line.put(messages)


def _results_after(messages: list[Message], at: int) -> list[Message]:
    for is_result, group in groupby(messages[at + 1 :], key=lambda message: message["role"] == "tool"):
        return list(group) if is_result else []
    return []


def _run_of(call: dict[str, Any], runs: list[Step]) -> Step | None:
    with_id = (run for run in runs if run.call and run.call.get("id") and run.call.get("id") == call.get("id"))
    with_arguments = (run for run in runs if run.call and not run.call.get("id") and same_call(run.call, call))
    return next(with_id, None) or next(with_arguments, None)


def _put_in_calls(line: Line, runs: list[Step], loss: Loss) -> None:
    """Put runs of tools that no message tells of before the last answer."""
    last = next((at for at in range(len(line.messages) - 1, -1, -1) if line.messages[at]["role"] == "assistant"), None)
    at = len(line.messages) if last is None else last
    put_in: list[Message] = []
    for number, run in enumerate(runs):
        loss.guessed("where in the conversation a tool was called", at + 2 * number)
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


KeyOf = Callable[[Row], Hashable | None]
"""Returns a key that objects share which say the same, None of an object that may occur more than once."""


class Repeats:
    """What is kept already; the same again is left out, and counted."""

    def __init__(self, key_of: KeyOf, kept: Iterable[Row]) -> None:
        self._key_of = key_of
        self._kept = {key_of(one) for one in kept} - {None}
        self._count = 0

    def rest_of(self, value: Any) -> Any:
        """Return a value without the objects within it that were kept before, None for such an object itself."""
        if isinstance(value, dict):
            fields = cast("Row", value)
            if (key := self._key_of(fields)) is not None:
                if key in self._kept:
                    self._count += 1
                    return None
                self._kept.add(key)
            return {name: rest for name, inner in fields.items() if (rest := self.rest_of(inner)) is not None}
        if isinstance(value, list):
            return [rest for inner in cast("list[Any]", value) if (rest := self.rest_of(inner)) is not None]
        return value

    def tell(self, loss: Loss, events: int) -> None:
        """Tell the report what was left out, and that the rest of the events is kept aside."""
        if self._count:
            loss.repeated("messages, calls and scores that stand in events again", self._count)
        if events:
            loss.aside("events", count=events)
