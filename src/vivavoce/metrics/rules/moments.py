"""What happens in a conversation, moment by moment: each call of a tool, and each message with words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from vivavoce.comparing.text import is_blank
from vivavoce.messages import AIMessage, AnyMessage, SystemMessage, ToolCall
from vivavoce.metrics.exact.arguments import Arguments, show
from vivavoce.metrics.exact.paths import at_path
from vivavoce.metrics.transcript import named
from vivavoce.records.agents import Agents
from vivavoce.records.call_states import CallRecord, CallState, call_records
from vivavoce.records.failure import shorten
from vivavoce.safe_text import quoted

Speaker = Literal["user", "assistant", "tool"]
_SHOWN = 80
"""Characters of a message that are shown in a sentence."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A call or the words of a message; `turn` counts from 0, None for what precedes the first user message.

    `message` and `end` are indexes of messages from 0: a call lasts from the message that makes it to that with its
    result. `args` are None where they are not a JSON object. `state` is that of a call. `agent` is
    the one of several that acts, as far as it is named; a moment with a `receiver` is that of a handoff to it.
    """

    turn: int | None
    message: int
    end: int
    speaker: Speaker = "assistant"
    text: str = ""
    call: ToolCall | None = None
    reference: str = ""
    args: Arguments | None = None
    result: str | None = None
    state: CallState | None = None
    agent: str | None = None
    receiver: str | None = None

    @property
    def made(self) -> bool:
        """Whether this is more than a call that was only tried."""
        return self.state != "refused"

    def before(self, other: Moment) -> bool:
        """Say whether this was over when the other began."""
        return self.end < other.message

    def turns_from(self, other: Moment) -> int:
        """Return how many turns lie between the two, 0 in the same turn."""
        return abs(_number(self.turn) - _number(other.turn))

    def argument(self, path: str) -> tuple[JsonValue] | None:
        """Return an argument of the call, alone in a tuple, or a value inside of one; None where it is not there."""
        return None if self.args is None else at_path(dict(self.args), path)

    @property
    def is_unread(self) -> bool:
        """Whether it is a call with arguments that are not a JSON object."""
        return self.call is not None and self.args is None

    @property
    def line(self) -> str:
        """What happened, with all that others wrote in it quoted."""
        if self.receiver is not None:
            return f"handoff to {named(self.receiver)}"
        if self.call is None:
            return f"{self.speaker}: {quoted(shorten(self.text, _SHOWN))}"
        arguments = show(self.args) if self.args is not None else quoted(shorten(self.call.function.arguments, _SHOWN))
        return f"{named(self.call.name)}({arguments})"


def moments(messages: Sequence[AnyMessage]) -> Iterator[Moment]:
    """Yield the moments of a conversation in their order: the words of a message, its calls, and a handoff."""
    agents = Agents(messages)
    over = {one.message: one for one in agents.handoffs() if one.how != "unstated"}
    places = {id(message): place for place, message in enumerate(messages)}
    records = iter(call_records(messages))
    turn, count = None, 0
    for place, message in enumerate(messages):
        if message.role == "user":
            turn = 0 if turn is None else turn + 1
        if not isinstance(message, SystemMessage) and (words := _words(message)):
            yield Moment(turn, place, place, message.role, words, agent=agents.acting[place])
        for _ in (message.tool_calls or ()) if isinstance(message, AIMessage) else ():
            record = next(records)
            end = place if record.result is None else places[id(record.result)]
            yield _of_call(record, turn, end, f"c{count}", agents.acting[place])
            count += 1
        if (handoff := over.get(place)) is not None:
            made = message.tool_calls or [] if isinstance(message, AIMessage) else []
            at = next((number for number, call in enumerate(made) if call is handoff.call), None)
            reference = "" if at is None else f"c{count - len(made) + at}"
            yield Moment(turn, place, place, reference=reference, agent=handoff.sender, receiver=handoff.receiver)


def _of_call(record: CallRecord, turn: int | None, end: int, reference: str, agent: str | None) -> Moment:
    try:
        args = record.call.args
    except (ValueError, RecursionError):  # a model may have written invalid JSON, or nested it too deeply
        args = None
    return Moment(
        turn,
        record.message,
        end,
        call=record.call,
        reference=reference,
        args=args,
        result=None if record.result is None else record.result.text,
        state=record.state,
        agent=agent,
    )


def _words(message: AnyMessage) -> str:
    """Return the words of a message, which for a marked refusal stand elsewhere."""
    words = message.words if isinstance(message, AIMessage) else message.text
    return "" if is_blank(words) else words


def _number(turn: int | None) -> int:
    return -1 if turn is None else turn
