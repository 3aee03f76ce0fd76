"""`Stopping`: when the trials of a run are enough, and what they came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from vivavoce.grading.gates import Gate, SamplesGate, at_any_time
from vivavoce.grading.scores import Scores
from vivavoce.records.details import TrialsSpent
from vivavoce.records.run import Run
from vivavoce.stats.intervals import LEVEL

if TYPE_CHECKING:
    from vivavoce.run.tallies import Intervals


@dataclass(frozen=True, slots=True)
class Stopping:
    """Trials of each sample until something is known, `most` at most.

    Without a `half_width` that is whether the `gate` passes. With one it is the interval of `key`, a grader or the
    reward: of its pass rate with `of_passes`, else of its mean.
    """

    most: int
    gate: Gate | None = None
    half_width: float | None = None
    key: str = ""
    of_passes: bool = False

    @property
    def by_sample(self) -> bool:
        """Whether each sample has its own number of trials, so that a mean over all trials is of no population."""
        return self.half_width is None and isinstance(self.gate, SamplesGate)

    def met(self, scores: Mapping[str, Scores]) -> bool:
        """Return whether the trials so far are enough."""
        if self.half_width is not None:
            found = scores[self.key]
            values = [float(one) for one in found.passed] if self.of_passes else found.values
            low, high = at_any_time(found, values, LEVEL)
            return bool(found.values) and (high - low) / 2 <= self.half_width
        return self.gate is not None and self.gate.decide(scores).verdict != "inconclusive"

    def wanted(self, scores: Mapping[str, Scores]) -> set[str] | None:
        """Return the samples that need another trial, None where all do."""
        if not self.by_sample or not isinstance(self.gate, SamplesGate):
            return None
        return self.gate.undecided(scores[self.gate.metric_key])

    def spent(self, scores: Mapping[str, Scores], attempts: int, planned: int | None) -> TrialsSpent:
        """Return what the trials came to; `attempts` were made, of which `planned` would have been all."""
        return TrialsSpent(
            spent=attempts,
            planned=planned,
            most=self.most,
            half_width=self.half_width,
            of=f"{'pass rate' if self.of_passes else 'mean'} of {self.key}" if self.half_width is not None else None,
            met=self.met(scores),
            by_sample=self.by_sample,
        )


def intervals_of(run: Run) -> Intervals:
    """Return which interval the means of a stored run may have."""
    trials, gate = run.spec.get("trials"), run.spec.get("gate")
    if not isinstance(trials, dict) or run.options.get("trials"):
        return "fixed"
    by_sample = isinstance(gate, dict) and cast("dict[str, Any]", gate).get("kind") == "samples"
    return "none" if by_sample else "any_time"


def intervals_by(stopping: Stopping | None) -> Intervals:
    """Return which interval the means of a run may have."""
    return "fixed" if stopping is None else "none" if stopping.by_sample else "any_time"
