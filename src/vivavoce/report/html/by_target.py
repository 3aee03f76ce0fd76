"""The samples of a run by target as its page shows them: a table of the scores of one grader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vivavoce.report.best_target import target_names
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.score_notes import State
from vivavoce.report.matrix import Cell, cell_text, figures, matrix_of
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe

SAMPLES = 100
"""Samples in the table, the worst of the run if it has more."""
LARGEST = 20_000
"""Conversations of a run whose scores a page reads for the table."""

Link = Callable[[str, str], str]
"""Returns the address of the conversation of a sample with a target, empty for none."""


@dataclass(frozen=True, slots=True)
class LinkedCell:
    """The score of a sample with a target, and the conversation that it is about."""

    text: str
    state: State
    link: str


@dataclass(frozen=True, slots=True)
class ByTarget:
    """The table: its targets, a line for each sample, and the figures below; `note` says what is not in it."""

    grader: str
    heads: list[str]
    lines: list[tuple[str, list[LinkedCell]]]
    figures: list[tuple[str, list[str]]]
    note: str


def by_target(graded: GradedRun, summary: Summary, link: Link) -> ByTarget | None:
    """Return the table, None for a run of a single target or one that is still running."""
    heads = target_names(summary)
    if len(heads) < 2 or graded.run.status == "running":
        return None
    if summary.attempts > LARGEST:
        command = f"viva show {safe(graded.run.id)} --table"
        note = f"{summary.attempts:,} conversations are too many for a table here; the worst samples: {command}"
        return ByTarget("", heads, [], [], note)
    matrix = matrix_of(graded, SAMPLES)
    lines = [
        (safe(row.sample), [_linked(row.cells.get(name), link(row.sample, name)) for name in heads])
        for row in matrix.rows
    ]
    return ByTarget(matrix.grader, heads, lines, figures(matrix, heads), matrix.left_out)


def _linked(cell: Cell | None, link: str) -> LinkedCell:
    if cell is None or not cell.trials:
        state = "measured" if cell and cell.measured else "skip"
        return LinkedCell(cell_text(cell), state, link if cell else "")
    return LinkedCell(cell_text(cell), "error" if cell.errors else "fail" if cell.bad else "pass", link)
