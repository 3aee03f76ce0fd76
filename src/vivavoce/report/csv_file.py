"""A graded run as CSV: the flat rows, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
from typing import TextIO

from vivavoce.report.graded_run import GradedRun
from vivavoce.report.rows import FlatRow, flat_rows
from vivavoce.safe_text import encodable

FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
"""What makes a spreadsheet read a cell as a formula.

Source: OWASP, CSV Injection.
"""


def write_csv(graded: GradedRun, out: TextIO) -> None:
    """Write a header and the flat rows; a missing value is an empty cell.

    Models and targets write the texts, and a spreadsheet runs a cell such as `=HYPERLINK(…)` when the file is opened.
    So a text that starts like a formula gets an apostrophe in front, in CSV only: JSONL and Parquet hold it unchanged.
    """
    writer = csv.writer(out)
    writer.writerow(FlatRow._fields)
    for row in flat_rows(graded.store, graded.run, graded.grading):
        writer.writerow([cell(value) if isinstance(value, str) else value for value in row])


def cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet takes for a formula."""
    written = encodable(text)
    return f"'{written}" if written.startswith(FORMULA_STARTS) else written
