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
    """Return the words of each assistant message, empty without any; one that only calls tools is left out."""
    return [words for m in messages if m.role == "assistant" if (words := m.words) or not m.tool_calls]


def last_turn_of(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Return the messages from the last one of the user on; all of them where the user says nothing."""
    places = (place for place in range(len(messages) - 1, -1, -1) if messages[place].role == "user")
    return messages[next(places, 0) :]


def answer_of_turn(messages: Sequence[AnyMessage]) -> str:
    """Return the answer to the last message of the user: the last words of the assistant after it.

    A message that only calls tools is not an answer, so the words before it in the same turn are. A turn without words
    has an empty answer; an answer to an earlier message of the user never counts.
    """
    texts = assistant_texts(last_turn_of(messages))
    return texts[-1] if texts else ""


def tool_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """Return every tool call in order, parallel ones in the order the model wrote them."""
    return [call for m in messages if isinstance(m, AIMessage) for call in m.tool_calls or ()]


def tool_results(messages: Sequence[AnyMessage]) -> list[tuple[ToolCall, ToolMessage | None]]:
    """Pair every tool call with the message that answers it; `records.call_states` says how the call ended.

    A result with an id answers the latest call with that id, wherever it is; of several results, the last one counts.
    Where the result or the call has no id, the results are paired in order with the calls of the assistant message that
    they directly follow. A result with the id of another call, or of none, never answers a call with an id.
    """
    calls: list[ToolCall] = []
    results: dict[int, ToolMessage] = {}
    by_id: dict[str, list[int]] = {}
    block = range(0)
    without_call: list[ToolMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            numbers = by_id.get(message.tool_call_id) if message.tool_call_id else None
            if numbers:
                waiting = (number for number in numbers if number not in results)
                results[next(waiting, numbers[-1])] = message
            elif block:
                without_call.append(message)
            continue
        if without_call:
            _pair_in_order(calls, block, without_call, results)
            without_call = []
        own = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
        block = range(len(calls), len(calls) + len(own))
        calls += own
        in_message: dict[str, list[int]] = {}
        for number, call in zip(block, own, strict=True):
            if call.id:
                in_message.setdefault(call.id, []).append(number)
        by_id |= in_message
    _pair_in_order(calls, block, without_call, results)
    return [(call, results.get(number)) for number, call in enumerate(calls)]


def _pair_in_order(
    calls: Sequence[ToolCall],
    block: Sequence[int],
    without_call: Sequence[ToolMessage],
    results: dict[int, ToolMessage],
) -> None:
    for result in without_call:
        waiting = (number for number in block if number not in results)
        number = next((number for number in waiting if not (result.tool_call_id and calls[number].id)), None)
        if number is not None:
            results[number] = result
