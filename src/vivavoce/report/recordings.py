"""A run as a recording, from which another run can answer the same calls and the same messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from vivavoce.messages import AIMessage, AnyMessage, ToolMessage
from vivavoce.records.recording import END, FORMAT, HEAD, RecordedCall, RecordedReply, RecordingHead
from vivavoce.records.run import Attempt
from vivavoce.records.trajectory import Turn, tool_results
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.strict_json import strict_json
from vivavoce.tools.recordings import recorded_call
from vivavoce.validation import unchecked

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
    messages: list[AnyMessage] = [message for message in turn.messages if isinstance(message, AIMessage | ToolMessage)]
    said = next((message.content for message in turn.messages if message.role == "user"), None) or ""
    error = None if turn.failure is None else turn.failure.message
    if error is None and not messages:
        error = _UNANSWERED
    done = {"messages": messages} if error is None else {"error": error}
    return {"said": said, **done, "usage": turn.usage, "seconds": turn.seconds}
