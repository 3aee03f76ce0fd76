"""`Transcript`: a conversation as a judge reads it, line by line, in a form that no message can forge.

Whatever somebody said stands in quotation marks as a JSON string, on one line. A judge is told that such text is
material: an instruction in it is something that was said. Turns count from 1, as for people. What comes later never
changes the lines before it, so a growing conversation, and all metrics over one, share their beginning. Where users
come back in several sessions, each turn says its session and its user, and a line says where a session begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vivavoce.comparing.call_outcomes import words_say_failed
from vivavoce.comparing.json_values import read_strict_json
from vivavoce.comparing.text import is_blank
from vivavoce.messages import AnyMessage, RefusalPart, SessionMark, ToolMessage, mark_of, plain_texts, split_turns
from vivavoce.records.agents import key_of
from vivavoce.records.score import turn_label
from vivavoce.records.trajectory import outcome_of
from vivavoce.safe_text import quoted

CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English, good enough to split a conversation that is far too long."""

_NAME = re.compile(r"[\w.:/-]{1,64}")


class Shown(NamedTuple):
    """What of a conversation a judge gets to see; it learns what is left out."""

    policy: bool = True
    """The system messages, and the policy that only judges see."""
    tools: bool = True
    """Tool calls and their results."""
    retrieved: bool = True
    """What was retrieved for an answer."""

    @property
    def note(self) -> str:
        """What is left out, in words, empty for nothing."""
        if self.policy and self.tools and self.retrieved:
            return ""
        left = [
            word
            for word, shown in (
                ("system messages", self.policy),
                ("tool calls and results", self.tools),
                ("retrieved texts", self.retrieved),
            )
            if not shown
        ]
        return f"(left out: {', '.join(left)})\n"


EVERYTHING = Shown()
_SPEAKERS = frozenset(("user", "assistant"))


@dataclass(slots=True)
class Transcript:
    """The lines of a conversation: of what precedes the first user message, and of each turn.

    `calls` maps the reference of each tool call, `c0` and on, to the turn it was made in, None before the first;
    `answered` holds the turns in which the assistant says or does something that is shown. `agents` are the names of
    those who act for it, in the order in which they come; where one follows another, a line says so.
    """

    shown: Shown = EVERYTHING
    opening: list[str] = field(default_factory=list[str])
    turns: list[list[str]] = field(default_factory=list[list[str]])
    calls: dict[str, int | None] = field(default_factory=dict[str, int | None])
    answered: set[int | None] = field(default_factory=set[int | None])
    agents: list[str] = field(default_factory=list[str])
    _acting: str = ""
    _references: dict[str, str] = field(default_factory=dict[str, str])
    _marks: list[SessionMark] = field(default_factory=list[SessionMark])

    def text(self, first: int = 0, last: int | None = None) -> str:
        """Return the lines of what precedes the turns, and of those from `first` up to and not including `last`."""
        note = self.shown.note
        lines = [note, *self.opening] if self.opening or note else []
        for turn in self.turns[first:last]:
            lines += turn
        return "".join(lines)

    def size(self, turn: int) -> int:
        """Return how many characters a turn takes."""
        return sum(map(len, self.turns[turn]))

    def add_turn(self, messages: Sequence[AnyMessage]) -> None:
        """Add a turn to the end."""
        number, mark = len(self.turns), mark_of(messages)
        heading = [f"{turn_label(number)}\n"] if mark is None else self._session_heading(number, mark)
        self.turns.append(heading + self._lines(messages, number))

    def _session_heading(self, number: int, mark: SessionMark) -> list[str]:
        lines: list[str] = []
        of_user = "" if mark.user is None else f", user {named(mark.user)}"
        if mark not in self._marks:
            was_here = any(mark.user == earlier.user for earlier in self._marks)
            who = "with the same user as before, who comes back" if was_here else "with another user"
            if self._marks:
                lines.append(f"(session {mark.number} begins, a new conversation {who})\n")
            self._marks.append(mark)
        return [*lines, f"{turn_label(number)}, session {mark.number}{of_user}\n"]

    def extend_turn(self, messages: Sequence[AnyMessage]) -> None:
        """Add what still belongs to the last turn."""
        self.turns[-1] += self._lines(messages, len(self.turns) - 1)

    def add_opening(self, messages: Sequence[AnyMessage]) -> None:
        """Add what precedes the first user message."""
        self.opening += self._lines(messages, None)

    def _lines(self, messages: Sequence[AnyMessage], turn: int | None) -> list[str]:
        lines: list[str] = []
        for message, text in zip(messages, plain_texts(messages), strict=True):
            if text is None or message.role not in _SPEAKERS:
                lines += self._parts(message, turn)
                continue
            if text and message.role == "assistant":
                self.answered.add(turn)
            lines.append(f"{message.role}: {quoted(text)}\n")
        return lines

    def _parts(self, message: AnyMessage, turn: int | None) -> Iterator[str]:
        """Yield the lines of a message that may be more than words."""
        shown = self.shown
        if message.role == "tool":
            if shown.tools:
                yield f"result {self._reference(message)}{_stated(message)}: {quoted(message.text)}\n"
            return
        if message.role in ("system", "developer") and not shown.policy:
            return
        if message.role == "assistant" and message.name:
            yield from self._passed_to(message.name)
        if message.retrieval_context and shown.retrieved:
            for found in message.retrieval_context:
                yield f"retrieved: {quoted(_retrieved(found))}\n"
        calls, refusal = (message.tool_calls, message.refusal) if message.role == "assistant" else (None, None)
        if acts(message, shown.tools):
            self.answered.add(turn)
        if message.content or not calls or refusal:
            yield f"{_speaker(message)}: {_said(message, refusal)}\n"
        for call in (calls or ()) if shown.tools else ():
            reference = f"c{len(self.calls)}"
            self.calls[reference] = turn
            if call.id:
                self._references[call.id] = reference
            yield f"call {reference} {named(call.name)} {written_arguments(call.function.arguments)}\n"
        if message.role == "assistant" and message.handoff_to:
            yield from self._passed_to(message.handoff_to, acts=False)

    def _passed_to(self, name: str, *, acts: bool = True) -> Iterator[str]:
        """Yield the line that says that an agent follows another one; what it does, its later messages show."""
        if acts and all(key_of(agent) != key_of(name) for agent in self.agents):
            self.agents.append(name)
        if self._acting and key_of(self._acting) != key_of(name):
            yield f"handoff: {named(self._acting)} to {named(name)}\n"
        self._acting = name

    def _reference(self, message: ToolMessage) -> str:
        known = self._references.get(message.tool_call_id or "")
        return known or f"of {named(message.name or 'a tool')}"


def transcript(messages: Sequence[AnyMessage], shown: Shown = EVERYTHING, policy: str | None = None) -> Transcript:
    """Return the transcript of messages, which begins with the policy that the assistant works by."""
    opening, turns = split_turns(messages)
    written = Transcript(shown)
    if policy and shown.policy:
        written.opening.append(f"policy: {quoted(policy)}\n")
    if opening:
        written.add_opening(opening)
    for turn in turns:
        written.add_turn(turn)
    return written


def acts(message: AnyMessage, tools: bool = True) -> bool:
    """Say whether the assistant says something in a message, or does something where `tools` count."""
    if message.role != "assistant":
        return False
    shows_more = isinstance(message.content, list) and any(part.type != "text" for part in message.content)
    return shows_more or not is_blank(message.text) or bool(message.refusal or (tools and message.tool_calls))


def _stated(message: ToolMessage) -> str:
    """Return how a call ended where it did not succeed and the words of its result do not say so."""
    outcome = outcome_of(message)
    return "" if outcome == "succeeded" or words_say_failed(message.text) else f" {outcome}"


def _speaker(message: AnyMessage) -> str:
    """Return who speaks: the role, and the name where several share it."""
    return f"{message.role} {named(message.name)}" if message.name else message.role


def _said(message: AnyMessage, refusal: str | None) -> str:
    content = message.content
    if content is None or isinstance(content, str):
        if refusal:
            return f"{quoted(content)} [refusal] {quoted(refusal)}" if content else quoted(refusal)
        return quoted(content or "")
    parts = [
        f"[refusal] {quoted(part.refusal)}" if isinstance(part, RefusalPart) else f"[{part.type}]"
        for part in content
        if part.type != "text"
    ]
    if refusal:
        parts.append(f"[refusal] {quoted(refusal)}")
    return " ".join([quoted(message.text), *parts])


def _retrieved(found: str | dict[str, object]) -> str:
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)


def named(name: str) -> str:
    """Return a name as it is where it is a plain one, else quoted."""
    return name if _NAME.fullmatch(name) else quoted(name)


def written_arguments(arguments: str) -> str:
    """Return arguments on one line: as JSON where they are strict JSON, else quoted."""
    try:
        return quoted(read_strict_json(arguments or "{}"))
    except (ValueError, RecursionError):
        return quoted(arguments)
