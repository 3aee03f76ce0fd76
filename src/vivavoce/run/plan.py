"""The plan of a run: which samples, against which targets, how often, and how many attempts that makes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.records.run import AttemptKey
from vivavoce.run.attempt import Task
from vivavoce.run.drivers import ScriptedDriver
from vivavoce.samples.rows import read_samples
from vivavoce.samples.sample import Sample
from vivavoce.suites.dataset import dataset_path
from vivavoce.suites.load import Suite

RECORDED = "recorded"
"""The name of the target in a replay: whoever it was that was recorded."""


class RunOptions(BaseModel):
    """What a caller may set for one run, over what the suite says; None leaves it to the suite."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trials: int | None = Field(default=None, ge=1)
    max_samples: int | None = Field(default=None, ge=1)
    tags: list[str] | None = None
    samples: list[str] | None = None
    max_concurrent: int | None = Field(default=None, ge=1)
    max_calls: int | None = Field(default=None, ge=0)


@dataclass(frozen=True, slots=True)
class Plan:
    """Which attempts a run makes."""

    path: Path
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
        for sample in read_samples(self.path, fields=self.fields, base=self.base, tags=self.tags):
            if self.ids is not None and sample.id not in self.ids:
                continue
            yield sample
            found += 1
            if found == self.max_samples:
                return

    def count(self, rows: int) -> int:
        """Return how many of the dataset's rows are chosen.

        Raises:
            UsageError: an id is in no row.
        """
        if self.ids is None:
            return min(rows, self.max_samples or rows)
        every = {sample.id for sample in read_samples(self.path, fields=self.fields, base=self.base)}
        missing = sorted(self.ids - every)
        if missing:
            raise UsageError(f"{self.path} has no sample '{missing[0]}'{did_you_mean(missing[0], every)}")
        return sum(1 for _ in self.samples())

    def tasks(self, drivers: Mapping[str, ScriptedDriver | None], done: set[AttemptKey]) -> Iterator[Task]:
        """Yield the attempts that are left, sample by sample, each with its place among all of them."""
        places = count()
        for sample in self.samples():
            trials = [sample.trial or 0] if self.replays else range(self.trials)
            for target, driver in drivers.items():
                for trial in trials:
                    key, position = AttemptKey(sample.id, target, trial), next(places)
                    if key not in done:
                        yield Task(key, sample, driver, position)


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
        path=dataset_path(suite),
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
