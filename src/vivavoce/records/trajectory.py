"""What came of one sample against one target: messages grouped by turn, with timings, usage and failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.messages import AIMessage, AnyMessage, StoredMessages, ToolCall, ToolMessage
from vivavoce.plugins import lazy
from vivavoce.records.failure import Failure
from vivavoce.records.test import Test
from vivavoce.records.turn import Turn as Turn
from vivavoce.records.usage import Usage


class Trajectory(BaseModel):
    """The conversation of one attempt: `opening` is what stands before the first user message.

    `state` is what the target remembered at the end (memory blocks by label), where it can tell, or what it left of the
    state of the row. `test` is what a tester that led the conversation leaves besides: how it ended, what was judged,
    what the tester thought.
    """

    model_config = ConfigDict(frozen=True)

    opening: StoredMessages = Field(default_factory=lambda: list[AnyMessage]())
    turns: list[Turn] = Field(default_factory=lambda: list[Turn]())
    session_id: str | None = None
    state: dict[str, Any] | None = None
    test: Test | None = None
    failure: Failure | None = None
    seconds: float | None = None

    def _repr_html_(self) -> str:
        """Return the conversation for a notebook, in which every text is escaped."""
        return cast("str", lazy("vivavoce.report.html.cards:trajectory_html")(self))

    @property
    def messages(self) -> list[AnyMessage]:
        """All messages in order."""
        return [*self.opening, *(message for turn in self.turns for message in turn.messages)]

    @property
    def usage(self) -> Usage:
        """What the target used in all turns."""
        return sum((turn.usage for turn in self.turns if turn.usage), Usage())


def assistant_texts(messages: Sequence[AnyMessage]) -> list[str]:
    """Return the words of each assistant message, empty where it says nothing; one that only calls tools is left out.

    The words of a refusal in a field of its own are words, too.
    """
    said = [(m, m.text or m.refusal or "") for m in messages if m.role == "assistant"]
    return [text for m, text in said if text or not m.tool_calls]


def tool_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """Return every tool call in order, parallel ones in the order the model wrote them."""
    return [call for m in messages if isinstance(m, AIMessage) for call in m.tool_calls or ()]


def tool_results(messages: Sequence[AnyMessage]) -> list[tuple[ToolCall, ToolMessage | None]]:
    """Pair every tool call with the message that answers it.

    Ids decide where both sides give one; the rest are paired in order within the same assistant message.
    """
    return [pair for pairs in tool_results_by_message(messages) for pair in pairs]


def tool_results_by_message(messages: Sequence[AnyMessage]) -> list[list[tuple[ToolCall, ToolMessage | None]]]:
    """Return the pairs of `tool_results` in one list for each message that makes calls."""
    groups: list[list[tuple[ToolCall, ToolMessage | None]]] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if not isinstance(message, AIMessage) or not message.tool_calls:
            continue
        answers: list[ToolMessage] = []
        while position < len(messages) and isinstance(answer := messages[position], ToolMessage):
            answers.append(answer)
            position += 1
        groups.append(_pair(message.tool_calls, answers))
    return groups


def _pair(calls: Sequence[ToolCall], answers: list[ToolMessage]) -> list[tuple[ToolCall, ToolMessage | None]]:
    by_id = {a.tool_call_id: a for a in answers if a.tool_call_id is not None}
    known = {call.id for call in calls if call.id is not None}
    unnamed = iter([a for a in answers if a.tool_call_id not in known])
    return [(call, by_id[call.id] if call.id in by_id else next(unnamed, None)) for call in calls]
