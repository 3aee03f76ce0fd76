"""Tables of a graded run: its samples, scores, turns, and labels; and rows of scores as files, in CSV and Parquet."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TextIO

from vivavoce.files.frames import write_parquet
from vivavoce.messages import HumanMessage
from vivavoce.records.run import Attempt, Grading, Outcome, Run
from vivavoce.records.score import Failure, Score, State, to_number
from vivavoce.records.trajectory import Trajectory, Turn, assistant_texts, made_calls
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import strict_json
from vivavoce.run.summary import RunResult
from vivavoce.safe_text import encodable
from vivavoce.samples.table import Table, table_of
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
            trajectory_turn = turns.get(turn.turn or 0)
            row = _row(run, grading, attempt, name, turn, trajectory_turn and trajectory_turn.seconds)
            mark = trajectory_turn and trajectory_turn.mark
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
    encoded = encodable(text)
    return f"'{encoded}" if encoded.startswith(FORMULA_STARTS) else encoded


def write_parquet_file(graded: GradedRun, path: Path) -> None:
    """Write the flat rows in batches; a missing value is null.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    write_parquet(path, FlatRow._fields, _values(graded), TYPES)


def _values(graded: GradedRun) -> Iterator[dict[str, object]]:
    for row in flat_rows(graded.store, graded.run, graded.grading):
        yield {name: encodable(cell) if isinstance(cell, str) else cell for name, cell in row._asdict().items()}


Cells = dict[str, object]

_CONVERSATION = {"run": "string", "grading": "string", "sample_id": "string", "target": "string", "trial": "int32"}
_USED = {
    "seconds": "double",
    "input_tokens": "int64",
    "output_tokens": "int64",
    "cost": "double",
    "failure_kind": "string",
    "failure_message": "string",
}
_SAMPLES = {
    **_CONVERSATION,
    "scenario": "string",
    "started_at": "double",
    "turns": "int32",
    "user": "string",
    "assistant": "string",
    **_USED,
}
_TURNS = {
    **_CONVERSATION,
    "turn": "int32",
    "user": "string",
    "assistant": "string",
    "tool_calls": "string",
    **_USED,
}
_LABELS = {
    **_CONVERSATION,
    "turn": "int32",
    "grader": "string",
    "author": "string",
    "verdict": "string",
    "note": "string",
    "blind": "bool",
    "created_at": "double",
}


def result_table(result: RunResult, name: str) -> Table:
    """Return a table of a result, read from its store."""
    with closing(Store.open(result.place, create=False)) as store:
        return run_table(GradedRun(store, result.run, result.grading), name)


def run_table(graded: GradedRun, name: str) -> Table:
    """Return a table of a graded run: `samples`, `scores`, `turns` or `labels`."""
    return _MAKERS[name](graded)


def _scores(graded: GradedRun) -> Table:
    return table_of((row._asdict() for row in flat_rows(graded.store, graded.run, graded.grading)), TYPES)


def _samples(graded: GradedRun) -> Table:
    outcomes = ({**_place(graded, outcome), **_sample(outcome)} for outcome in graded.outcomes())
    return _with_graders(outcomes, _SAMPLES)


def _turns(graded: GradedRun) -> Table:
    rows = (
        {**_place(graded, outcome), **_turn(turn), **_score_cells(_of_turn(outcome, turn.index))}
        for outcome in graded.outcomes()
        for turn in outcome.attempt.trajectory.turns
    )
    return _with_graders(rows, _TURNS)


def _labels(graded: GradedRun) -> Table:
    known = {"run": graded.run.id, "grading": graded.grading.id}
    rows = (
        {
            **label.model_dump(),
            **known,
            "trial": to_number(label.trial),
            "turn": None if label.turn is None else to_number(label.turn),
        }
        for label in graded.store.labels.all(graded.run.id)
    )
    return table_of(rows, _LABELS)


_MAKERS: Mapping[str, Callable[[GradedRun], Table]] = {
    "samples": _samples,
    "scores": _scores,
    "turns": _turns,
    "labels": _labels,
}


def _with_graders(rows: Iterable[Cells], types: Mapping[str, str]) -> Table:
    """Return a table with a column for each grader next to those of `types`."""
    all_rows = list(rows)
    graders = dict.fromkeys(column for row in all_rows for column in row if column not in types)
    grader_types = {column: "bool" if column.startswith("passed.") else "double" for column in graders}
    return table_of(all_rows, {**types, **grader_types})


def _place(graded: GradedRun, outcome: Outcome) -> Cells:
    key = outcome.attempt.key
    names = {"run": graded.run.id, "grading": graded.grading.id, "sample_id": key.sample_id, "target": key.target}
    return {**names, "trial": to_number(key.trial)}


def _sample(outcome: Outcome) -> Cells:
    attempt, talk = outcome.attempt, outcome.attempt.trajectory
    used = talk.usage if any(turn.usage for turn in talk.turns) else None
    scores = outcome.scores if outcome.reward is None else {**outcome.scores, "reward": outcome.reward}
    return {
        "scenario": attempt.scenario,
        "started_at": attempt.started_at,
        "turns": len(talk.turns),
        **_last_texts(talk.turns[-1] if talk.turns else None),
        **_time_and_failure(talk),
        "input_tokens": used and used.input_tokens,
        "output_tokens": used and used.output_tokens,
        "cost": used and used.cost,
        **_score_cells(scores.items()),
    }


def _turn(turn: Turn) -> Cells:
    calls = made_calls(turn.messages)
    return {
        "turn": to_number(turn.index),
        **_last_texts(turn),
        "tool_calls": strict_json([call.function for call in calls]) if calls else None,
        **_time_and_failure(turn),
        "input_tokens": turn.usage and turn.usage.input_tokens,
        "output_tokens": turn.usage and turn.usage.output_tokens,
        "cost": turn.usage and turn.usage.cost,
    }


def _last_texts(turn: Turn | None) -> Cells:
    """Return what the user and the assistant said last."""
    messages = [] if turn is None else turn.messages
    user = next((message.text for message in messages if isinstance(message, HumanMessage)), None)
    return {"user": user, "assistant": "\n".join(filter(None, assistant_texts(messages))) or None}


def _time_and_failure(part: Turn | Trajectory) -> Cells:
    failure = part.failure
    kind, message = (None, None) if failure is None else (failure.kind, failure.message)
    return {"seconds": part.seconds, "failure_kind": kind, "failure_message": message}


def _of_turn(outcome: Outcome, index: int) -> Iterator[tuple[str, Score]]:
    for name, score in outcome.scores.items():
        yield from ((name, turn) for turn in score.turns or () if turn.turn == index)


def _score_cells(scores: Iterable[tuple[str, Score]]) -> Cells:
    cells: Cells = {}
    for name, score in scores:
        if score.measured is not None:
            cells[f"measured.{name}"] = score.measured
        else:
            cells |= {f"score.{name}": score.value, f"passed.{name}": score.passed}
    return cells
