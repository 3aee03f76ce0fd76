"""The rows of a part as a file of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.features.parts.job import Part
from vivavoce.features.parts.slices import Slicer, write_without
from vivavoce.files.places import Folder
from vivavoce.samples.rows import read_samples

from .cases import begun, write_jsonl, write_parquet


def ids(path: Path) -> list[str]:
    return [one.id for one in read_samples(path)]


def parts_of(tmp_path: Path, pattern: str, rows: int = 3) -> list[Part]:
    return begun(Folder(str(tmp_path / "out")), [str(tmp_path / pattern)], rows=rows).parts


@pytest.mark.parametrize("group", [2, 4, 100])
def test_parts_have_each_row_of_a_parquet_file_once(group: int, tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", range(11), group=group)
    slicer, found = Slicer(), list[str]()
    for part in parts_of(tmp_path, "a.parquet"):
        slicer.write(part, tmp_path / "rows.parquet")
        assert len(ids(tmp_path / "rows.parquet")) == part.piece.rows
        found += ids(tmp_path / "rows.parquet")
    slicer.close()
    assert found == [f"r{at}" for at in range(11)]


def test_parts_may_come_in_any_order(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", range(11))
    parts = parts_of(tmp_path, "a.parquet")
    slicer = Slicer()
    for part in (parts[2], parts[0], parts[3], parts[1]):
        slicer.write(part, tmp_path / "rows.parquet")
        first = part.piece.first
        assert ids(tmp_path / "rows.parquet") == [f"r{first + at}" for at in range(part.piece.rows)]
    slicer.close()


def test_parts_have_each_line_once(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", range(8))
    path.write_text(path.read_text("utf-8").rstrip("\n"), "utf-8")
    slicer, found = Slicer(), list[str]()
    for part in parts_of(tmp_path, "a.jsonl"):
        slicer.write(part, tmp_path / "rows.jsonl")
        found += ids(tmp_path / "rows.jsonl")
    assert found == [f"r{at}" for at in range(8)]


@pytest.mark.parametrize("write", [write_jsonl, write_parquet])
def test_a_file_that_has_become_shorter_is_named(write: object, tmp_path: Path) -> None:
    assert callable(write)
    name = "a.jsonl" if write is write_jsonl else "a.parquet"
    write(tmp_path / name, range(8))
    *_, last = parts_of(tmp_path, name)
    write(tmp_path / name, range(2))
    with pytest.raises(UsageError, match=rf"{name}: has fewer rows"):
        Slicer().write(last, tmp_path / f"rows{Path(name).suffix}")


def test_rows_are_dropped_by_their_numbers(tmp_path: Path) -> None:
    for path in (write_jsonl(tmp_path / "a.jsonl", range(5)), write_parquet(tmp_path / "b.parquet", range(5))):
        left = path.with_stem("left")
        write_without(path, {1, 4}, left)
        assert ids(left) == ["r1", "r2", "r4"]
