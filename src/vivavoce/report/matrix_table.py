"""The samples of a run as a table in the terminal, as wide as that is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from vivavoce.report.graded_run import GradedRun
from vivavoce.report.matrix import Matrix, cell_text, figures, matrix_of
from vivavoce.report.tables import GAP, stripped
from vivavoce.report.text import one_line
from vivavoce.safe_text import safe

SAMPLES = 200
"""Samples that the table shows, the worst of the run if it has more."""
_HEAD = 24
"""Maximum width of the head of a column."""
_SAMPLE = 40
"""Maximum width of the name of a sample."""
_STYLES = {"error": "yellow", "fail": "red"}


@dataclass(frozen=True, slots=True)
class MatrixTable:
    """A table of samples; long names are cut, and what does not fit or was left out is counted below it.

    `all_of_it` is the command that writes every score.
    """

    matrix: Matrix
    all_of_it: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        matrix = self.matrix
        body = [
            (one_line(row.sample, _SAMPLE), [_styled(cell_text(row.cells.get(name))) for name in matrix.columns])
            for row in matrix.rows
        ]
        feet = [(name, [Text(safe(text)) for text in texts]) for name, texts in figures(matrix, matrix.columns)]
        shown = self._fitting([*body, *feet], options.max_width)
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
        table.add_column("sample", no_wrap=True, overflow="ellipsis")
        for name in matrix.columns[:shown]:
            table.add_column(Text(safe(name)), no_wrap=True, overflow="ellipsis", max_width=_HEAD)
        for name, texts in body:
            table.add_row(Text(safe(name)), *texts[:shown])
        table.add_row()
        for name, texts in feet:
            table.add_row(Text(name, style="bold"), *texts[:shown])
        if matrix.grader:
            yield Text(f"{safe(matrix.grader)} of each sample with each target", style="bold")
        for line in console.render_lines(table, options, pad=False):
            yield from stripped(line)
            yield Segment.line()
        yield from self._below(shown)

    def _below(self, shown: int) -> list[Text]:
        matrix = self.matrix
        lines = [matrix.left_out] if matrix.left_out else []
        if hidden := matrix.columns[shown:]:
            what = "target" if matrix.grader else "grader"
            names = one_line(", ".join(hidden), 60)
            lines.append(f"{len(hidden)} more {what}{'s' * (len(hidden) > 1)} in a wider terminal: {names}")
        if lines:
            lines.append(f"every score: {self.all_of_it}")
        return [Text(line) for line in lines]

    def _fitting(self, rows: Sequence[tuple[str, list[Text]]], width: int) -> int:
        """Return how many columns fit beside the names of the samples, at least one."""
        left = width - max(cell_len(name) for name in ("sample", *(name for name, _ in rows)))
        for place, name in enumerate(self.matrix.columns):
            widest = max((texts[place].cell_len for _, texts in rows), default=0)
            left -= GAP + max(min(cell_len(name), _HEAD), widest)
            if left < 0:
                return max(place, 1)
        return len(self.matrix.columns)


def sample_table(graded: GradedRun, options: Sequence[str] = ()) -> Group:
    """Return the table of a graded run, with an empty line below it.

    `options` are those that a command needs to find the same scores, such as `--store` and its value.
    """
    command = shlex.join(["viva", "export", *options, graded.run.id, "--format", "csv"])
    return Group(MatrixTable(matrix_of(graded, SAMPLES), command), Text())


def _styled(text: str) -> Text:
    return Text(text, style=_STYLES["error"] if "error" in text else _STYLES["fail"] if "✗" in text else "")
