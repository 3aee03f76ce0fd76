"""The samples of a run as a table: a row for each sample, a column for each target, or for each grader of the only one.

Of several targets the cells are the scores of one grader, the headline of the run.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from vivavoce.records.details import dollars
from vivavoce.records.run import ScoreRow
from vivavoce.records.score import Usage
from vivavoce.report.best_target import Standing, standings, target_names
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.headline import headline
from vivavoce.report.measurements import mean_text, measured_text
from vivavoce.report.target_usage import used_by_targets
from vivavoce.run.summary import GraderSummary, Summary


@dataclass(slots=True)
class Cell:
    """The scores of one sample, one or several trials of it, in one column."""

    total: float = 0.0
    measured: list[float] = field(default_factory=list[float])
    scored: int = 0
    passed: int = 0
    errors: int = 0
    skipped: int = 0

    def add(self, row: ScoreRow) -> None:
        """Count the score of a trial."""
        if row.state == "error":
            self.errors += 1
        elif row.measured is not None:
            self.measured.append(row.measured)
        elif row.value is None:
            self.skipped += 1
        else:
            self.total += row.value
            self.scored += 1
            self.passed += row.passed is True

    @property
    def mean(self) -> float | None:
        """The mean of the trials with a score."""
        return self.total / self.scored if self.scored else None

    @property
    def trials(self) -> int:
        """How many trials have a score or an error."""
        return self.scored + self.errors

    @property
    def bad(self) -> bool:
        """Whether a trial did not pass, or has no score because of an error."""
        return self.passed < self.trials


@dataclass(frozen=True, slots=True)
class Row:
    """A sample; a column that has no score of it has no cell."""

    sample: str
    cells: Mapping[str, Cell]

    @property
    def rank(self) -> tuple[int, float]:
        """Its place worst first: errors, then what did not pass, then the rest, each by the mean of its cells."""
        cells = self.cells.values()
        means = [cell.mean for cell in cells if cell.mean is not None]
        kind = 0 if any(cell.errors for cell in cells) else 1 if any(cell.bad for cell in cells) else 2
        return kind, sum(means) / len(means) if means else 0.0


@dataclass(frozen=True, slots=True)
class Foot:
    """What stands below a column: its figures over all samples, what its target used, and whether it is best."""

    summary: GraderSummary
    used: Usage | None = None
    best: bool = False


@dataclass(frozen=True, slots=True)
class Matrix:
    """Samples in the order of the dataset, and the columns, targets or graders, with their feet.

    `grader` is the one whose scores the cells are where the columns are targets, else empty. Of more samples than were
    asked for there are the worst, and `more` is how many others there are.
    """

    columns: Sequence[str]
    rows: Sequence[Row]
    feet: Mapping[str, Foot]
    more: int = 0
    grader: str = ""
    standing: Standing | None = None

    @property
    def left_out(self) -> str:
        """How many samples there are besides, in words; empty for none."""
        return f"{self.more:,} more sample{'s' * (self.more != 1)}, none of them worse" if self.more else ""


def matrix_of(graded: GradedRun, limit: int) -> Matrix:
    """Return the samples of a graded run with their scores, at most `limit` of them."""
    summary = graded.summary()
    shown = _of_targets(graded, summary) if len(target_names(summary)) > 1 else _of_graders(summary)
    found = _Found(shown.grader)
    for row in graded.store.scores(graded.grading.id):
        found.add(row)
    rows = [Row(sample, cells) for sample, cells in found.cells.items()]
    kept = set(heapq.nsmallest(limit, range(len(rows)), key=lambda i: (*rows[i].rank, i)))
    return Matrix(
        columns=shown.columns,
        rows=[row for i, row in enumerate(rows) if i in kept],
        feet=shown.feet,
        more=len(rows) - len(kept),
        grader=shown.grader,
        standing=shown.standing,
    )


@dataclass(slots=True)
class _Found:
    """The cells by sample and column, as the scores come in."""

    grader: str
    cells: dict[str, dict[str, Cell]] = field(default_factory=dict[str, dict[str, Cell]])

    def add(self, row: ScoreRow) -> None:
        """Take a score, unless it is that of another grader."""
        if self.grader and row.name != self.grader:
            return
        cells = self.cells.setdefault(row.key.sample_id, {})
        cells.setdefault(row.key.target if self.grader else row.name, Cell()).add(row)


def _of_targets(graded: GradedRun, summary: Summary) -> Matrix:
    first = headline(summary, graded.grading)
    assert first is not None
    standing = next((one for one in standings(summary) if one.grader == first.name), None)
    used = used_by_targets(graded)
    best = standing and standing.best
    feet = {
        one.target: Foot(one, used.get(one.target), one.target == best)
        for one in summary.graders
        if one.name == first.name
    }
    return Matrix(target_names(summary), (), feet, grader=first.name, standing=standing)


def _of_graders(summary: Summary) -> Matrix:
    feet = {one.name: Foot(one) for one in summary.graders}
    return Matrix(list(feet), (), feet)


def figures(matrix: Matrix, columns: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Return the feet of some columns as lines of text, each with its name; a line that has nothing is left out."""
    feet = [matrix.feet.get(column) for column in columns]
    lines = [
        ("mean", [_mean(foot) for foot in feet]),
        ("95%", [_interval(foot) for foot in feet]),
        ("passed", [_share(foot) for foot in feet]),
        ("errors", [f"{foot.summary.errors:,}" if foot and foot.summary.errors else "" for foot in feet]),
        ("tokens", [_tokens(foot) for foot in feet]),
        ("cost", [_cost(foot) for foot in feet]),
    ]
    return [(name, texts) for name, texts in lines if any(texts)]


def cell_text(cell: Cell | None) -> str:
    """Return a cell in words: the score, a ✗ if it did not pass, of several trials how many passed, and errors."""
    if cell is None or not cell.trials:
        return "–" if cell is None or not cell.measured else measured_text(fmean(cell.measured))
    if cell.mean is None:
        return "error" if cell.errors == 1 else f"{cell.errors} errors"
    several = f" {cell.passed}/{cell.trials}" if cell.trials > 1 else ""
    errors = f" ({cell.errors} error{'s' * (cell.errors > 1)})" if cell.errors else ""
    return f"{cell.mean:.2f}{several}{' ✗' if cell.bad else ''}{errors}"


def _mean(foot: Foot | None) -> str:
    if foot is None or foot.summary.mean is None:
        return "–" if foot is None else mean_text(foot.summary)
    return f"{foot.summary.mean:.3f}{' best' if foot.best else ''}"


def _interval(foot: Foot | None) -> str:
    if foot is None or foot.summary.low is None or foot.summary.high is None:
        return ""
    return f"{foot.summary.low:.2f} … {foot.summary.high:.2f}"


def _share(foot: Foot | None) -> str:
    return "" if foot is None or foot.summary.pass_rate is None else f"{foot.summary.pass_rate:.1%}"


def _tokens(foot: Foot | None) -> str:
    used = foot and foot.used
    return f"{used.input_tokens + used.output_tokens:,}" if used else ""


def _cost(foot: Foot | None) -> str:
    used = foot and foot.used
    return dollars(used.cost) if used and used.cost is not None else ""
