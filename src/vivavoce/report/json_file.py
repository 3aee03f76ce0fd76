"""A graded run as JSON, one document or a line for each conversation; turns and trials count from 0, as in records."""

from __future__ import annotations

import json
from typing import Any, TextIO

from vivavoce.records.run import Outcome
from vivavoce.report.finding import finding
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.strict_json import strict_json


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
    if (drawn := outcome.attempt.drawn) is not None:
        data["attempt"]["drawn"] = drawn._asdict()
    return data
