"""Several graded runs, each compared with the same baseline run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from string import ascii_uppercase
from typing import NamedTuple, TypeAlias

from vivavoce.errors import UsageError
from vivavoce.records.run import Grading, Verdict
from vivavoce.report.comparison import Compared, Comparison, GraderComparison, TargetComparison

MOST = 12
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

    The intervals of a grader hold together with 95%: for m runs beside the baseline each has the level 1 - 0.05 / m.

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
        found = [
            Line(letter, target, grader)
            for letter, one in self.lettered
            for target in one.targets
            for grader in target.graders
        ]
        names = list(dict.fromkeys(line.grader.name for line in found))
        return sorted(found, key=lambda line: names.index(line.grader.name))

    @property
    def verdict(self) -> Verdict:
        """Whether any of the runs is worse, for comparisons with a ruling."""
        verdicts = {one.ruling.verdict for one in self.comparisons if one.ruling is not None}
        return "fail" if "fail" in verdicts else "inconclusive" if "inconclusive" in verdicts else "pass"


def compare_several(baseline: Grading, others: Sequence[Grading], suite: str, compare: Compare) -> SeveralComparisons:
    """Compare each of some gradings with a baseline grading of a run of `suite`.

    Raises:
        UsageError: a run is named twice, there are more than `MOST`, or one has no target in common with the baseline.
    """
    named = [baseline.id, *(one.id for one in others)]
    twice = next((name for place, name in enumerate(named) if name in named[:place]), None)
    if twice is not None:
        raise UsageError(f"the scores {twice} are named twice")
    if len(named) > MOST:
        raise UsageError(f"compare at most {MOST} runs at a time, got {len(named)}")
    level = 1 - 0.05 / len(others)
    return SeveralComparisons(
        suite=suite,
        run=baseline.run_id,
        grading=baseline.id,
        level=level,
        comparisons=[compare(baseline, one, level) for one in others],
    )
