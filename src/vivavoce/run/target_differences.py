"""How the targets of one run differ, sample by sample."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.run.tallies import Tallies, Tally


class TargetDifference(BaseModel):
    """The highest mean of a grader less that of another target, over the `n` samples that both have a score of.

    The interval has the `level` 1 - 0.05 / m for m other targets, so that all of them hold together with 95%. Its ends
    are None for a single pair. It is the interval that `compare` gives for the two targets.

    Source: O. J. Dunn, Multiple Comparisons Among Means (1961), by the inequality of C. E. Bonferroni.
    """

    model_config = ConfigDict(frozen=True)

    grader: str
    target: str
    other: str
    n: int
    difference: float
    low: float | None
    high: float | None
    level: float


def target_differences(tallies: Tallies) -> list[TargetDifference]:
    """Return for each grader how the target with the highest mean differs from each other one, sample by sample.

    Conversations that were drawn with unequal probabilities cannot be compared one by one, and give none.
    """
    by_grader: dict[str, dict[str, Tally]] = {}
    for (target, grader), scores in tallies.items():
        if scores.values and (scores.sampling is None or scores.sampling.even):
            by_grader.setdefault(grader, {})[target] = scores
    return [one for grader, scored in by_grader.items() for one in _of_grader(grader, scored)]


def _of_grader(grader: str, scored: Mapping[str, Tally]) -> Iterator[TargetDifference]:
    if len(scored) < 2:
        return
    by_sample = {target: _by_sample(scores.samples, scores.values) for target, scores in scored.items()}
    highest = max(scored, key=lambda target: math.fsum(scored[target].values) / len(scored[target].values))
    level = 1 - 0.05 / (len(scored) - 1)
    for other in scored:
        if other == highest:
            continue
        found = lazy("vivavoce.stats.paired:paired_difference")(by_sample[other], by_sample[highest], level)
        if found is not None:
            yield TargetDifference(
                grader=grader,
                target=highest,
                other=other,
                n=found.n,
                difference=found.mean,
                low=found.low,
                high=found.high,
                level=level,
            )


def _by_sample(samples: Sequence[str], values: Sequence[float]) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = {}
    for sample, value in zip(samples, values, strict=True):
        scores.setdefault(sample, []).append(value)
    return scores
