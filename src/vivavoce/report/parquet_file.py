"""A graded run as Parquet: the flat rows with their types, through the extra `[frames]`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vivavoce.files.frames import write_parquet
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.rows import TYPES, FlatRow, flat_rows
from vivavoce.safe_text import encodable


def write_parquet_file(graded: GradedRun, path: Path) -> None:
    """Write the flat rows in batches; a missing value is null.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    write_parquet(path, FlatRow._fields, _rows(graded), TYPES)


def _rows(graded: GradedRun) -> Iterator[dict[str, object]]:
    for row in flat_rows(graded.store, graded.run, graded.grading):
        yield {name: encodable(cell) if isinstance(cell, str) else cell for name, cell in row._asdict().items()}
