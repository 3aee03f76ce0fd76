"""Flat rows, one for each score of a grading, and their files: CSV and Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

from vivavoce.files.frames import write_parquet
from vivavoce.records.run import Attempt, Grading, Outcome, Run
from vivavoce.records.score import Failure, Score, State, to_number
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.strict_json import strict_json
from vivavoce.safe_text import encodable
from vivavoce.store.store import Store


class FlatRow(NamedTuple):
    """One score with all its context; the fields are the columns of tables.

    `trial` and `turn` count from 1, because people read tables; `turn` is None for the whole conversation. The grader
    `reward` is the reward of the sample.
    `ground_truth` is text, or JSON text if it is anything else. `seconds` is how long the target took for
    the conversation, or for the turn. `blame`, `failure_kind` and `failure_message` are None unless something failed.
    `session`, from 1, and `user` are of a turn, where users come back in several sessions. `measured` is the number of
    a measurement, which has no score.
    """

    run: str
    grading: str
    sample_id: str
    target: str
    trial: int
    grader: str
    turn: int | None
    state: State
    score: float | None
    passed: bool | None
    rationale: str | None
    submission: str | None
    ground_truth: str | None
    blame: str | None
    failure_kind: str | None
    failure_message: str | None
    fingerprint: str | None
    scenario: str
    seconds: float | None
    session: int | None = None
    user: str | None = None
    measured: float | None = None


_NOT_TEXT = {
    "trial": "int32",
    "turn": "int32",
    "session": "int32",
    "score": "double",
    "passed": "bool",
    "seconds": "double",
    "measured": "double",
}
TYPES = {column: _NOT_TEXT.get(column, "string") for column in FlatRow._fields}
"""Arrow's types of the columns."""


def flat_rows(store: Store, run: Run, grading: Grading) -> Iterator[FlatRow]:
    """Yield the scores of a grading, a whole conversation before its turns, in the order of the store."""
    for outcome in store.outcomes(grading.id):
        yield from _rows(run, grading, outcome)


def _rows(run: Run, grading: Grading, outcome: Outcome) -> Iterator[FlatRow]:
    attempt = outcome.attempt
    turns = {turn.index: turn for turn in attempt.trajectory.turns}
    for name, score in outcome.scores.items():
        yield _row(run, grading, attempt, name, score, attempt.trajectory.seconds)
        for turn in score.turns or ():
            held = turns.get(turn.turn or 0)
            row = _row(run, grading, attempt, name, turn, held and held.seconds)
            mark = held and held.mark
            yield row if mark is None else row._replace(session=mark.number, user=mark.user)
    if outcome.reward is not None:
        yield _row(run, grading, attempt, "reward", outcome.reward, attempt.trajectory.seconds)


def _row(run: Run, grading: Grading, attempt: Attempt, name: str, score: Score, seconds: float | None) -> FlatRow:
    blame, kind, message = _failure(score.failure)
    return FlatRow(
        run=run.id,
        grading=grading.id,
        sample_id=attempt.key.sample_id,
        target=attempt.key.target,
        trial=to_number(attempt.key.trial),
        grader=name,
        turn=None if score.turn is None else to_number(score.turn),
        state=score.state,
        score=score.value,
        passed=score.passed,
        rationale=score.reason,
        submission=None if name == "reward" else score.submission,
        ground_truth=truth_text(score.ground_truth),
        blame=blame,
        failure_kind=kind,
        failure_message=message,
        fingerprint=grading.fingerprints.get(name),
        scenario=attempt.scenario,
        seconds=seconds,
        measured=score.measured,
    )


def truth_text(truth: object) -> str | None:
    """Return a ground truth as text: text as it is, anything else as JSON, None if there is none."""
    return truth if truth is None or isinstance(truth, str) else strict_json(truth)


def _failure(failure: Failure | None) -> tuple[str | None, str | None, str | None]:
    return (None, None, None) if failure is None else (failure.blame, failure.kind, failure.message)


FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
"""What makes a spreadsheet read a cell as a formula.

Source: OWASP, CSV Injection.
"""


def write_csv(graded: GradedRun, out: TextIO) -> None:
    """Write a header and the flat rows; a missing value is an empty cell.

    Models and targets write the texts, and a spreadsheet runs a cell such as `=HYPERLINK(…)` when the file is opened.
    So a text that starts like a formula gets an apostrophe in front, in CSV only: JSONL and Parquet hold it unchanged.
    """
    writer = csv.writer(out)
    writer.writerow(FlatRow._fields)
    for row in flat_rows(graded.store, graded.run, graded.grading):
        writer.writerow([cell(value) if isinstance(value, str) else value for value in row])


def cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet takes for a formula."""
    written = encodable(text)
    return f"'{written}" if written.startswith(FORMULA_STARTS) else written


def write_parquet_file(graded: GradedRun, path: Path) -> None:
    """Write the flat rows in batches; a missing value is null.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    write_parquet(path, FlatRow._fields, _values(graded), TYPES)


def _values(graded: GradedRun) -> Iterator[dict[str, object]]:
    for row in flat_rows(graded.store, graded.run, graded.grading):
        yield {name: encodable(cell) if isinstance(cell, str) else cell for name, cell in row._asdict().items()}
