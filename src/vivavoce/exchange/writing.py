"""Conversations written as files of any format: whole, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from vivavoce.errors import UsageError
from vivavoce.exchange.format import Format, Row
from vivavoce.exchange.loss import Loss
from vivavoce.files.whole_file import whole_file
from vivavoce.safe_text import encodable

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def write(rows: Iterable[Row], path: Path, format_: Format, loss: Loss) -> None:
    """Write conversations to a file, one record at a time.

    Raises:
        UsageError: the file cannot be written, or the format is one that is read only.
    """
    lines = texts(rows, format_, loss)
    with whole_file(path) as new, new.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


def write_to(stream: TextIO, rows: Iterable[Row], format_: Format, loss: Loss) -> None:
    """Write conversations to a stream, one record at a time.

    Raises:
        UsageError: the format is one that is read only.
    """
    for line in texts(rows, format_, loss):
        stream.write(line)


def texts(rows: Iterable[Row], format_: Format, loss: Loss) -> Iterator[str]:
    """Return the text of a file piece by piece.

    Raises:
        UsageError: the format is one that is read only.
    """
    if format_.write is None:
        raise UsageError(f"{format_.title} is a format that is read only")
    records = format_.write(rows, loss)
    return map(_text, records) if format_.document is None else iter([_text(format_.document(records))])


def _text(value: Any) -> str:
    return encodable(_ENCODE(value)) + "\n"
