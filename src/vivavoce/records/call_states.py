"""Which tool calls of a conversation happened, and how each of them ended.

Pages, assertions, rules, metrics, ledgers, judges' transcripts, and recordings ask here. A field of the result decides;
the words of the result decide only where no field states an outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from vivavoce.comparing.call_outcomes import CallOutcome, words_say_failed
from vivavoce.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from vivavoce.records.trajectory import tool_results

CallState = Literal["requested", "refused", "unanswered", "failed", "succeeded"]
"""How far a call got: `requested` at the end of a conversation, `unanswered` where the conversation went on without a
result, `refused` where the user declined it or it was invalid, else how it ended."""
Outcome = Literal["succeeded", "failed"]
"""The outcomes that assertions and rules ask for."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call, the message that answers it, and its state; `message` is the index of the message that makes the call."""

    call: ToolCall
    result: ToolMessage | None
    state: CallState
    message: int

    @property
    def was_made(self) -> bool:
        """Whether the call counts as made; a log may lack the result of a call that was."""
        return self.state != "refused"

    def has_outcome(self, outcome: Outcome | None) -> bool:
        """Return whether the call was made and ended so; None stands for any end, and for none."""
        return self.was_made if outcome is None else self.state == outcome


def outcome_of(result: ToolMessage) -> CallOutcome:
    """Return how the call with this result ended."""
    return result.stated_outcome or ("failed" if words_say_failed(result.text) else "succeeded")


def call_records(messages: Sequence[AnyMessage]) -> list[CallRecord]:
    """Return every call of a conversation in order, with its result and its state."""
    last_spoken = max((place for place, message in enumerate(messages) if message.role in _SPEAKERS), default=-1)
    places = [place for place, message in enumerate(messages) for _ in _calls_of(message)]
    return [
        CallRecord(call, result, _state(result, is_last=place == last_spoken), place)
        for place, (call, result) in zip(places, tool_results(messages), strict=True)
    ]


def group_by_message(records: Sequence[CallRecord]) -> list[list[CallRecord]]:
    """Return the calls of each message that makes any; the order of those in one message means nothing."""
    return [list(group) for _, group in groupby(records, key=lambda record: record.message)]


def made_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """Return the calls of a conversation that were made, in order."""
    return [record.call for record in call_records(messages) if record.was_made]


_SPEAKERS = ("user", "assistant")


def _calls_of(message: AnyMessage) -> Sequence[ToolCall]:
    return (message.tool_calls or ()) if isinstance(message, AIMessage) else ()


def _state(result: ToolMessage | None, *, is_last: bool) -> CallState:
    if result is not None:
        return outcome_of(result)
    return "requested" if is_last else "unanswered"
