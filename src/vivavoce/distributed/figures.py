"""What the parts of a job show so far, read from their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vivavoce.distributed.part_file import read_part
from vivavoce.files.places import Folder
from vivavoce.records.run import ScoreRow
from vivavoce.run.summary import Summary, summarise, tally


def summary_of(folder: Folder, names: Iterable[str]) -> Summary:
    """Return the summary of parts; a gate is decided when they are merged."""
    counts = _Counts()
    tallies = tally(counts.rows(folder, sorted(names)))
    return summarise(tallies, attempts=counts.attempts, failed=counts.failed, gate=None, errors=counts.errors)


class _Counts:
    """Counts conversations while their scores go by."""

    def __init__(self) -> None:
        self.attempts = self.failed = self.errors = 0

    def rows(self, folder: Folder, names: Iterable[str]) -> Iterator[ScoreRow]:
        """Yield the scores of parts."""
        for name in names:
            with read_part(folder, name) as part:
                for _, failure, rows in part.scores():
                    self.attempts += 1
                    self.failed += failure is not None
                    self.errors += failure is not None or any(row.state == "error" for row in rows)
                    yield from rows
