"""A graded run as JSON, where turns and trials count from 0 as in records, and as a recording to answer from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TextIO

from vivavoce.messages import AIMessage, AnyMessage, ToolMessage
from vivavoce.records.recording import END, FORMAT, HEAD, RecordedCall, RecordedReply, RecordingHead
from vivavoce.records.run import Attempt, Outcome
from vivavoce.records.trajectory import Turn, tool_results
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import strict_json
from vivavoce.report.verdict import finding
from vivavoce.tools.recordings import recorded_call
from vivavoce.validation import construct


def write_json(graded: GradedRun, out: TextIO) -> None:
    """Write one document: `run`, `grading`, `summary`, `finding`, `errors`, `comments`, and `samples` with scores.

    `errors` are grouped by what they say, the most frequent first.
    """
    summary = graded.summary()
    head = {
        "run": graded.run.model_dump(),
        "grading": graded.grading.model_dump(exclude={"summary"}),
        "summary": summary.model_dump(),
        "finding": finding(summary, graded.grading),
        "errors": graded.store.browse.errors_alike(graded.grading.id).groups,
        "comments": list(graded.store.comments.all(graded.run.id)),
    }
    out.write("{\n" + "".join(f'"{name}":{strict_json(part)},\n' for name, part in head.items()) + '"samples":[')
    for i, outcome in enumerate(graded.outcomes()):
        out.write((",\n" if i else "\n") + strict_json(sample_data(outcome)))
    out.write("\n]\n}\n")


def write_jsonl(graded: GradedRun, out: TextIO) -> None:
    """Write a line for each conversation, complete: `Outcome.model_validate_json` reads it back."""
    for outcome in graded.outcomes():
        data = _plain(outcome)
        data["attempt"]["key"] = outcome.attempt.key._asdict()
        out.write(strict_json(data) + "\n")


def sample_data(outcome: Outcome) -> dict[str, Any]:
    """Return a conversation with its sample, its transcript and its scores as plain data, each thing once."""
    data = _plain(outcome)
    attempt = data.pop("attempt")
    del attempt["key"]
    return {**outcome.attempt.key._asdict(), **attempt, "sample": json.loads(outcome.attempt.sample), **data}


def _plain(outcome: Outcome) -> dict[str, Any]:
    """Return it as data; unset fields are left out, so that messages keep their original shape."""
    data = outcome.model_dump(exclude_unset=True)
    if (draw := outcome.attempt.drawn) is not None:
        data["attempt"]["drawn"] = draw._asdict()
    return data


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
        yield construct(RecordedReply, {**about, "opening": opening, "state": state, **_reply(turn)})


def _reply(turn: Turn) -> dict[str, Any]:
    messages: list[AnyMessage] = [message for message in turn.messages if isinstance(message, AIMessage | ToolMessage)]
    text = next((message.content for message in turn.messages if message.role == "user"), None) or ""
    error = None if turn.failure is None else turn.failure.message
    if error is None and not messages:
        error = _UNANSWERED
    done = {"messages": messages} if error is None else {"error": error}
    return {"said": text, **done, "usage": turn.usage, "seconds": turn.seconds}
