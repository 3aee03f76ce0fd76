"""Recordings: conversations as rows that replay them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from vivavoce.messages import AIMessage, AnyMessage, ToolMessage
from vivavoce.records.details import CallsCovered, DifferenceKind, DifferentConversations, PairedGrades
from vivavoce.records.details import RecordingSummary as Recorded
from vivavoce.records.recording import END, FORMAT, HEAD, RecordedCall, RecordedReply, RecordingHead
from vivavoce.records.run import Attempt
from vivavoce.records.score import conversation_label, turn_label
from vivavoce.records.trajectory import Turn, tool_results
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.strict_json import strict_json
from vivavoce.report.text import count, one_line
from vivavoce.run.summary import Summary
from vivavoce.tools.recordings import recorded_call
from vivavoce.unchecked import unchecked

_WORDS: dict[DifferenceKind, str] = {
    "said": "the user says something else",
    "length": "more or fewer turns",
    "call": "other calls of tools",
    "unrecorded": "a call that is not in the recording",
    "order": "the calls in another order",
    "result": "other results of tools",
    "reply": "the same calls, another reply",
}


def recorded_lines(summary: Summary) -> list[str]:
    """Return a line for each thing that is known, without markup; names in it are as the suite has them."""
    several = len(summary.recording) > 1
    return [
        f"{one.target}: {line}" if several and index == 0 else line
        for one in summary.recording
        for index, line in enumerate(lines_of(one))
    ]


def lines_of(one: Recorded) -> Iterator[str]:
    """Yield a line for each thing that is known of one target."""
    held = count(one.conversations, "conversation")
    rest = [f"{one.unrecorded:,} not in the recording"] if one.unrecorded else []
    rest += [f"{one.errors:,} ended with an error before a difference"] if one.errors else []
    yield "; ".join([f"as recorded: {one.same:,} of {held}", *rest])
    yield from map(_different, one.different)
    if calls := _calls(one.calls, one.ended):
        yield f"calls of tools: {calls}"
    yield from map(_paired, one.pairs)


def _different(one: DifferentConversations) -> str:
    where = f"{conversation_label(one.sample, one.trial)}, {turn_label(one.turn)}"
    first = "" if one.conversations == 1 else "the earliest: "
    return f"{_WORDS[one.kind]}: {one.conversations:,} ({first}{where}: {one_line(one.what, 300)})"


def _calls(calls: CallsCovered, ended: list[str]) -> str:
    """Return in words how calls are covered, empty where there are none."""
    parts = [
        (calls.answered, "answered from the recording"),
        (calls.live, "answered live"),
        (calls.missed, f"not in it ({'; '.join(ended)}{'; …' * (calls.missed > len(ended))})"),
    ]
    said = [f"{number:,} {words}" for number, words in parts if number]
    if calls.unused:
        more = calls.unused - len(calls.examples)
        named = ", ".join(calls.examples) + (f" and {more:,} more" if more > 0 else "")
        said.append(f"{calls.unused:,} recorded and not made: {named}")
    return ", ".join(said)


def _paired(one: PairedGrades) -> str:
    left = f", {one.left_out:,} without both scores" if one.left_out else ""
    alike = one.n - one.better - one.worse
    test = f", sign test p {one.p_value:.2g}" if one.better + one.worse else ""
    return (
        f"{one.grader}, {count(one.n, f'comparable {one.of}')}{left}: {one.better:,} better, {one.worse:,} worse, "
        f"{alike:,} the same; mean recorded {one.recorded:.3f}, now {one.new:.3f}{test}"
    )


_UNANSWERED = "the conversation ends before the target answered"


def write_recordings(graded: GradedRun, out: TextIO) -> None:
    """Write for each turn the calls that a tool answered, whoever that was, and the reply of the target."""
    run = graded.run
    head = RecordingHead(suite=run.suite, run=run.id, dataset=run.options.get("dataset"), version=run.version or None)
    _write(out, {HEAD: FORMAT, **head.model_dump(exclude_none=True)})
    for outcome in graded.outcomes():
        for line in _lines(outcome.attempt):
            _write(out, line.model_dump(mode="json"))
    _write(out, END)


def _write(out: TextIO, line: dict[str, Any]) -> None:
    out.write(strict_json(line) + "\n")


def _lines(attempt: Attempt) -> Iterator[RecordedCall | RecordedReply]:
    key, turns = attempt.key, attempt.trajectory.turns
    for index, turn in enumerate(turns):
        for call, answer in tool_results(turn.messages):
            recorded = None
            if answer is not None:
                recorded = recorded_call(key.sample_id, call, answer, trial=key.trial, turn=index)
            if recorded is not None:
                yield recorded
        opening = attempt.trajectory.opening if index == 0 else []
        state = attempt.trajectory.state if index == len(turns) - 1 else None
        about = {"sample": key.sample_id, "target": key.target, "trial": key.trial, "turn": index}
        yield unchecked(RecordedReply, {**about, "opening": opening, "state": state, **_reply(turn)})


def _reply(turn: Turn) -> dict[str, Any]:
    messages: list[AnyMessage] = [one for one in turn.messages if isinstance(one, AIMessage | ToolMessage)]
    said = next((one.content for one in turn.messages if one.role == "user"), None) or ""
    error = None if turn.failure is None else turn.failure.message
    if error is None and not messages:
        error = _UNANSWERED
    done = {"messages": messages} if error is None else {"error": error}
    return {"said": said, **done, "usage": turn.usage, "seconds": turn.seconds}
