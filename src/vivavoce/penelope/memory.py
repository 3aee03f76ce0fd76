"""`Memory`: what the tester's model sees of the test, from the beginning; older turns are condensed when it is full."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from vivavoce.metrics.transcript import CHARACTERS_PER_TOKEN
from vivavoce.penelope.tools.target_interaction import result_text
from vivavoce.penelope.tools.tool import ToolResult
from vivavoce.penelope.turn import Step, Turn
from vivavoce.penelope.written_step import written
from vivavoce.records.score import shorten

CONDENSED_REPLY = 300
"""Characters of a reply that stay in view when its turn is condensed."""


@dataclass
class Memory:
    """The tester's view of a test, made so that each request begins with the one before it.

    A `native` model sees its calls and their results as such, any other sees its steps as JSON. When the view takes
    more than about `tokens`, the older half of the turns is condensed by rule: every message to the target stays,
    replies are cut, and the steps between are left out.
    """

    brief: SystemMessage
    tokens: int = 60_000
    native: bool = True
    condensed: int = 0
    """How many turns are condensed."""
    _turns: list[list[HumanMessage | Step]] = field(default_factory=list[list[HumanMessage | Step]])
    _messages: list[AnyMessage] = field(default_factory=list[AnyMessage])
    _size: int = 0

    def begin_turn(self, note: str) -> None:
        """Begin a turn with a note for the model."""
        self._turns.append([])
        self._add(HumanMessage(content=note))

    def note(self, text: str) -> None:
        """Add a note for the model."""
        self._add(HumanMessage(content=text))

    def add(self, step: Step) -> None:
        """Add a step that the model took, with its result."""
        self._add(step)

    @property
    def messages(self) -> list[AnyMessage]:
        """The request as messages."""
        if self._size > self.tokens * CHARACTERS_PER_TOKEN:
            self._condense()
        return [self.brief, *self._messages]

    def show_as_json(self, brief: SystemMessage) -> None:
        """Show steps as JSON from now on, after another brief, for a model that calls no tools.

        What it answered in prose before is left out, so that the request is the same where it was known all along that
        it calls none.
        """
        self.native = False
        self.brief = brief
        for entries in self._turns:
            entries[:] = [one for one in entries if isinstance(one, HumanMessage) or one.assistant_message.tool_calls]
        self._rewrite()

    def _add(self, entry: HumanMessage | Step) -> None:
        self._turns[-1].append(entry)
        self._show(entry)

    def _show(self, entry: HumanMessage | Step) -> None:
        messages = [entry] if isinstance(entry, HumanMessage) else _native(entry) if self.native else _as_json(entry)
        self._messages += messages
        self._size += sum(map(_size, messages))

    def _condense(self) -> None:
        upto = max(self.condensed, (self.condensed + len(self._turns)) // 2)
        for entries in self._turns[self.condensed : upto]:
            entries[:] = [_condensed(entry) for entry in entries if isinstance(entry, Turn)]
        self.condensed = upto
        self._rewrite()

    def _rewrite(self) -> None:
        self._messages, self._size = [], len(self.brief.text)
        for entries in self._turns:
            for entry in entries:
                self._show(entry)


def _native(step: Step) -> Sequence[AnyMessage]:
    if not step.assistant_message.tool_calls:
        return [step.assistant_message, HumanMessage(content=step.tool_message.text)]
    return [step.assistant_message, step.tool_message]


def _as_json(step: Step) -> Sequence[AnyMessage]:
    if not step.assistant_message.tool_calls:
        return _native(step)
    said = AIMessage(content=json.dumps(written(step), ensure_ascii=False))
    label = "The assistant answers" if isinstance(step, Turn) and step.answered else "Result"
    return [said, HumanMessage(content=f"{label}: {step.tool_message.text}")]


def _condensed(turn: Turn) -> Turn:
    if not turn.answered:
        return turn
    short = result_text(ToolResult(success=True, output={"response": shorten(turn.reply, CONDENSED_REPLY)}))
    return turn.model_copy(update={"tool_message": turn.tool_message.model_copy(update={"content": short})})


def _size(message: AnyMessage) -> int:
    calls: Sequence[Any] = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
    argument_length = sum(len(call.function.arguments) for call in calls)
    return len(message.text) + argument_length + (16 if isinstance(message, ToolMessage) else 8)
