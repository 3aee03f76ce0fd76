"""The plan of a suite: which samples of its dataset run, how often, and how many at a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.run.options import RunOptions
from vivavoce.samples.rows import read_samples
from vivavoce.samples.sample import Sample
from vivavoce.suites.dataset import dataset_source
from vivavoce.suites.load import Suite


@dataclass(frozen=True, slots=True)
class Plan:
    """The samples and trials of a run of a suite."""

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
        """What identifies this dataset: a hash of its file, or of its rows."""
        if isinstance(self.source, Path):
            return hash_file(self.source)
        rows = json.dumps(self.source, sort_keys=True, default=str)
        return hashlib.blake2b(rows.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def count(self, rows: int) -> int:
        """Return how many rows of the dataset are chosen.

        Raises:
            UsageError: no row has one of the ids.
        """
        if self.ids is None:
            return min(rows, self.max_samples or rows)
        every = {sample.id for sample in read_samples(self.source, fields=self.fields, base=self.base)}
        missing = sorted(self.ids - every)
        where = self.source if isinstance(self.source, Path) else "the list of rows"
        if missing:
            raise UsageError(f"{where} has no sample '{missing[0]}'{did_you_mean(missing[0], every)}")
        return sum(1 for _ in self.samples())


def plan_of(suite: Suite, options: RunOptions) -> Plan:
    """Return the plan of a run.

    Raises:
        UsageError: the options do not fit the suite.
    """
    spec = suite.spec
    replays = spec.driver == "replay"
    trials = options.trials or spec.trials
    if replays and trials > 1:
        raise UsageError("a replay has only the recorded trials; map them with dataset.fields.trial instead")
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
