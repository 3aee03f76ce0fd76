from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import Problem, UsageError
from vivavoce.files.rows import format_of, read_rows, scan_rows


def write_file(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def problem_of(path: Path) -> Problem:
    with pytest.raises(UsageError) as caught:
        list(read_rows(path))
    [problem] = caught.value.problems
    assert problem.file == path
    return problem


@pytest.mark.parametrize("name", ["a.jsonl", "a.JSONL", "a.ndjson", "a.json", "a.CSV", "a.Parquet"])
def test_the_suffix_tells_the_format_in_any_case(name: str) -> None:
    assert format_of(name) in ("jsonl", "json", "csv", "parquet")


@pytest.mark.parametrize("name", ["data.txt", "data"])
def test_an_unknown_suffix_is_an_error_that_lists_the_known(name: str) -> None:
    with pytest.raises(UsageError, match=r"\.jsonl, \.ndjson, \.json, \.csv, \.parquet, \.arrow; got"):
        format_of(name)


def test_jsonl_skips_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.jsonl", b'\xef\xbb\xbf{"a": "\xe2\x80\xa8"}\r\n\n  \t\n{"a": 2}')
    assert list(read_rows(path)) == [(1, {"a": "\u2028"}), (4, {"a": 2})]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_an_empty_file_has_no_rows(tmp_path: Path, name: str) -> None:
    assert list(read_rows(write_file(tmp_path, name, ""))) == []


def test_a_json_file_is_a_list_whose_rows_know_their_line(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.json", '\n[\n  {"a": 1},\n\n  {"a":\n 2}, {"a": 3}\n]\n')
    assert list(read_rows(path)) == [(3, {"a": 1}), (5, {"a": 2}), (6, {"a": 3})]


def test_csv_cells_are_text_and_empty_ones_nothing(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.csv", '\ufeffa,b\r\n007,\r\n\r\n"two\nlines","say ""hi"""\r\n2024-05-01,4\r\n')
    assert list(read_rows(path)) == [
        (2, {"a": "007", "b": None}),
        (4, {"a": "two\nlines", "b": 'say "hi"'}),
        (6, {"a": "2024-05-01", "b": "4"}),
    ]


def test_a_csv_cell_may_be_huge(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.csv", f"a\n{'x' * 300_000}\n")
    [(_, row)] = read_rows(path)
    assert len(row["a"]) == 300_000


@pytest.mark.parametrize(
    ("name", "data", "line", "column", "rule"),
    [
        ("a.jsonl", '{"a": 1}\n{"a": 1,,}\n', 2, 9, "not valid JSON"),
        ("a.jsonl", '{"a": 1}\n\n{"a": NaN}\n', 3, None, "NaN is not a JSON number"),
        ("a.jsonl", '{"a": 1, "a": 2}\n', 1, None, "'a' occurs twice"),
        ("a.jsonl", "[1]\n", 1, None, "a row is an object {…}, got list"),
        ("a.jsonl", b'{"a": 1}\n{"a": "\xe9"}\n', 2, None, "not UTF-8: byte 0xe9"),
        ("a.json", '[{"a": 1},\n {"a" 1}]', 2, 7, "not valid JSON"),
        ("a.json", '[{"a": 1},\n 5]', 2, None, "a row is an object"),
        ("a.json", b'[{"a": 1},\n {"a": "\xff"}]', 2, 9, "not UTF-8: byte 0xff"),
        ("a.csv", "a,b\n1,2\n1,2,3\n", 3, None, "this row has 3 cells and the header has 2"),
        ("a.csv", 'a,b\n1,"2\n', 2, None, "not valid CSV"),
        ("a.csv", b"a\n1\n\xe9\n", 3, None, "not UTF-8: byte 0xe9"),
        ("a.csv", "a,a\n", 1, None, "names the column 'a' twice"),
        ("a.csv", "a,\n", 1, None, "column 2 of the header has no name"),
        ("b.jsonl", '[{"role": "user"}]\n', 1, None, 'got list; write a list of messages as {"messages": […]}'),
    ],
)
def test_broken_input_is_an_error_with_its_place(
    tmp_path: Path, name: str, data: bytes | str, line: int, column: int | None, rule: str
) -> None:
    problem = problem_of(write_file(tmp_path, name, data))
    assert rule in problem.message
    assert (problem.line, problem.column) == (line, column)


def test_rows_after_a_broken_one_are_still_scanned(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.jsonl", '{"a": 1}\nbroken\n{"a": 3}\n')
    assert [type(row) for _, row in scan_rows(path)] == [dict, Problem, dict]


def test_rows_come_before_the_rest_of_the_file_is_read(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.jsonl", '{"a": 1}\nbroken\n')
    assert next(read_rows(path)) == (1, {"a": 1})


def test_a_missing_file_a_folder_and_an_unreadable_path_are_errors(tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    assert "no such file" in problem_of(tmp_path / "none.jsonl").message
    assert "is a folder" in problem_of(tmp_path / "folder.jsonl").message
    assert "cannot be read" in problem_of(tmp_path / f"{'x' * 300}.jsonl").message


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_a_file_without_permission_is_an_error(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.jsonl", "{}")
    path.chmod(0)
    assert "Permission denied" in problem_of(path).message


def test_a_format_can_be_given_whatever_the_suffix(tmp_path: Path) -> None:
    path = write_file(tmp_path, "a.log", '{"a": 1}')
    assert list(read_rows(path, "jsonl")) == [(1, {"a": 1})]


def test_json_types_come_through_jsonl_unchanged(tmp_path: Path) -> None:
    row: dict[str, Any] = {"i": 3, "f": 3.0, "big": 10**30, "t": "007", "n": None, "b": True, "o": {"2024-05-01": []}}
    path = write_file(tmp_path, "a.jsonl", json.dumps(row))
    [(_, again)] = read_rows(path)
    assert repr(again) == repr(row)


def test_a_pipe_or_a_device_is_refused_because_it_may_never_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for name in ("pipe.jsonl", "zero.csv"):
        with pytest.raises(UsageError, match="is a pipe or a device"):
            list(read_rows(tmp_path / name))
