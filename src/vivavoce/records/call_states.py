"""Which tool calls of a conversation happened, how each ended, and how many of them its record shows.

Pages, assertions, rules, metrics, ledgers, judges' transcripts, and recordings ask here. A field of the result decides;
the words of the result decide only where no field states an outcome.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, cast, get_args

from vivavoce.comparing.call_outcomes import CallOutcome, words_say_failed
from vivavoce.messages import AnyMessage, ToolCall, ToolMessage
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
    places = [
        place
        for place, message in enumerate(messages)
        if message.role == "assistant" and message.tool_calls
        for _ in message.tool_calls
    ]
    if not places:
        return []
    last_spoken = max((place for place, message in enumerate(messages) if message.role in _SPEAKERS), default=-1)
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


def _state(result: ToolMessage | None, *, is_last: bool) -> CallState:
    if result is not None:
        return outcome_of(result)
    return "requested" if is_last else "unanswered"


Source = Literal["canned", "recording", "function", "mcp", "user", "vivavoce"]
"""Who answered: a value in the suite, a recording, code, a server, the user who refused, or we who found a mistake."""

_MOCKED: dict[str, str] = {"canned": "canned", "recording": "recorded"}
_SAID: dict[str, str] = {"approve": "approved", "refuse": "refused"}


def notes_of(
    source: Source,
    seconds: float,
    *,
    approval: str | None,
    passed_over: str | None = None,
    changed_state: bool | None = None,
) -> dict[str, Any]:
    """Return the metadata of a result.

    `seconds` is how long it took, `approval` what the user had said, `passed_over` why what the row says of the tool
    was not the answer, `changed_state` whether it changed the state of the row, None where it gets none.
    """
    notes: dict[str, Any] = {"answered_by": source, "mocked": source in _MOCKED}
    if approval is not None:
        notes["approval"] = approval
    if passed_over is not None:
        notes["passed_over"] = passed_over
    if changed_state is not None:
        notes["changed_state"] = changed_state
    return {**notes, "seconds": round(seconds, 3)}


def error_of(result: ToolMessage) -> str | None:
    """Return what the result of a failed call says of the error: the `error` of a JSON object, or else its text.

    None stands for a call that did not fail.
    """
    if outcome_of(result) != "failed":
        return None
    text = result.text
    try:
        value: Any = json.loads(text) if '"error"' in text else None
    except (ValueError, RecursionError):
        value = None
    error = cast("dict[str, Any]", value).get("error") if isinstance(value, dict) else None
    if not error:
        return text
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, sort_keys=True)


def origin(message: ToolMessage) -> str:
    """Return in a word or two what a reader should know of a result: whether it was made up, and what the user said.

    A result that the row should perhaps have given says that it did not.
    """
    notes = message.metadata or {}
    refused = "refused" if message.stated_outcome == "refused" else None
    words = (_SAID.get(str(notes.get("approval"))) or refused, _MOCKED.get(str(notes.get("answered_by"))))
    passed_over = "not as in the row" if notes.get("passed_over") else None
    return ", ".join(word for word in (*words, passed_over) if word)


CallVisibility = Literal["all", "some", "none"]
"""With `all`, what has no call was not done. With `some` or `none`, a plain statement that it was done counts, too."""

BY_RECORD = "all where its record has any, else none"
"""What holds where neither the target nor its kind says how many calls are shown."""

_BY_KIND: Mapping[str, CallVisibility] = {
    "a2a": "none",
    "letta": "all",
    "letta_code": "all",
    "mcp": "none",
    "terminal": "none",
}
"""Kinds that reply with text alone, and kinds whose server reports each call that it makes.

A function, an object of a framework, a recording, and a reply over HTTP or a WebSocket may have messages with calls or
text alone, so their records decide.
"""

VISIBLE_CALLS = "visible_calls"
"""The attribute of a target, and the key in the metadata of a test, that says it."""


def default_calls(kind: str, *, offers_tools: bool = False) -> CallVisibility | None:
    """Return how many calls the record of a kind of target shows, None where the record decides.

    The calls of an `openai` target are all in its replies, for nobody else answers the tools that it is offered.
    """
    if kind == "openai":
        return "all" if offers_tools else "none"
    return _BY_KIND.get(kind)


def visible_calls(target: object) -> CallVisibility | None:
    """Return what a target declares in `visible_calls`, None where it declares nothing.

    Then the record decides: where it has any call it shows all, and where it has none it shows none.
    """
    return _read(getattr(target, VISIBLE_CALLS, None))


def recorded_calls(metadata: Mapping[str, object]) -> CallVisibility | None:
    """Return the same from the metadata of a test, as the target declared it when the test was held."""
    return _read(metadata.get(VISIBLE_CALLS))


def declare_visible_calls(target: object, calls: CallVisibility | None) -> None:
    """Declare it for a target; None changes nothing."""
    if calls is not None:
        setattr(target, VISIBLE_CALLS, calls)


def _read(declared: object) -> CallVisibility | None:
    for calls in get_args(CallVisibility):
        if declared == calls:
            return calls
    return None
