from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.report.csv_file import FORMULA_STARTS, cell, write_csv
from vivavoce.report.rows import FlatRow, flat_rows
from vivavoce.safe_text import encodable
from vivavoce.store.store import Store

from .cases import grade, keep, outcome


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
