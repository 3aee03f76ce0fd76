"""The transcript of a conversation on a page: turns with messages and tool calls, and score notes beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from vivavoce.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from vivavoce.records.answered import origin
from vivavoce.records.test import Step, Test
from vivavoce.records.trajectory import Turn, tool_results
from vivavoce.report.html.evidence import Piece, Quote, Register
from vivavoce.report.html.score_notes import ScoreNote, State
from vivavoce.report.html.wording import span
from vivavoce.report.text import one_line
from vivavoce.report.transcript import words_of
from vivavoce.safe_text import safe
from vivavoce.store.browse.status import worst_of

LONGEST = 20_000
"""Characters of the arguments or the result of a tool call that a page shows; messages are never cut."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message; `role` is its author."""

    role: str
    pieces: list[Piece]
    kind: Literal["said"] = "said"


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call with what came back; it is shown open if it contains evidence."""

    name: str
    short: str
    brief: str
    arguments: list[Piece]
    result: list[Piece] | None
    quote: Quote | None
    kind: Literal["called"] = "called"

    @property
    def cited(self) -> bool:
        """Whether there is evidence in it."""
        return self.quote is not None or any(one.quote for one in [*self.arguments, *(self.result or ())])


Part = Spoken | Called


@dataclass(frozen=True, slots=True)
class Thought:
    """A step that the tester took before its message, or its reasoning."""

    word: str
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A turn with its score notes.

    `about` are the notes of the whole conversation that cite it, `judged` is the judgement of the goal after it, and
    `measured` what the metrics of the tester gave.
    """

    turn: Turn
    parts: list[Part]
    notes: list[ScoreNote]
    thoughts: list[Thought]
    about: list[tuple[ScoreNote, Quote, str]] = field(default_factory=list[tuple[ScoreNote, Quote, str]])
    judged: str = ""
    measured: str = ""

    @property
    def state(self) -> State | None:
        """Its worst state, None if nothing graded it."""
        if self.turn.failure is not None:
            return "error"
        return worst_of(note.state for note in self.notes) if self.notes else None

    @property
    def cited(self) -> bool:
        """Whether one of its tool calls has evidence."""
        return any(isinstance(part, Called) and part.cited for part in self.parts)

    @property
    def taken(self) -> str:
        """The time and the tokens of the target, as far as they are known."""
        words = [] if self.turn.seconds is None else [span(self.turn.seconds)]
        if (usage := self.turn.usage) is not None and usage.input_tokens + usage.output_tokens:
            words.append(f"{usage.input_tokens + usage.output_tokens:,} tokens")
        return ", ".join(words)


@dataclass(slots=True)
class Writer:
    """Writes the turns of one conversation; tool calls are numbered from `c0` through all of it."""

    register: Register
    calls: int = 0

    def parts(self, messages: Sequence[AnyMessage], turn: int | None) -> list[Part]:
        """Return the messages of a turn, and tool calls with their results."""
        answers = {id(call): answer for call, answer in tool_results(messages)}
        answered = {id(answer) for answer in answers.values() if answer is not None}
        return [
            part
            for message in messages
            if not (isinstance(message, ToolMessage) and id(message) in answered)
            for part in self._message(message, turn, answers)
        ]

    def skip(self, messages: Sequence[AnyMessage]) -> None:
        """Count the calls of a turn that is not shown."""
        self.calls += sum(len(one.tool_calls or ()) for one in messages if isinstance(one, AIMessage))

    def _message(
        self, message: AnyMessage, turn: int | None, answers: Mapping[int, ToolMessage | None]
    ) -> Iterator[Part]:
        calls = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
        text = safe(words_of(message))
        if text or not calls:
            yield Spoken(message.role, self.register.pieces(text, turn, by_assistant=message.role == "assistant"))
        for call in calls:
            yield self._called(call, answers.get(id(call)), turn)

    def _called(self, call: ToolCall, answer: ToolMessage | None, turn: int | None) -> Called:
        reference = f"c{self.calls}"
        self.calls += 1
        cited = self.register.call(reference, turn)
        arguments_text = _cut(safe(call.function.arguments))
        returned = None if answer is None else _cut(safe(words_of(answer)))
        known = "" if answer is None else origin(answer)
        return Called(
            name=safe(call.name),
            short=_short(arguments_text),
            brief="no result" if returned is None else one_line(returned, 48) + (f" ({known})" if known else ""),
            arguments=self.register.pieces(arguments_text, turn, by_assistant=False),
            result=None if returned is None else self.register.pieces(returned, turn, by_assistant=False),
            quote=cited,
        )


def thoughts(test: Test | None, index: int) -> list[Thought]:
    """Return the steps and the reasoning of the tester before its message in a turn, counted from 0."""
    if test is None or index >= len(test.history):
        return []
    turn = test.history[index]
    found = [Thought("strategy", safe(turn.guidance))] if turn.guidance else []
    found += steps(turn.steps)
    if turn.reasoning:
        found.append(Thought("tester", safe(turn.reasoning)))
    return found


def judged(test: Test | None, index: int) -> str:
    """Return the judgement of the goal after a turn, counted from 0; empty if it is the same as before."""
    if test is None or index >= len(test.history):
        return ""
    before, after = (test.history[at].evaluation for at in (max(index - 1, 0), index))
    return safe(after or "") if index == 0 or after != before else ""


def steps(taken: Iterable[Step]) -> list[Thought]:
    """Return the steps of a tester, each with its result."""
    return [_step(step) for step in taken]


def _step(step: Step) -> Thought:
    refused = " (refused)" if step.refused else ""
    return Thought(safe(step.tool_name or "words") + refused, one_line(step.tool_message.text, 300))


def _short(arguments: str) -> str:
    """Return the arguments of a tool call on one line, written as in a program."""
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return one_line(arguments, 72)
    if not isinstance(parsed, dict):
        return one_line(arguments, 72)
    fields = cast("dict[str, Any]", parsed)
    return one_line(", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()), 72)


def _cut(text: str) -> str:
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST]}\n… ({left:,} more characters; the JSON has all of them)"
