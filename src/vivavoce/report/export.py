"""`export`: a graded run as a file that other programs read."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.records.run import Grading, Run
from vivavoce.report.csv_file import write_csv
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.json_file import write_json, write_jsonl
from vivavoce.report.junit import write_junit
from vivavoce.report.markdown import write_markdown
from vivavoce.report.parquet_file import write_parquet_file
from vivavoce.store.store import Store

TEXT_FORMATS: Mapping[str, Callable[[GradedRun, TextIO], None]] = {
    "json": write_json,
    "jsonl": write_jsonl,
    "csv": write_csv,
    "junit": write_junit,
    "markdown": write_markdown,
}
FORMATS = (*TEXT_FORMATS, "parquet")


def export(store: Store, run: Run, grading: Grading, format: str, out: Path | TextIO) -> None:  # noqa: A002
    """Write a graded run in one of `FORMATS`, conversation by conversation, to a file or to a stream of text.

    A file appears whole or not at all, in UTF-8; its folder is made where it is missing.

    Raises:
        UsageError: there is no such format, or the file cannot be written.
        MissingExtra: the format is Parquet and pyarrow is not installed.
    """
    graded = GradedRun(store, run, grading)
    if format not in FORMATS:
        raise UsageError(f"no export format '{format}'{did_you_mean(format, FORMATS)}")
    if isinstance(out, Path):
        with whole_file(out) as path:
            _write(graded, format, path)
    elif format == "parquet":
        raise UsageError("Parquet is not text; name a file to write it to")
    else:
        TEXT_FORMATS[format](graded, out)


def _write(graded: GradedRun, format: str, path: Path) -> None:  # noqa: A002
    if format == "parquet":
        write_parquet_file(graded, path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            TEXT_FORMATS[format](graded, file)


@contextmanager
def whole_file(path: Path) -> Generator[Path]:
    """Lend a path beside `path`, and put the file written there in its place when nothing went wrong.

    A pipe or a device is written to as it is.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        real = path.resolve()
        real.parent.mkdir(parents=True, exist_ok=True)
        beside = real.with_name(f".{secrets.token_hex(8)}.part")
        try:
            yield beside
            os.replace(beside, real)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
