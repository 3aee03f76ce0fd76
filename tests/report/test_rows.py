"""Flat rows, one for each score of a grading, and their files: CSV and Parquet."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.files.frames import ROWS_AT_ONCE
from vivavoce.records.score import Score, failed, skipped
from vivavoce.report.rows import FORMULA_STARTS, FlatRow, cell, flat_rows, write_csv, write_parquet_file
from vivavoce.safe_text import encodable
from vivavoce.store.store import Store

from .cases import BROKEN_JUDGE, capitals, grade, keep, outcome


async def test_a_conversation_comes_before_its_turns_and_the_reward_last(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"correctness": capitals(), "exact": 1.0}, reward=Score(value=0.5))])
    rows = list(flat_rows(store, graded.run, graded.grading))
    assert [(row.grader, row.turn, row.score) for row in rows] == [
        ("correctness", None, 2 / 3),
        ("correctness", 1, 1.0),
        ("correctness", 2, 1.0),
        ("correctness", 3, 0.0),
        ("exact", None, 1.0),
        ("reward", None, 0.5),
    ]
    assert (rows[3].submission, rows[3].ground_truth, rows[3].rationale) == ("Madrid", "Rome", "turn 2")


async def test_a_row_says_what_its_score_is_about(store: Store) -> None:
    graded = await keep(store, [outcome("a", trial=2, target="v2", scenario="abc")])
    (row,) = flat_rows(store, graded.run, graded.grading)
    assert (row.run, row.grading, row.sample_id, row.target, row.trial) == ("run-1", "run-1-g1", "a", "v2", 3)
    assert (row.scenario, row.fingerprint, row.seconds, row.state) == ("abc", "f1", 1.5, "scored")


async def test_a_turn_has_the_seconds_of_that_turn_and_none_when_it_was_not_held(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"correctness": capitals()}, said=["a", "b"])])
    rows = list(flat_rows(store, graded.run, graded.grading))
    assert [row.seconds for row in rows] == [1.5, 0.5, 0.5, None]


async def test_an_error_and_a_skip_have_no_score_and_say_why(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"judge": failed(BROKEN_JUDGE), "exact": skipped("no ground truth")})])
    error, skip = flat_rows(store, graded.run, graded.grading)
    assert (error.state, error.score) == ("error", None)
    assert (error.blame, error.failure_kind, error.failure_message) == ("judge", "format", "no verdict")
    assert (skip.state, skip.score, skip.rationale, skip.blame) == ("skipped", None, "no ground truth", None)


async def test_a_ground_truth_that_is_not_text_is_json(store: Store) -> None:
    truths = ["text", {"total": 3}, ["é"], None]
    grades = {f"g{i}": grade(1, ground_truth=truth) for i, truth in enumerate(truths)}
    graded = await keep(store, [outcome(grades=grades)])
    rows = flat_rows(store, graded.run, graded.grading)
    assert [row.ground_truth for row in rows] == ["text", '{"total":3}', '["é"]', None]


async def table(store: Store, rationale: str) -> tuple[list[dict[str, str]], list[FlatRow]]:
    graded = await keep(store, [outcome(grades={"exact": grade(0.5, rationale)})])
    out = io.StringIO(newline="")
    write_csv(graded, out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue(), newline="")))
    return rows, list(flat_rows(store, graded.run, graded.grading))


async def test_the_columns_are_those_of_the_flat_rows_and_nothing_is_an_empty_cell(store: Store) -> None:
    rows, flat = await table(store, "fine")
    assert list(rows[0]) == list(FlatRow._fields)
    assert rows[0] == {name: "" if value is None else str(value) for name, value in flat[0]._asdict().items()}


@pytest.mark.parametrize("text", ['say "no", please', "one\ntwo\r\nthree\rfour", "Grüße 🎓", "a'b", "x\x00y"])
async def test_any_text_reads_back_as_it_was(store: Store, text: str) -> None:
    rows, _ = await table(store, text)
    assert [row["rationale"] for row in rows] == [text]


@pytest.mark.parametrize("start", FORMULA_STARTS)
async def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(store: Store, start: str) -> None:
    rows, _ = await table(store, f'{start}HYPERLINK("http://evil","click")')
    assert rows[0]["rationale"] == f'\'{start}HYPERLINK("http://evil","click")'


@given(st.text(st.characters(exclude_categories=[])))
def test_no_cell_starts_like_a_formula_and_every_cell_is_utf_8(text: str) -> None:
    safe = cell(text)
    assert not safe.startswith(FORMULA_STARTS)
    assert safe.encode().decode().removeprefix("'") == encodable(text).removeprefix("'")


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
