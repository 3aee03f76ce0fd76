"""Each format knows its own files, and none that another wrote."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from features.formats.examples import EXAMPLES, Example
from vivavoce.conversations.format import NATIVE, Loss, Record, all_formats, format_named, scan_records
from vivavoce.conversations.reading import detect, read
from vivavoce.messages import read_messages

every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda item: f"{item.format}: {item.about}")


@every_example
def test_a_file_is_known_by_what_is_in_it(example: Example, tmp_path: Path) -> None:
    assert detect(example.write(tmp_path)).name == example.format


@every_example
def test_no_other_format_claims_a_record_of_it(example: Example, tmp_path: Path) -> None:
    path = example.write(tmp_path)
    if not isinstance(example.content, bytes):
        as_document = path.with_suffix(".json")
        as_document.write_text(json.dumps(example.content))
        assert detect(as_document).name == example.format
    others = [
        format_
        for format_ in all_formats()
        if format_.read
        and format_.records is None
        and format_.name != NATIVE
        and (not format_.is_general or format_.name == example.format)
    ]
    if format_named(example.format).records is None:
        for format_ in others:
            result = [record for record in scan_records(path, format_.lists) if isinstance(record, Record)]
            claimed = any(map(format_.fits, result))
            assert claimed == (format_.name == example.format), format_.name


@every_example
def test_it_is_read_whole(example: Example, tmp_path: Path) -> None:
    loss = Loss()
    rows = [row for _, row in read(example.write(tmp_path), format_named(example.format), loss)]
    assert rows
    for row in rows:
        read_messages(row.get("messages") or [{"role": "user", "content": row.get("input")}])
    assert [entry for entry in loss.entries() if entry.kind == "broken"] == []


def test_of_a_long_document_only_the_beginning_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    span = {"context": {"trace_id": "t", "span_id": "s"}, "span_kind": "LLM", "attributes": {"input.value": "x" * 9999}}
    path.write_text(f'{{"data": [{",".join([json.dumps(span)] * 4000)}')  # which breaks off
    tracemalloc.start()
    try:
        assert detect(path).name == "openinference"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size


def test_every_format_that_is_read_has_an_example() -> None:
    native = format_named(NATIVE)
    read_as_their_own = {
        format_.name for format_ in all_formats() if format_.read and (format_ is native or format_.read != native.read)
    }
    assert {example.format for example in EXAMPLES} == read_as_their_own
