from __future__ import annotations

import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import MissingExtra, UsageError
from vivavoce.files.frames import frame_of, frame_rows, parquet_rows, write_parquet
from vivavoce.files.rows import read_rows
from vivavoce.samples.evaluation import EvaluationDataset, SingleTurnSample

pandas: Any = pytest.importorskip("pandas", reason="the extra [frames] is not installed")


def parquet_of(path: Path, columns: dict[str, list[Any]]) -> Path:
    pandas.DataFrame(columns).to_parquet(path)
    return path


def test_typed_columns_become_json_types(tmp_path: Path) -> None:
    path = parquet_of(
        tmp_path / "a.parquet",
        {
            "when": [datetime(2024, 5, 1, 12), None],
            "day": [date(2024, 5, 1), None],
            "price": [Decimal("1.10"), None],
            "score": [0.5, float("nan")],
            "n": [1, 2],
            "list": [["a", "b"], None],
            "nested": [{"k": [1]}, None],
        },
    )
    first, second = parquet_rows(path)
    assert first == {
        "when": "2024-05-01T12:00:00",
        "day": "2024-05-01",
        "price": "1.10",
        "score": 0.5,
        "n": 1,
        "list": ["a", "b"],
        "nested": {"k": [1]},
    }
    assert second == {**dict.fromkeys(first), "n": 2}


def test_what_json_cannot_hold_is_an_error_with_the_column(tmp_path: Path) -> None:
    path = parquet_of(tmp_path / "a.parquet", {"raw": [b"\x00"]})
    with pytest.raises(UsageError, match="column 'raw' holds bytes"):
        list(read_rows(path))


def test_a_file_that_is_not_parquet_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_text("hello")
    with pytest.raises(UsageError, match=r"a\.parquet: cannot be read as Parquet"):
        list(read_rows(path))


def test_many_rows_are_written_and_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(path, ["a", "b"], ({"a": str(n)} for n in range(3000)))
    rows = list(read_rows(path))
    assert [line for line, _ in rows] == list(range(1, 3001))
    assert [row for _, row in rows] == [{"a": str(n), "b": None} for n in range(3000)]


def test_a_frame_holds_python_objects_and_none() -> None:
    frame = frame_of(["a", "b"], [{"a": "007"}, {"b": [{"k": 1}]}])
    assert list(frame_rows(frame)) == [{"a": "007", "b": None}, {"a": None, "b": [{"k": 1}]}]


def test_all_that_pandas_calls_missing_is_none() -> None:
    frame = pandas.DataFrame({"a": [float("nan"), pandas.NA, pandas.NaT, None, "x"]}, dtype=object)
    assert [row["a"] for row in frame_rows(frame)] == [None, None, None, None, "x"]


def test_numpy_values_become_python_values(tmp_path: Path) -> None:
    frame = pandas.read_parquet(parquet_of(tmp_path / "a.parquet", {"ids": [[1, 2]], "n": [3]}))
    [row] = frame_rows(frame)
    assert row == {"ids": [1, 2], "n": 3}
    assert type(row["ids"][0]) is int


def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = EvaluationDataset([SingleTurnSample(user_input="a")])
    dataset.to_parquet(tmp_path / "a.parquet")
    for module in ("pandas", "pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"pip install 'vivavoce\[frames\]'"):
        dataset.to_pandas()
    with pytest.raises(MissingExtra, match="writing Parquet"):
        dataset.to_parquet(tmp_path / "b.parquet")
    with pytest.raises(MissingExtra, match="reading Parquet"):
        EvaluationDataset.from_parquet(tmp_path / "a.parquet")
