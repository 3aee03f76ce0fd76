from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vivavoce.files.frames import ROWS_AT_ONCE
from vivavoce.report.parquet_file import write_parquet_file
from vivavoce.report.rows import FlatRow, flat_rows
from vivavoce.store.store import Store

from .cases import capitals, grade, keep, outcome

parquet: Any = pytest.importorskip("pyarrow.parquet", reason="needs the extra [frames]")


async def test_the_table_holds_the_flat_rows_with_their_types(store: Store, tmp_path: Path) -> None:
    graded = await keep(store, [outcome(grades={"correctness": capitals(), "exact": grade(1, "=1+1\n'x")})])
    write_parquet_file(graded, tmp_path / "scores.parquet")
    found = parquet.read_table(tmp_path / "scores.parquet")
    assert [FlatRow(**row) for row in found.to_pylist()] == list(flat_rows(store, graded.run, graded.grading))
    types = {field.name: str(field.type) for field in found.schema}
    assert (types["score"], types["turn"], types["trial"], types["rationale"]) == ("double", "int32", "int32", "string")
    assert types["passed"] == "bool"


async def test_half_a_character_is_written_as_its_escape(store: Store, tmp_path: Path) -> None:
    graded = await keep(store, [outcome(grades={"exact": grade(1, ground_truth="\ud800")})])
    write_parquet_file(graded, tmp_path / "scores.parquet")
    assert parquet.read_table(tmp_path / "scores.parquet")["ground_truth"].to_pylist() == ["\\ud800"]


async def test_rows_are_written_some_at_a_time(store: Store, tmp_path: Path) -> None:
    grades = {f"g{i}": 1.0 for i in range(64)}
    count = ROWS_AT_ONCE // 64 + 1
    graded = await keep(store, [outcome(str(i), grades) for i in range(count)])
    write_parquet_file(graded, tmp_path / "scores.parquet")
    written = parquet.ParquetFile(tmp_path / "scores.parquet").metadata
    assert (written.num_rows, written.num_row_groups) == (64 * count, 2)
