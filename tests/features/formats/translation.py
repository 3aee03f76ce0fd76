"""Formats tried without files: records in, rows out, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vivavoce.conversations.format import Format, Loss, Place, Record, Row, all_formats
from vivavoce.conversations.shapes import check_calls
from vivavoce.messages import read_messages

NOWHERE = Path("made.jsonl")


def read_values(format_: Format, values: Iterable[Any]) -> tuple[list[Row], Loss]:
    """Read records, check that what they become are messages of ours, and return the rows and the report."""
    assert format_.read is not None
    loss = Loss()
    rows = [row for _, row in format_.read(_records(values, loss), loss)]
    for row in rows:
        read_messages(row["messages"])
        check_calls(row["messages"], loss)
        assert json.loads(json.dumps(row)) == row
    return rows, loss


def back_and_forth(format_: Format, values: Iterable[Any]) -> list[Any]:
    """Return records that were read and written again, when nothing was lost on the way."""
    assert format_.write is not None
    rows, loss = read_values(format_, values)
    stored = json.loads(json.dumps(rows))
    documents = list(format_.write(stored, loss))
    assert loss.is_lossless, list(loss.lines())
    return documents


def _records(values: Iterable[Any], loss: Loss) -> Iterator[Record]:
    for line, value in enumerate(values, 1):
        loss.line = line
        record = Record(Place(NOWHERE, line), value)
        for format_ in all_formats():
            assert format_.fits(record) in (True, False)
        yield record
