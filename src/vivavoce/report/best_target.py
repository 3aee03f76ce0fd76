"""Which target of a run is best, and whether the scores can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vivavoce.report.text import count, listed
from vivavoce.run.summary import GraderSummary, Summary


@dataclass(frozen=True, slots=True)
class Standing:
    """What one grader says of several targets: `scored` are those with a mean, the highest first.

    `best` is the one whose 95% interval lies above those of all others, None if there is none. `rivals` are the targets
    that cannot be told from the highest, itself among them, and `unscored` those without a mean.
    """

    grader: str
    scored: tuple[GraderSummary, ...]
    best: str | None
    rivals: tuple[str, ...]
    unscored: tuple[str, ...]

    @property
    def finding(self) -> str:
        """Which target is best, in words, without the name of the grader."""
        if self.best is not None:
            first = self.scored[0]
            lost = f"; {count(first.errors, 'error')} left out" if first.errors else ""
            lost += f"; no score of {listed(self.unscored)}" if self.unscored else ""
            return f"{self.best} is best: its 95% interval is above the others{lost}"
        if len(self.scored) < 2:
            return f"no best target: {'only one has' if self.scored else 'none has'} scores"
        if any(one.low is None for one in self.scored):
            return "no best target: one sample has no interval"
        return f"{listed(self.rivals)} are not distinguishable: their 95% intervals overlap"


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
    names = dict.fromkeys(one.name for one in summary.graders)
    return [_standing(name, [one for one in summary.graders if one.name == name]) for name in names]


def target_names(summary: Summary) -> list[str]:
    """Return the targets of a run, in the order of its plan."""
    return list(dict.fromkeys(one.target for one in summary.graders))


def _standing(name: str, graded: Sequence[GraderSummary]) -> Standing:
    with_mean = [one for one in graded if one.mean is not None]
    scored = tuple(sorted(with_mean, key=lambda one: one.mean or 0.0, reverse=True))
    rivals = tuple(one.target for one in scored if _overlap(scored[0], one))
    best = rivals[0] if len(rivals) == 1 < len(scored) else None
    return Standing(name, scored, best, rivals, tuple(one.target for one in graded if one.mean is None))


def _overlap(highest: GraderSummary, other: GraderSummary) -> bool:
    """Return whether the intervals of two targets have a value in common; one that is not known may have any."""
    if highest is other or highest.low is None or other.high is None:
        return True
    return other.high >= highest.low
