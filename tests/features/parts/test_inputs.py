"""The files of a dataset, and where their parts begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.features.parts import inputs
from vivavoce.features.parts.inputs import Piece, input_files

from .cases import write_jsonl, write_parquet


def test_lines_are_divided_where_they_begin(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", range(5))
    (file,) = input_files([str(path)], rows=2)
    text = path.read_bytes()
    assert [(one.first, one.rows) for one in file.pieces] == [(0, 2), (2, 2), (4, 1)]
    assert [text[one.at :].startswith(f'{{"id": "r{one.first}"'.encode()) for one in file.pieces] == [True] * 3
    assert (file.rows, file.size, file.problem) == (5, len(text), None)


def test_a_last_line_without_an_end_counts(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", range(3))
    path.write_text(path.read_text("utf-8").rstrip("\n"), "utf-8")
    (file,) = input_files([str(path)], rows=2)
    assert file.rows == 3


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_lines_are_found_whatever_is_read_at_a_time(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "_CHUNK", chunk)
    path = write_jsonl(tmp_path / "a.jsonl", range(5), "", "", "no JSON")
    (file,) = input_files([str(path)], rows=3)
    assert [(one.first, one.rows) for one in file.pieces] == [(0, 3), (3, 3), (6, 2)]


def test_row_groups_are_divided_each_by_itself(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", range(10), group=4)
    (file,) = input_files([str(path)], rows=3)
    assert file.pieces == [
        Piece(first=0, rows=3, at=0),
        Piece(first=3, rows=1, at=0, skip=3),
        Piece(first=4, rows=3, at=1),
        Piece(first=7, rows=1, at=1, skip=3),
        Piece(first=8, rows=2, at=2),
    ]


def test_long_rows_make_smaller_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PART_BYTES", 300)
    for path in (write_jsonl(tmp_path / "a.jsonl", range(10)), write_parquet(tmp_path / "b.parquet", range(10))):
        (file,) = input_files([str(path)], rows=100)
        assert file.rows == 10
        assert 2 < len(file.pieces) <= 10


def test_patterns_name_each_file_once_and_in_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_jsonl(tmp_path / f"{name}.jsonl", range(2))
    (tmp_path / "deeper").mkdir()
    write_jsonl(tmp_path / "deeper" / "c.jsonl", range(2))
    found = input_files([str(tmp_path / "*.jsonl"), str(tmp_path / "a.jsonl")])
    assert [Path(one.place).name for one in found] == ["a.jsonl", "b.jsonl"]


def test_a_broken_file_has_a_problem_and_the_others_their_pieces(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", range(3))
    (tmp_path / "b.parquet").write_text("broken", "utf-8")
    good, broken = input_files([str(tmp_path / "*.parquet")])
    assert (good.rows, good.problem) == (3, None)
    assert broken.pieces == []
    assert broken.problem is not None
    assert "cannot be read as Parquet" in broken.problem


def test_other_formats_and_missing_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n", "utf-8")
    with pytest.raises(UsageError, match=r"a\.csv: only Parquet and JSONL .* viva convert"):
        input_files([str(tmp_path / "a.csv")])
    with pytest.raises(UsageError, match=r"b\*\.jsonl: there is no such file"):
        input_files([str(tmp_path / "b*.jsonl")])
