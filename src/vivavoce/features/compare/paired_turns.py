"""Two conversations about the same sample, turn by turn side by side, with the first turn that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from vivavoce.features.compare.text_difference import Stretch, same_share, word_difference
from vivavoce.messages import AIMessage, SessionMark
from vivavoce.records.agents import Agents
from vivavoce.records.run import Outcome
from vivavoce.records.score import Failure
from vivavoce.records.trajectory import Turn
from vivavoce.report.html.evidence import Register
from vivavoce.report.html.score_notes import ScoreNote, TurnGrades, state_of, turn_grades, turn_notes, whole_notes
from vivavoce.report.html.transcript import Part, Showing, ShownMessage, Writer
from vivavoce.report.transcript import words_of
from vivavoce.safe_text import safe
from vivavoce.store.runs.rows import SampleStatus, worst_of

PAGE_SIZE = 200
"""Turns on one page."""
ALIKE = 0.3
"""The share of two answers that has to be the same for their differences in words to be shown."""


@dataclass(frozen=True, slots=True)
class Half:
    """A turn on one side, without the user messages if they are the same on both sides."""

    parts: list[Part]
    notes: list[ScoreNote]
    failure: Failure | None

    @property
    def calls(self) -> bool:
        """Whether a tool is called in it."""
        return any(part.kind == "called" for part in self.parts)

    @property
    def state(self) -> SampleStatus | None:
        """Its worst state, None if nothing graded it."""
        if self.failure is not None:
            return "error"
        return worst_of(note.state for note in self.notes) if self.notes else None


@dataclass(frozen=True, slots=True)
class PairedTurn:
    """A turn of both, None for a side that has ended; `user_parts` are user messages that are the same on both sides.

    `same` means that the answers are the same, too, and `first` that this is the first difference. `words` are those
    that differ between the answers, empty if these have too little in common. `mark` is the session of the turn.
    """

    index: int
    user_parts: list[Part]
    a: Half | None
    b: Half | None
    same: bool
    first: bool
    words: list[Stretch] = field(default_factory=list[Stretch])
    mark: SessionMark | None = None

    @property
    def calls(self) -> bool:
        """Whether there is a tool call on either side."""
        return any(half is not None and half.calls for half in (self.a, self.b))


@dataclass(frozen=True, slots=True)
class PairedTalk:
    """Two conversations: some of their turns, the notes of each whole conversation, and the first turn that differs."""

    turns: list[PairedTurn]
    notes_a: list[ScoreNote]
    notes_b: list[ScoreNote]
    length: int
    parting: int | None


def paired_turns(a: Outcome, b: Outcome, first: int = 0, showing: Sequence[Showing] = ()) -> PairedTalk:
    """Return the turns of two conversations from `first` on; names of places begin with `a-` and `b-`.

    `showing` says how the messages of each are shown.
    """
    shown_a, shown_b = showing or (Showing(), Showing())
    left, right = _Side.of(a, "a-", shown_a), _Side.of(b, "b-", shown_b)
    parting = parting_turn(a, b)
    both = list(zip_longest(left.turns, right.turns))
    for turn in left.turns[:first]:
        left.writer.skip(turn.messages)
    for turn in right.turns[:first]:
        right.writer.skip(turn.messages)
    pairs = [
        _pair_turns(first + place, left, right, turns, parting)
        for place, turns in enumerate(both[first : first + PAGE_SIZE])
    ]
    return PairedTalk(pairs, left.whole, right.whole, len(both), parting)


def parting_turn(a: Outcome, b: Outcome) -> int | None:
    """Return the first turn with other scores, other tool calls or an error, or that is on one side only.

    If there is none, it is the first turn with other words; None if even the words are the same.
    """
    notes_a, notes_b = _states(a), _states(b)
    both = list(zip_longest(a.attempt.trajectory.turns, b.attempt.trajectory.turns))
    for index, (left, right) in enumerate(both):
        if left is None or right is None or notes_a.get(index) != notes_b.get(index):
            return index
        if _calls(left) != _calls(right) or (left.failure is None) != (right.failure is None):
            return index
    return next(
        (index for index, (left, right) in enumerate(both) if left and right and _words(left) != _words(right)), None
    )


@dataclass(frozen=True, slots=True)
class _Side:
    turns: Sequence[Turn]
    grades: TurnGrades
    register: Register
    writer: Writer
    whole: list[ScoreNote]

    @classmethod
    def of(cls, outcome: Outcome, prefix: str, showing: Showing) -> _Side:
        register, talk = Register(prefix), outcome.attempt.trajectory
        writer = Writer(register, showing, agents=Agents(talk.messages))
        return cls(talk.turns, turn_grades(outcome), register, writer, whole_notes(outcome, register))

    def half(self, turn: Turn | None) -> Half | None:
        if turn is None:
            return None
        notes = turn_notes(self.grades, turn.index, self.register)
        parts = self.writer.parts(turn.messages, turn.index)
        return Half(parts, notes, turn.failure)


def _pair_turns(
    index: int, side: _Side, other: _Side, turns: tuple[Turn | None, Turn | None], parting: int | None
) -> PairedTurn:
    left, right = turns
    a, b = side.half(left), other.half(right)
    mark = next((turn.mark for turn in turns if turn is not None), None)
    if left is None or right is None or a is None or b is None:
        return PairedTurn(index, [], a, b, False, index == parting, mark=mark)
    user_parts: list[Part] = []
    if _user_texts(left) == _user_texts(right):
        user_parts = [part for part in a.parts if _is_user_message(part)]
        a, b = (replace(half, parts=[part for part in half.parts if not _is_user_message(part)]) for half in (a, b))
    same = _words(left) == _words(right) and not other.register.of_turn(right.index)
    differing = [] if same else _difference(left, right)
    return PairedTurn(index, user_parts, a, b, same, index == parting, differing, mark)


def _difference(first: Turn, second: Turn) -> list[Stretch]:
    """Return the words that differ between the answers of two turns, none if these have too little in common."""
    before, after = (
        "\n".join(safe(message.text) for message in turn.messages if message.role == "assistant" and message.text)
        for turn in (first, second)
    )
    if not before or not after or before == after:
        return []
    words = word_difference(before, after)
    return words if same_share(words) >= ALIKE else []


def _states(outcome: Outcome) -> Mapping[int, dict[str, SampleStatus]]:
    return {turn: {name: state_of(grade) for _, name, grade in grades} for turn, grades in turn_grades(outcome).items()}


def _is_user_message(part: Part) -> bool:
    return isinstance(part, ShownMessage) and part.role == "user"


def _user_texts(turn: Turn) -> list[str]:
    return [words_of(message) for message in turn.messages if message.role == "user"]


def _calls(turn: Turn) -> list[tuple[str, str]]:
    calls = [call for message in turn.messages if isinstance(message, AIMessage) for call in message.tool_calls or ()]
    return [(call.function.name, call.function.arguments) for call in calls]


def _words(turn: Turn) -> list[tuple[str, str]]:
    return [*((message.role, words_of(message)) for message in turn.messages), *_calls(turn)]
