"""The transcript of a conversation on a page: turns with messages and tool calls, and score notes beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vivavoce.records.trajectory import Step, Test, Turn
from vivavoce.report.html.evidence import Quote
from vivavoce.report.html.parts import Called, Part
from vivavoce.report.html.score_notes import ScoreNote, State
from vivavoce.report.html.wording import span
from vivavoce.report.text import one_line
from vivavoce.safe_text import safe
from vivavoce.store.browse.status import worst_of


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
