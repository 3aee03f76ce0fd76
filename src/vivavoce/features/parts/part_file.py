"""The file of a part that is done, in Parquet, and what the parts of a job show so far.

A row is a conversation: `sample_id`, `target`, `trial` (from 0), `position` in the plan of the run, `failure` (its
kind, where it ended with an error), `seconds`, and `scores`, by grader a structure of `value`, `measured`, `passed`,
`state`, `reason` and `kind` for the whole conversation. `record` is all that a store keeps of it, as JSON. The metadata
of the file, under `vivavoce`, has the run, its set of scores, and the rows that are not conversations.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.errors import UsageError
from vivavoce.files.frames import load_extra
from vivavoce.files.places import Folder
from vivavoce.grading.scores import ErrorLimit
from vivavoce.records.run import AttemptKey, BreachKind, Grading, Run, ScoreRow, Severity, stored_breaches
from vivavoce.records.score import BREACH, UNSUPPORTED
from vivavoce.run.summary import Summary, summarise
from vivavoce.run.tallies import tally
from vivavoce.run.verdict import Rules
from vivavoce.store.runs.reading import by_tester
from vivavoce.store.runs.rows import AttemptCells, Entry, ScoreCells, TurnCells, measured_in
from vivavoce.suites.expectations import requirements_of

SUFFIX = ".parquet"
_ABOUT = b"vivavoce"
_ROWS = 512
_FLAT = ("sample_id", "target", "trial", "failure", "scores", "record")


class RowProblem(BaseModel):
    """A row of a file that is not a conversation; `row` counts from 1."""

    model_config = ConfigDict(frozen=True)

    row: int
    message: str


class About(BaseModel):
    """What a part says of itself: the file that its rows are of; `errors` counts the conversations with one.

    Without a `run` none of its rows was a conversation.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    run: Run | None = None
    grading: Grading | None = None
    errors: int = 0
    problems: list[RowProblem] = Field(default_factory=list[RowProblem])


@dataclass(frozen=True, slots=True)
class PartReader:
    """Reads the file of a part."""

    about: About
    _file: Any

    @property
    def conversations(self) -> int:
        """How many conversations it has."""
        return self._file.metadata.num_rows

    def entries(self) -> Iterator[Entry]:
        """Yield its conversations as a store keeps them."""
        for batch in self._file.iter_batches(batch_size=_ROWS, columns=["record"]):
            yield from map(_entry, batch.column(0).to_pylist())

    def scores(self) -> Iterator[tuple[AttemptKey, str | None, list[ScoreRow]]]:
        """Yield the key of each conversation, the kind of its failure, and its scores as statistics need them."""
        for batch in self._file.iter_batches(batch_size=_ROWS, columns=list(_FLAT)):
            yield from map(_scores, batch.to_pylist())


def write_part(path: Path, about: About, entries: Iterable[Entry], graders: Sequence[str]) -> int:
    """Write the file of a part, and return how many conversations it has.

    Raises:
        OSError: it cannot be written.
    """
    arrow, parquet = load_extra("pyarrow", "writing Parquet"), load_extra("pyarrow.parquet", "writing Parquet")
    schema = _schema(arrow, graders).with_metadata({_ABOUT: about.model_dump_json().encode()})
    left, number = iter(entries), 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while some := [_row(entry, graders) for entry in islice(left, _ROWS)]:
            writer.write_batch(arrow.RecordBatch.from_pylist(some, schema=schema))
            number += len(some)
    return number


@contextmanager
def read_part(folder: Folder, name: str) -> Generator[PartReader]:
    """Open the file of a part in a folder of results.

    Raises:
        UsageError: it cannot be read, or is not such a file.
    """
    arrow, parquet = load_extra("pyarrow", "reading Parquet"), load_extra("pyarrow.parquet", "reading Parquet")
    place = folder.place_of(f"{name}{SUFFIX}")
    with folder.open(f"{name}{SUFFIX}") as opened:
        try:
            with parquet.ParquetFile(opened) as file:
                metadata: Mapping[bytes, bytes] = file.schema_arrow.metadata or {}
                text = metadata.get(_ABOUT)
                if text is None:
                    raise UsageError(f"{place}: is not the file of a part")
                yield PartReader(About.model_validate_json(text), file)
        except (arrow.ArrowException, OSError) as error:
            raise UsageError(f"{place}: cannot be read: {str(error).splitlines()[0]}") from error


def _schema(arrow: Any, graders: Sequence[str]) -> Any:
    score = arrow.struct(
        [
            ("value", arrow.float64()),
            ("measured", arrow.float64()),
            ("passed", arrow.bool_()),
            ("state", arrow.string()),
            ("reason", arrow.string()),
            ("kind", arrow.string()),
        ]
    )
    return arrow.schema(
        [
            ("sample_id", arrow.string()),
            ("target", arrow.string()),
            ("trial", arrow.int32()),
            ("position", arrow.int64()),
            ("failure", arrow.string()),
            ("seconds", arrow.float64()),
            ("scores", arrow.struct([(name, score) for name in graders])),
            ("record", arrow.string()),
        ]
    )


def _row(entry: Entry, graders: Sequence[str]) -> dict[str, Any]:
    attempt = entry.attempt
    assert attempt is not None
    scores = {score.name: score for score in entry.scores if score.turn is None}
    failure = None if attempt.failure is None else json.loads(attempt.failure).get("kind")
    return {
        **dict(zip(("sample_id", "target", "trial"), entry.key, strict=True)),
        "position": attempt.position,
        "failure": failure,
        "seconds": attempt.seconds,
        "scores": {name: _cells(scores[name]) if name in scores else None for name in graders},
        "record": json.dumps([attempt, entry.turns, entry.scores], ensure_ascii=False, separators=(",", ":")),
    }


def _cells(score: ScoreCells) -> dict[str, Any]:
    passed = None if score.passed is None else bool(score.passed)
    return {
        "value": score.value,
        "measured": measured_in(score.state, score.value, score.raw),
        "passed": passed,
        "state": score.state,
        "reason": score.reason,
        "kind": score.kind,
    }


def _entry(record: str) -> Entry:
    attempt, turns, scores = json.loads(record)
    cells = AttemptCells(*attempt)  # parts of earlier versions lack the last columns
    return Entry(
        key=AttemptKey(cells.sample_id, cells.target, cells.trial),
        attempt=cells,
        turns=[TurnCells._make(turn) for turn in turns],
        scores=[ScoreCells._make(score) for score in scores],
    )


def _scores(row: Mapping[str, Any]) -> tuple[AttemptKey, str | None, list[ScoreRow]]:
    key = AttemptKey(row["sample_id"], row["target"], row["trial"])
    scores: Mapping[str, Mapping[str, Any] | None] = row["scores"] or {}
    found = {name: one for name, one in scores.items() if one is not None}
    spoiled = _spoiled(row["record"]) if any(one["state"] == "error" for one in found.values()) else set[str]()
    doubtful, breaches = _unverified(row["record"]), _breaches(row["record"])
    rows = [_score_row(key, name, one, name in spoiled) for name, one in found.items()]
    more = {name: {"unverified": name in doubtful, "breaches": breaches.get(name, ())} for name in found}
    return key, row["failure"], [score._replace(**more[score.name]) for score in rows]


def _unverified(record: str) -> set[str]:
    """Return the graders whose judges claim something on evidence that is missing or not in the conversation."""
    if UNSUPPORTED not in record:
        return set()
    whole = [score for score in _entry(record).scores if score.turn is None and score.state == "scored"]
    return {one.name for one in whole if f'"{UNSUPPORTED}":' in (one.extra or "")}


def _breaches(record: str) -> dict[str, tuple[BreachKind, ...]]:
    """Return by grader the kinds of the false statements and broken rules that its judge found besides the goal."""
    if BREACH not in record:
        return {}
    whole = [score for score in _entry(record).scores if score.turn is None and score.state == "scored"]
    return {score.name: stored_breaches(score.findings) for score in whole}


def _spoiled(record: str) -> set[str]:
    """Return the graders whose scores the tester spoiled."""
    return {score.name for score in _entry(record).scores if score.turn is None and by_tester(score.failure)}


def _score_row(key: AttemptKey, name: str, one: Mapping[str, Any], spoiled: bool) -> ScoreRow:
    row = ScoreRow(key, one["kind"], name, one["state"], one["value"], one["passed"], spoiled)
    return row._replace(measured=one.get("measured"))  # parts of earlier versions have none


def summary_of(folder: Folder, names: Iterable[str], limit: ErrorLimit | None = None) -> Summary:
    """Return the summary of parts, which need not be all; a gate is decided when they are merged.

    `limit` is how many conversations may have an error.
    """
    counts = _Counts()
    tallies = tally(counts.rows(folder, sorted(names)))
    rules = Rules(requirements=counts.requirements, limit=limit, part=True)
    return summarise(tallies, attempts=counts.attempts, failed=counts.failed, rules=rules, errors=counts.errors)


class _Counts:
    """Counts conversations while their scores go by."""

    def __init__(self) -> None:
        self.attempts = self.failed = self.errors = 0
        self.requirements: dict[str, Severity] = {}

    def rows(self, folder: Folder, names: Iterable[str]) -> Iterator[ScoreRow]:
        """Yield the scores of parts."""
        for name in names:
            with read_part(folder, name) as part:
                if part.about.run is not None:
                    self.requirements |= requirements_of(part.about.run.spec)
                for _, failure, rows in part.scores():
                    self.attempts += 1
                    self.failed += failure is not None
                    self.errors += failure is not None or any(row.state == "error" for row in rows)
                    yield from rows
