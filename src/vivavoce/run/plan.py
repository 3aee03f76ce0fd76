"""The plan of a run: which samples, against which targets, how often, and how many attempts that makes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from vivavoce.conversation import ConversationHistory
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.records.run import AttemptKey
from vivavoce.run.attempt import Task
from vivavoce.run.drivers import Driver
from vivavoce.run.summary import ErrorLimit
from vivavoce.samples.evaluation import MultiTurnSample, SingleTurnSample
from vivavoce.samples.row import read_sample
from vivavoce.samples.rows import read_samples
from vivavoce.samples.sample import Sample
from vivavoce.suites.dataset import dataset_source
from vivavoce.suites.load import Suite

RECORDED = "recorded"
"""The name of the target in a replay: whoever it was that was recorded."""


GIVEN_IN_PYTHON = "given in Python"
"""The dataset of a run over conversations that are in no file, or in one that only its caller can find again."""


GivenRow = Mapping[str, Any] | Sample | MultiTurnSample | SingleTurnSample | ConversationHistory
"""A recorded conversation with what is known about it; a single question with its response is one too."""


class RunOptions(BaseModel):
    """What a caller may set for one run, over what the suite says; None leaves it to the suite."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trials: int | None = Field(default=None, ge=1)
    max_samples: int | None = Field(default=None, ge=1)
    tags: list[str] | None = None
    samples: list[str] | None = None
    max_concurrent: int | None = Field(default=None, ge=1)
    max_calls: int | None = Field(default=None, ge=0)
    cache: bool = True
    """Whether answers of judges are kept, and found again."""
    replay: bool = False
    """Whether judges are not asked at all: every answer comes from what was kept."""
    max_cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """US dollars that models may cost; a target's own cost is not known here."""
    max_errors: str | None = None
    """How many conversations may have an error, as `3` or `5%`; a gate is then decided by what has a score."""

    @field_validator("max_errors")
    @classmethod
    def _limit(cls, text: str | None) -> str | None:
        return None if text is None else ErrorLimit(text).text


@dataclass(frozen=True, slots=True)
class Plan:
    """Which attempts a run makes."""

    source: Path | list[dict[str, Any]]
    base: Path
    fields: Mapping[str, str]
    replays: bool
    trials: int
    max_samples: int | None
    tags: Sequence[str] | None
    ids: frozenset[str] | None
    concurrency: int

    def samples(self) -> Iterator[Sample]:
        """Yield the chosen samples, one at a time."""
        found = 0
        for sample in read_samples(self.source, fields=self.fields, base=self.base, tags=self.tags):
            if self.ids is not None and sample.id not in self.ids:
                continue
            yield sample
            found += 1
            if found == self.max_samples:
                return

    @property
    def dataset(self) -> str:
        """What tells this dataset from another: a hash of its file, or of its rows."""
        if isinstance(self.source, Path):
            return hash_file(self.source)
        rows = json.dumps(self.source, sort_keys=True, default=str)
        return hashlib.blake2b(rows.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def count(self, rows: int) -> int:
        """Return how many of the dataset's rows are chosen.

        Raises:
            UsageError: an id is in no row.
        """
        if self.ids is None:
            return min(rows, self.max_samples or rows)
        every = {sample.id for sample in read_samples(self.source, fields=self.fields, base=self.base)}
        missing = sorted(self.ids - every)
        where = self.source if isinstance(self.source, Path) else "the list of rows"
        if missing:
            raise UsageError(f"{where} has no sample '{missing[0]}'{did_you_mean(missing[0], every)}")
        return sum(1 for _ in self.samples())

    def tasks(self, drivers: Mapping[str, Driver | None], done: set[AttemptKey]) -> Iterator[Task]:
        """Yield the attempts that are left, sample by sample, each with its place among all of them."""
        places = count()
        for sample in self.samples():
            trials = [sample.trial or 0] if self.replays else range(self.trials)
            for target, driver in drivers.items():
                for trial in trials:
                    key, position = AttemptKey(sample.id, target, trial), next(places)
                    if key not in done:
                        yield Task(key, sample, driver, position)


@dataclass(frozen=True, slots=True)
class GivenPlan:
    """The plan of recorded conversations that are given as they are, in memory or one after the other.

    Raises:
        UsageError: when it comes to a row that is no conversation, or to an id that was there already.
    """

    rows: Iterable[GivenRow] | AsyncIterable[GivenRow]
    concurrency: int
    replays: bool = True
    trials: int = 1
    dataset: str = GIVEN_IN_PYTHON

    @property
    def planned(self) -> int | None:
        """How many rows there are, None where nobody knows before the end."""
        return len(self.rows) if isinstance(self.rows, Sized) else None

    def tasks(
        self, drivers: Mapping[str, Driver | None], done: set[AttemptKey]
    ) -> Iterator[Task] | AsyncIterator[Task]:
        """Yield the attempts that are left."""
        (target,) = drivers
        if isinstance(self.rows, AsyncIterable):
            return self._awaited(self.rows, target, done)
        tasks = _Tasks(target, done)
        return (task for row in self.rows if (task := tasks.next(row)))

    async def _awaited(self, rows: AsyncIterable[GivenRow], target: str, done: set[AttemptKey]) -> AsyncIterator[Task]:
        tasks = _Tasks(target, done)
        async for row in rows:
            if task := tasks.next(row):
                yield task


class _Tasks:
    """Makes tasks of rows, each with its place, and remembers a hash of each id."""

    def __init__(self, target: str, done: set[AttemptKey]) -> None:
        self._target, self._done = target, done
        self._seen: set[int] = set()
        self._position = -1

    def next(self, row: GivenRow) -> Task | None:
        """Return the task of the next row, None where it is done already."""
        self._position += 1
        sample = _sample_of(row, self._position)
        key = AttemptKey(sample.id, self._target, sample.trial or 0)
        if (mark := hash(key)) in self._seen:
            raise UsageError(f"row {self._position}: the id '{sample.id}' was there before; give each row its own")
        self._seen.add(mark)
        return None if key in self._done else Task(key, sample, None, self._position)


def _sample_of(row: GivenRow, position: int) -> Sample:
    sample = row if isinstance(row, Sample) else _read(_fields(row, position), position)
    if sample.messages is not None:
        return sample
    question, answer = sample.input, sample.metadata.get("response")
    if not isinstance(question, str) or not isinstance(answer, str):
        rule = "give 'messages', or 'user_input' with its 'response'"
        raise UsageError(f"row {position}: there is no conversation to measure; {rule}")
    found = sample.metadata.get("retrieved_contexts")
    said = [
        {"role": "user", "content": question},
        {"role": "assistant", "content": answer, "retrieval_context": found},
    ]
    fields = {name: getattr(sample, name) for name in sample.model_fields_set - {"input"}}
    rest = {name: value for name, value in sample.metadata.items() if name not in ("response", "retrieved_contexts")}
    return _read({**fields, "messages": said, "metadata": rest}, position)


def _fields(row: GivenRow, position: int) -> Mapping[str, Any]:
    """Return a row as the fields of a sample; rows of somebody else's program may be anything."""
    if isinstance(row, Mapping):
        return row
    if isinstance(row, ConversationHistory):
        return {"id": row.conversation_id, "messages": row.messages}
    if isinstance(row, MultiTurnSample | SingleTurnSample):
        return row.to_dict()
    rule = "a row is a dict with 'messages', a sample or a ConversationHistory"
    raise UsageError(f"row {position}: {rule}; got {type(row).__name__}")


def _read(row: Mapping[str, Any], position: int) -> Sample:
    try:
        return read_sample(row, line=position, position=position, base=Path())
    except UsageError as error:
        raise UsageError(*(f"row {position}: {problem.message}" for problem in error.problems)) from error


def plan_of(suite: Suite, options: RunOptions) -> Plan:
    """Return the plan of a run.

    Raises:
        UsageError: the options do not go with the suite.
    """
    spec = suite.spec
    replays = spec.driver == "replay"
    trials = options.trials or spec.trials
    if replays and trials > 1:
        raise UsageError("a replay has the trials that were recorded; map them with dataset.fields.trial instead")
    return Plan(
        source=dataset_source(suite),
        base=suite.base,
        fields=spec.dataset.fields,
        replays=replays,
        trials=trials,
        max_samples=options.max_samples or spec.max_samples,
        tags=options.tags if options.tags is not None else spec.sample_tags,
        ids=None if options.samples is None else frozenset(options.samples),
        concurrency=options.max_concurrent or spec.max_concurrent,
    )


def hash_file(path: Path) -> str:
    """Return a hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
