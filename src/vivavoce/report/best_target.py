"""Which target of a run is best, and whether the scores can tell."""

from __future__ import annotations

from dataclasses import dataclass

from vivavoce.report.text import count, listed
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.run.tallies import TargetDifference


@dataclass(frozen=True, slots=True)
class Standing:
    """What one grader says of several targets: `scored` are those with a mean, the highest first.

    `best` is the one that is above each other target sample by sample, None if there is none: the paired interval of
    each difference lies above zero, as `compare` has it. `rivals` are the targets that may be as good as the highest,
    itself among them, and `unscored` those without a mean. `differences` are those of the highest from the others.
    """

    grader: str
    scored: tuple[GraderSummary, ...]
    best: str | None
    rivals: tuple[str, ...]
    unscored: tuple[str, ...]
    differences: tuple[TargetDifference, ...] = ()

    @property
    def finding(self) -> str:
        """Which target is best, in words, without the name of the grader."""
        if self.best is not None:
            first = self.scored[0]
            lost = f"; {count(first.errors, 'error')} left out" if first.errors else ""
            lost += f"; no score of {listed(self.unscored)}" if self.unscored else ""
            return f"{self.best} is best: {self._lead}{lost}"
        if len(self.scored) < 2:
            return f"no best target: {'only one has' if self.scored else 'none has'} scores"
        if not self.differences:
            return "no best target: the run does not say how targets differ sample by sample"
        rivals = self.rivals[1:]
        if all(difference.low is None for difference in self.differences if difference.other in rivals):
            return "no best target: a single common sample is not enough"
        are = "is" if len(rivals) == 1 else "are"
        return f"no best target: on the same samples {listed(rivals)} {are} not clearly below {self.rivals[0]}"

    @property
    def _lead(self) -> str:
        """How far the best target is above the others, sample by sample."""
        least = min(self.differences, key=lambda one: one.low or 0.0)
        interval = f"{100 * least.level:.4g}% interval {least.low:.3f} … {least.high:.3f}"
        least_of = "" if len(self.differences) == 1 else "at least "
        return f"on the same samples it is {least_of}{least.difference:.3f} above {least.other} ({interval})"


def sentences(summary: Summary) -> list[str]:
    """Return which target is best, in words; graders that find the same share a sentence."""
    found: dict[str, list[str]] = {}
    for one in standings(summary):
        found.setdefault(one.finding, []).append(one.grader)
    return [f"{listed(graders)}: {finding}" for finding, graders in found.items()]


def standings(summary: Summary) -> list[Standing]:
    """Return what each grader says of the targets of a run; nothing for a single target, or before the run ended."""
    if summary.stopped is not None or len(target_names(summary)) < 2:
        return []
    names = dict.fromkeys(grader.name for grader in summary.graders)
    return [_standing(name, summary) for name in names]


def target_names(summary: Summary) -> list[str]:
    """Return the targets of a run, in the order of its plan."""
    return list(dict.fromkeys(grader.target for grader in summary.graders))


def _standing(name: str, summary: Summary) -> Standing:
    graded = [grader for grader in summary.graders if grader.name == name]
    with_mean = [one for one in graded if one.mean is not None]
    scored = tuple(sorted(with_mean, key=lambda one: one.mean or 0.0, reverse=True))
    differences = tuple(difference for difference in summary.differences if difference.grader == name)
    below = {difference.other for difference in differences if difference.low is not None and difference.low > 0}
    rivals = tuple(one.target for one in scored if one.target not in below)
    best = rivals[0] if len(rivals) == 1 < len(scored) else None
    unscored = tuple(one.target for one in graded if one.mean is None)
    return Standing(name, scored, best, rivals, unscored, differences)
