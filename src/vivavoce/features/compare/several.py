"""Several runs side by side, with their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from string import ascii_uppercase
from typing import NamedTuple, TypeAlias

from rich.console import Group, RenderableType
from rich.text import Text

from vivavoce.errors import UsageError
from vivavoce.records.run import Grading, Verdict
from vivavoce.report.comparison.comparison import (
    STYLES,
    WORDS,
    Compared,
    Comparison,
    GraderComparison,
    TargetComparison,
    in_markdown,
    measured_remarks,
)
from vivavoce.report.comparison.regressions import reason_lines, ruling_lines
from vivavoce.report.markdown import code, table
from vivavoce.report.markdown import interval as markdown_interval
from vivavoce.report.markdown import number as markdown_number
from vivavoce.report.terminal import interval, number
from vivavoce.report.text import Column, FittingTable, Labelled
from vivavoce.safe_text import safe

MAX_RUNS = 12
"""Runs that are compared at a time, the baseline included."""

Compare: TypeAlias = Callable[[Grading, Grading, float], Comparison]
"""Compares two gradings, with intervals of a level."""


class Line(NamedTuple):
    """What one comparison says of a grader; `letter` is that of its run."""

    letter: str
    target: TargetComparison
    grader: GraderComparison


class SeveralComparisons(Compared):
    """Comparisons of several runs with one baseline run, in the order in which they were named.

    The intervals of a grader hold together with 95%: for m runs next to the baseline each has the level 1 - 0.05 / m.

    Source: O. J. Dunn, Multiple Comparisons Among Means (1961), by the inequality of C. E. Bonferroni.
    """

    suite: str
    run: str
    grading: str
    level: float
    comparisons: list[Comparison]

    @property
    def lettered(self) -> Iterator[tuple[str, Comparison]]:
        """The comparisons, each with the letter of its run; the baseline is A."""
        return zip(ascii_uppercase[1:], self.comparisons, strict=False)

    @property
    def lines(self) -> list[Line]:
        """What the comparisons say, grader by grader."""
        lines = [
            Line(letter, target, grader)
            for letter, comparison in self.lettered
            for target in comparison.targets
            for grader in target.graders
        ]
        names = list(dict.fromkeys(line.grader.name for line in lines))
        return sorted(lines, key=lambda line: names.index(line.grader.name))

    @property
    def verdict(self) -> Verdict:
        """Whether any of the runs is worse, for comparisons with a ruling."""
        verdicts = {comparison.ruling.verdict for comparison in self.comparisons if comparison.ruling is not None}
        return "fail" if "fail" in verdicts else "inconclusive" if "inconclusive" in verdicts else "pass"


def compare_several(baseline: Grading, others: Sequence[Grading], suite: str, compare: Compare) -> SeveralComparisons:
    """Compare each of some gradings with a baseline grading of a run of `suite`.

    Raises:
        UsageError: a run is named twice, there are more than `MAX_RUNS`, or one shares no target with the baseline.
    """
    ids = [baseline.id, *(other.id for other in others)]
    twice = next((name for place, name in enumerate(ids) if name in ids[:place]), None)
    if twice is not None:
        raise UsageError(f"the grading {twice} is named twice")
    if len(ids) > MAX_RUNS:
        raise UsageError(f"compare at most {MAX_RUNS} runs at a time, got {len(ids)}")
    level = 1 - 0.05 / len(others)
    return SeveralComparisons(
        suite=suite,
        run=baseline.run_id,
        grading=baseline.id,
        level=level,
        comparisons=[compare(baseline, other, level) for other in others],
    )


_COLUMNS = (
    Column("grader"),
    Column("run"),
    Column("n", "right", rank=5),
    Column("mean A", "right", rank=4),
    Column("mean", "right", rank=4),
    Column("− A", "right"),
    Column("interval", rank=1),
    Column("reading"),
    Column("flips", rank=2),
    Column("errors", "right", rank=3),
)
_HEADS = ["grader", "run", "n", "mean A", "mean", "difference", "interval", "change", "to fail", "to pass", "errors"]


def several(comparisons: SeveralComparisons) -> Group:
    """Return what changed from a baseline to each of several runs, for the terminal."""
    parts: list[RenderableType] = [_head("A", comparisons.grading, comparisons.suite)]
    parts += [_head(letter, comparison.grading_b, comparison.suite_b) for letter, comparison in comparisons.lettered]
    parts += [Text(), FittingTable(_COLUMNS, list(_rows(comparisons))), Text(), Text(_level(comparisons), style="dim")]
    for letter, comparison in comparisons.lettered:
        lines = [*_measured_lines(comparison), *(change.sentence for change in comparison.changes), *comparison.notes]
        parts += [Labelled(Text(f"{letter}  "), Text(safe(line))) for line in lines]
        if comparison.ruling is not None:
            parts += [Text(), Text(f"{letter}", style="bold"), *list(ruling_lines(comparison.ruling))[1:]]
    return Group(*parts)


def markdown_several(comparisons: SeveralComparisons) -> str:
    """Return what changed from a baseline to each of several runs, as Markdown that ends with an empty line."""
    return "\n".join([*_markdown(comparisons), "", ""])


def _head(letter: str, grading: str, suite: str) -> Labelled:
    return Labelled(Text(f"{letter}  ", style="bold"), Text(f"{grading} · {safe(suite)}", style="bold"))


def _measured_lines(comparison: Comparison) -> list[str]:
    """Return how each grader that measures changed."""
    return [line for target in comparison.targets for line in measured_remarks(target.graders)]


def _level(comparisons: SeveralComparisons) -> str:
    level = f"{100 * comparisons.level:.4g}%"
    return f"each run compared with A; all intervals of a grader together have 95% confidence (each has {level})"


def _rows(comparisons: SeveralComparisons) -> Iterator[list[Text]]:
    before = ""
    for line in comparisons.lines:
        grader, style = line.grader, STYLES.get(line.grader.reading, "")
        cells = [
            "" if grader.name == before else safe(grader.name),
            line.letter + _target(comparisons, line),
            str(grader.n),
            number(grader.mean_a),
            number(grader.mean_b),
        ]
        difference = "–" if grader.difference is None else f"{grader.difference:+.3f}"
        after = [
            interval(grader.low, grader.high),
            WORDS[grader.reading],
            _flips(grader),
            f"{grader.a.errors}/{grader.b.errors}",
        ]
        yield [*map(Text, cells), Text(difference, style=style), *map(Text, after)]
        before = grader.name


def _target(several_comparisons: SeveralComparisons, line: Line) -> str:
    return (
        f" {safe(line.target.target_b)}"
        if any(len(comparison.targets) > 1 for comparison in several_comparisons.comparisons)
        else ""
    )


def _flips(comparison: GraderComparison) -> str:
    return (
        f"{len(comparison.worsened)} worse, {len(comparison.improved)} better"
        if comparison.worsened or comparison.improved
        else "none"
    )


def _markdown(several_comparisons: SeveralComparisons) -> Iterator[str]:
    runs = f"{len(several_comparisons.comparisons)} runs after run {code(several_comparisons.run)}"
    yield f"**{code(several_comparisons.suite)}: {runs}**"
    yield ""
    yield f"- A: {code(several_comparisons.run)}"
    yield from (f"- {letter}: {code(comparison.run_b)}" for letter, comparison in several_comparisons.lettered)
    yield ""
    yield from table(
        _HEADS, "llrrrrllrrr", (_markdown_row(several_comparisons, line) for line in several_comparisons.lines)
    )
    yield from ("", _level(several_comparisons))
    for letter, comparison in several_comparisons.lettered:
        ruling = (
            []
            if comparison.ruling is None
            else [comparison.ruling.sentence.capitalize(), *reason_lines(comparison.ruling)]
        )
        lines = [
            *ruling,
            *_measured_lines(comparison),
            *(change.sentence for change in comparison.changes),
            *comparison.notes,
        ]
        yield from (["", f"{letter}:", "", *(f"- {code(text, 400)}" for text in lines)] if lines else [])


def _markdown_row(comparisons: SeveralComparisons, line: Line) -> list[str]:
    grader = line.grader
    difference = "–" if grader.difference is None else f"{grader.difference:+.3f}"
    target = _target(comparisons, line)
    return [
        code(grader.name),
        f"{line.letter}{' ' + code(line.target.target_b) if target else ''}",
        str(grader.n),
        markdown_number(grader.mean_a),
        markdown_number(grader.mean_b),
        difference,
        markdown_interval(grader.low, grader.high),
        in_markdown(grader.reading),
        str(len(grader.worsened)),
        str(len(grader.improved)),
        f"{grader.a.errors}/{grader.b.errors}",
    ]
