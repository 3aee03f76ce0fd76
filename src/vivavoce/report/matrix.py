"""Targets against graders as a table, with what each target used."""

from __future__ import annotations

import heapq
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from vivavoce.models.prices import Price, price_of
from vivavoce.records.details import dollars
from vivavoce.records.run import Run, ScoreRow, described_targets
from vivavoce.records.score import Usage
from vivavoce.report.details import Standing, mean_text, measured_text, standings, target_names
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import GAP, one_line, strip_trailing_blanks
from vivavoce.report.verdict import headline
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.safe_text import safe
from vivavoce.suites.command_line import described_target
from vivavoce.suites.target_spec import OpenAITargetSpec

_OPENAI = "https://api.openai.com/"


def used_by_targets(graded: GradedRun) -> dict[str, Usage]:
    """Return what each of several targets used in all its conversations, by its name, if it tells.

    Where a target does not tell the cost, it is that of its tokens by the table of prices; None without a price.
    """
    if len(target_names(graded.summary())) < 2:
        return {}
    usages = graded.store.used_by_targets(graded.run.id)
    prices = _prices(graded.run) if any(used.cost is None for used in usages.values()) else {}
    return {name: _add_cost(used, prices.get(name)) for name, used in usages.items()}


def _add_cost(used: Usage, price: Price | None) -> Usage:
    return used if used.cost is not None or price is None else used.model_copy(update={"cost": price.cost(used)})


def _prices(run: Run) -> dict[str, Price | None]:
    """Return the price of each model of an OpenAI-compatible target, by the name of the target."""
    specs = [described_target(target) for target in described_targets(run.spec)]
    return {
        name: price_of(f"openai:{model}" if spec.base_url.startswith(_OPENAI) else f"{spec.base_url}#{model}")
        for spec in specs
        if isinstance(spec, OpenAITargetSpec)
        for name, model in spec.names_and_models
    }


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
    matrix = _of_targets(graded, summary) if len(target_names(summary)) > 1 else _of_graders(summary)
    collector = _CellCollector(matrix.grader)
    for row in graded.store.scores(graded.grading.id):
        collector.add(row)
    rows = [Row(sample, cells) for sample, cells in collector.cells.items()]
    retained = set(heapq.nsmallest(limit, range(len(rows)), key=lambda i: (*rows[i].rank, i)))
    return Matrix(
        columns=matrix.columns,
        rows=[row for i, row in enumerate(rows) if i in retained],
        feet=matrix.feet,
        more=len(rows) - len(retained),
        grader=matrix.grader,
        standing=matrix.standing,
    )


@dataclass(slots=True)
class _CellCollector:
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
    standing = next((standing for standing in standings(summary) if standing.grader == first.name), None)
    used = used_by_targets(graded)
    best = standing and standing.best
    feet = {
        grader.target: Foot(grader, used.get(grader.target), grader.target == best)
        for grader in summary.graders
        if grader.name == first.name
    }
    return Matrix(target_names(summary), (), feet, grader=first.name, standing=standing)


def _of_graders(summary: Summary) -> Matrix:
    feet = {grader.name: Foot(grader) for grader in summary.graders}
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
            (one_line(row.sample, _SAMPLE), [_style_cell(cell_text(row.cells.get(name))) for name in matrix.columns])
            for row in matrix.rows
        ]
        feet = [(name, [Text(safe(text)) for text in texts]) for name, texts in figures(matrix, matrix.columns)]
        visible_count = self._fitting([*body, *feet], options.max_width)
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
        table.add_column("sample", no_wrap=True, overflow="ellipsis")
        for name in matrix.columns[:visible_count]:
            table.add_column(Text(safe(name)), no_wrap=True, overflow="ellipsis", max_width=_HEAD)
        for name, texts in body:
            table.add_row(Text(safe(name)), *texts[:visible_count])
        table.add_row()
        for name, texts in feet:
            table.add_row(Text(name, style="bold"), *texts[:visible_count])
        if matrix.grader:
            yield Text(f"{safe(matrix.grader)} of each sample with each target", style="bold")
        for line in console.render_lines(table, options, pad=False):
            yield from strip_trailing_blanks(line)
            yield Segment.line()
        yield from self._below(visible_count)

    def _below(self, visible_count: int) -> list[Text]:
        matrix = self.matrix
        lines = [matrix.left_out] if matrix.left_out else []
        if hidden := matrix.columns[visible_count:]:
            what = "target" if matrix.grader else "grader"
            names = one_line(", ".join(hidden), 60)
            lines.append(f"{len(hidden)} more {what}{'s' * (len(hidden) > 1)} in a wider terminal: {names}")
        if lines:
            lines.append(f"every score: {self.all_of_it}")
        return [Text(line) for line in lines]

    def _fitting(self, rows: Sequence[tuple[str, list[Text]]], width: int) -> int:
        """Return how many columns fit next to the names of the samples, at least one."""
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


def _style_cell(text: str) -> Text:
    return Text(text, style=_STYLES["error"] if "error" in text else _STYLES["fail"] if "✗" in text else "")
