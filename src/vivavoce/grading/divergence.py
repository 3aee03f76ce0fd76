"""Where a conversation stopped being as it was recorded: its turns beside the recorded ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vivavoce.comparing.json_values import same_json
from vivavoce.messages import AIMessage, AnyMessage, Content, ToolCall, ToolMessage
from vivavoce.metrics.exact.arguments import show
from vivavoce.records.as_recorded import MOST_EXAMPLES, CallsCovered, Difference, DifferenceKind
from vivavoce.records.counting import turn_label
from vivavoce.records.recording import UNRECORDED, RecordedConversation, RecordedReply, same_words
from vivavoce.records.trajectory import Trajectory, Turn, answer_of_turn, tool_calls, tool_results

_BEFORE = 30
"""Characters that a quote shows before the place where two texts begin to differ."""
_SHOWN = 100
"""Characters of a quote."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A conversation beside a recorded one: how many turns are the same, and the first difference, None for none."""

    recorded: RecordedConversation
    same: int
    difference: Difference | None


def nearest(recorded: Sequence[RecordedConversation], held: Trajectory) -> Compared:
    """Compare a conversation with that one of several recorded ones which it follows for the most turns."""
    found = [_compared(one, held) for one in recorded]
    return max(found, key=lambda one: (one.difference is None, one.same))


def _compared(recorded: RecordedConversation, held: Trajectory) -> Compared:
    same = 0
    for turn, reply in zip(held.turns, recorded.turns, strict=False):
        found = _in_turn(turn, reply)
        if found is not None:
            kind, what = found
            return Compared(recorded, same, Difference(kind=kind, turn=same, what=what))
        if turn.failure is not None:
            return Compared(recorded, same, None)
        same += 1
    if held.failure is None and len(held.turns) != recorded.answered:
        longer, shorter = ("new", "recorded") if len(held.turns) > same else ("recorded", "new")
        what = f"the {shorter} conversation has no {turn_label(same)}, and the {longer} one goes on"
        return Compared(recorded, same, Difference(kind="length", turn=same, what=what))
    return Compared(recorded, same, None)


def _in_turn(turn: Turn, reply: RecordedReply) -> tuple[DifferenceKind, str] | None:
    """Return in what a turn differs from the recorded one, in words; None where it does not, or was not answered."""
    said = next((one.content for one in turn.messages if one.role == "user"), None)
    if not same_words(said, reply.said):
        return "said", f"the user says {_beside(_text(said), _text(reply.said))}"
    if turn.failure is not None:
        return ("unrecorded", turn.failure.message) if turn.failure.kind == UNRECORDED else None
    if reply.error is not None:
        return "length", f"when it was recorded, this turn ended with an error: {_quoted(reply.error)}"
    if calls := _calls_differ(turn.messages, reply.messages):
        return calls
    if results := _results_differ(turn.messages, reply.messages):
        return "result", results
    new, old = answer_of_turn(turn.messages), answer_of_turn(reply.messages)
    return None if same_words(new, old) else ("reply", f"the reply is {_beside(new, old)}")


def _calls_differ(new: Sequence[AnyMessage], old: Sequence[AnyMessage]) -> tuple[DifferenceKind, str] | None:
    """Return how calls differ; those that one message makes at once have no order."""
    made, recorded = _ordered(new), _ordered(old)
    added, missing = _without(made, recorded), _without(recorded, made)
    phrases: list[str] = []
    for call in added:
        other = next((one for one in missing if one.name == call.name), None)
        if other is None:
            phrases.append(f"{_shown(call)} is called, which is not recorded here")
        else:
            missing.remove(other)
            phrases.append(f"{_shown(call)} is called, recorded is {_shown(other)}")
    phrases += [f"{_shown(call)} is recorded, and is not called" for call in missing]
    if phrases:
        return "call", "; ".join(phrases[:MOST_EXAMPLES])
    if not all(map(_same_call, made, recorded)):
        return "order", f"the calls come as {_listed(made)}, recorded is {_listed(recorded)}"
    return None


def _results_differ(new: Sequence[AnyMessage], old: Sequence[AnyMessage]) -> str | None:
    """Return which result of a call is another than the recorded one, None where none is."""
    left = tool_results(old)
    for call, result in tool_results(new):
        place = next(index for index, (other, _) in enumerate(left) if _same_call(call, other))
        _, then = left.pop(place)
        if (result is None) != (then is None):
            return f"{_shown(call)} {'has no result' if result is None else 'has a result'}, other than recorded"
        if result is not None and then is not None and not same_words(result.text, then.text):
            return f"{_shown(call)} returns {_beside(result.text, then.text)}"
    return None


def covered(recorded: RecordedConversation, held: Trajectory) -> CallsCovered:
    """Return how a recording covers the calls of a conversation."""
    by = [(one.metadata or {}).get("answered_by") for one in held.messages if isinstance(one, ToolMessage)]
    unused = _without(tool_calls(recorded.messages), tool_calls(held.messages))
    missed = held.failure is not None and held.failure.kind == UNRECORDED
    return CallsCovered(
        answered=by.count("recording"),
        live=len(by) - sum(map(by.count, ("recording", "canned", "user", "vivavoce"))),
        missed=int(missed),
        unused=len(unused),
        examples=list(dict.fromkeys(map(_shown, unused)))[:MOST_EXAMPLES],
    )


def _ordered(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """Return the calls in order, those of one message sorted."""
    steps = [list(one.tool_calls or ()) for one in messages if isinstance(one, AIMessage)]
    return [call for step in steps for call in sorted(step, key=_shown)]


def _without(calls: Sequence[ToolCall], others: Sequence[ToolCall]) -> list[ToolCall]:
    """Return calls without those that are also among others, each counted once."""
    left = list(others)
    found: list[ToolCall] = []
    for call in calls:
        place = next((index for index, one in enumerate(left) if _same_call(call, one)), None)
        if place is None:
            found.append(call)
        else:
            del left[place]
    return found


def _same_call(one: ToolCall, other: ToolCall) -> bool:
    if one.name != other.name:
        return False
    try:
        return same_json(one.args, other.args)
    except (ValueError, RecursionError):
        return one.function.arguments == other.function.arguments


def _shown(call: ToolCall) -> str:
    try:
        return f"{call.name}({show(call.args)})"
    except (ValueError, RecursionError):
        return f"{call.name}({call.function.arguments[:_SHOWN]})"


def _listed(calls: Sequence[ToolCall]) -> str:
    return ", ".join(map(_shown, calls[:MOST_EXAMPLES]))


def _text(content: Content | None) -> str:
    return content if isinstance(content, str) else "a message of several parts"


def _beside(new: str, old: str) -> str:
    """Return two texts as quotes that begin shortly before they differ."""
    one, other = " ".join(new.split()), " ".join(old.split())
    alike = sum(1 for _ in _common(one, other))
    start = max(0, alike - _BEFORE)
    start = 0 if start < _BEFORE else start
    return f"{_quoted(one, start)}, recorded is {_quoted(other, start)}"


def _common(one: str, other: str) -> Iterator[str]:
    for a, b in zip(one, other, strict=False):
        if a != b:
            return
        yield a


def _quoted(text: str, start: int = 0) -> str:
    if not text:
        return "nothing"
    end = "…" if len(text) > start + _SHOWN else ""
    return f"“{'…' if start else ''}{text[start : start + _SHOWN]}{end}”"
