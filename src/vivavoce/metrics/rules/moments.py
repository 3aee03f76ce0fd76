"""What happens in a conversation, moment by moment: each call of a tool, and each message with words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from vivavoce.comparing.text import is_blank
from vivavoce.messages import AIMessage, AnyMessage, SystemMessage, ToolCall, ToolMessage
from vivavoce.metrics.exact.arguments import Arguments, show
from vivavoce.metrics.exact.paths import at_path
from vivavoce.metrics.exact.refusal import declined
from vivavoce.metrics.transcript import named
from vivavoce.records.agents import Agents
from vivavoce.records.answered import was_made
from vivavoce.records.failure import shorten
from vivavoce.records.trajectory import tool_results
from vivavoce.safe_text import quoted

Speaker = Literal["user", "assistant", "tool"]
_SHOWN = 80
"""Characters of a message that are shown in a sentence."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A call or the words of a message; `turn` counts from 0, None for what precedes the first user message.

    `message` and `end` are indexes of messages from 0: a call lasts from the message that makes it to that with its
    result. `args` are None where they are not a JSON object. `made` is False for a call that was only tried. `agent` is
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
    made: bool = True
    agent: str | None = None
    receiver: str | None = None

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
    results = iter(tool_results(messages))
    turn, count = None, 0
    for place, message in enumerate(messages):
        if message.role == "user":
            turn = 0 if turn is None else turn + 1
        if not isinstance(message, SystemMessage) and (words := _words(message)):
            yield Moment(turn, place, place, message.role, words, agent=agents.acting[place])
        for _ in (message.tool_calls or ()) if isinstance(message, AIMessage) else ():
            call, result = next(results)
            end = place if result is None else places[id(result)]
            yield _called(
                Moment(turn, place, end, call=call, reference=f"c{count}", agent=agents.acting[place]), result
            )
            count += 1
        if (handoff := over.get(place)) is not None:
            made = message.tool_calls or [] if isinstance(message, AIMessage) else []
            at = next((number for number, call in enumerate(made) if call is handoff.call), None)
            reference = "" if at is None else f"c{count - len(made) + at}"
            yield Moment(turn, place, place, reference=reference, agent=handoff.sender, receiver=handoff.receiver)


def _called(made: Moment, result: ToolMessage | None) -> Moment:
    assert made.call is not None
    try:
        args = made.call.args
    except (ValueError, RecursionError):  # a model may have written invalid JSON, or nested it too deeply
        args = None
    text = None if result is None else result.text
    return Moment(
        made.turn,
        made.message,
        made.end,
        call=made.call,
        reference=made.reference,
        args=args,
        result=text,
        made=was_made(result),
        agent=made.agent,
    )


def _words(message: AnyMessage) -> str:
    """Return the words of a message, which for a marked refusal stand elsewhere."""
    refusal = declined(message) if isinstance(message, AIMessage) else None
    return refusal or "" if is_blank(message.text) else message.text


def _number(turn: int | None) -> int:
    return -1 if turn is None else turn
