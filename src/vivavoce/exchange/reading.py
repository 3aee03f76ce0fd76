"""Conversations read from files of any format, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import Problem, UsageError
from vivavoce.exchange.calls import check_calls
from vivavoce.exchange.format import Format, Row
from vivavoce.exchange.loss import Loss
from vivavoce.exchange.records import Place, Record, scan_records


def read(source: Path | Sequence[Path], format_: Format, loss: Loss) -> Iterator[tuple[Place, Row]]:
    """Yield each conversation of files with the place where it begins; memory stays flat where the format allows it.

    What cannot be read is in the loss report, and what stands behind it is read, where the format tells where that is.

    Raises:
        UsageError: a file cannot be opened, or the format cannot be read.
    """
    if format_.read is None:
        raise UsageError(f"{format_.title} is a format that is written only")
    files = [source] if isinstance(source, Path) else list(source)
    loss.format, loss.conversation = format_.title, None
    for place, row in format_.read(_records(files, format_, loss, several=len(files) > 1), loss):
        messages: object = row.get("messages")
        loss.line = place.line
        loss.at(row)
        if isinstance(messages, list):
            check_calls(cast("list[Any]", messages), loss)
        yield place, row
        loss.conversation = None


def scan(file: Path, format_: Format, loss: Loss) -> Iterator[tuple[int, Row | Problem]]:
    """Yield each conversation of a file with the line it begins on, and a `Problem` in place of what cannot be read.

    Raises:
        UsageError: the file cannot be opened, or the format cannot be read.
    """
    problems: list[Problem] = []
    loss.on_broken = lambda what: problems.append(Problem(what, file, loss.line or None))
    for place, row in read(file, format_, loss):
        yield from _taken(problems)
        yield place.line, row
    yield from _taken(problems)


def _taken(problems: list[Problem]) -> Iterator[tuple[int, Problem]]:
    """Yield problems and forget them."""
    while problems:
        problem = problems.pop(0)
        yield problem.line or 0, problem


def files_in(source: Path) -> list[Path]:
    """Return a file, or the files of a folder in the order of their names.

    Of a data set of Hugging Face that was saved or downloaded, these are the files of its rows.

    Raises:
        UsageError: the folder has no files, or holds several data sets.
    """
    if not source.is_dir():
        return [source]
    if (source / "dataset_dict.json").is_file():
        parts = ", ".join(sorted(path.name for path in source.iterdir() if path.is_dir()))
        raise UsageError(Problem(f"holds several data sets; name the folder of one: {parts}", source))
    files = _of_rows(source) or _of_rows(source / "data") or _visible(source)
    if not files:
        raise UsageError(Problem("is a folder without files", source))
    return files


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _of_rows(folder: Path) -> list[Path]:
    """Return the Arrow files of a folder, or else its Parquet files."""
    return sorted(folder.glob("*.arrow")) or sorted(folder.glob("*.parquet"))


def _records(files: Sequence[Path], format_: Format, loss: Loss, *, several: bool) -> Iterator[Record]:
    for file in files:
        loss.file = file.name if several else ""
        for record in format_.records(file) if format_.records else scan_records(file, format_.lists):
            if isinstance(record, Problem):
                loss.line = record.line or 0
                loss.broken(record.message)
            else:
                loss.line = record.place.line
                yield record
