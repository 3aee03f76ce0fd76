"""What the parts of a job show so far, read from their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vivavoce.distributed.part_file import read_part
from vivavoce.files.places import Folder
from vivavoce.grading.scores import ErrorLimit
from vivavoce.records.run import ScoreRow, Severity
from vivavoce.run.summary import Summary, summarise
from vivavoce.run.tallies import tally
from vivavoce.run.verdict import Rules
from vivavoce.suites.expecting import requirements_of


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
