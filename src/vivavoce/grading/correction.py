"""`Correction`: the share of conversations that pass without the errors of their judge, by the labels of a calibration.

Labels that were drawn at random from the conversations themselves correct by prediction-powered estimation, those from
elsewhere by how often the judge is right about good and about bad conversations: see `vivavoce.stats.corrected`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vivavoce.grading.scores import Population
from vivavoce.records.label import Calibration, CalibrationNeed, CorrectedRate
from vivavoce.stats.corrected import Corrected, NotIdentifiable, prediction_powered, rogan_gladen, table_of
from vivavoce.stats.raters import kappa, kappa_interval

Key = tuple[str, int]
"""A sample and a trial of it."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What corrects the verdicts of one grader on the conversations that one target had in a run."""

    calibration: Calibration
    run_id: str
    target: str

    def rate(self, keys: Sequence[Key], passed: Sequence[bool], population: Population | None = None) -> CorrectedRate:
        """Return the rate of passing of conversations with these verdicts, or of all that they were drawn from."""
        verdicts = [float(one) for one in passed]
        raw = _raw(verdicts, population)
        known: dict[str, Any] = {"labels_of": self.calibration.run_id, "calibration": self.calibration.id}
        drawn = self.calibration.drawn_labels
        if not drawn:
            return CorrectedRate(**known, raw=raw, why=_none_drawn(self.calibration))
        try:
            found = self._own(keys, verdicts, population) or self._from_elsewhere(keys, verdicts, population)
        except NotIdentifiable as error:
            return CorrectedRate(**known, raw=raw, labels=len(drawn), why=str(error))
        known |= {"value": found.value, "low": found.low, "high": found.high, "raw": found.raw}
        return CorrectedRate(**known, method=found.method, labels=found.labels)

    def unmet(self, need: CalibrationNeed) -> str | None:
        """Return what the judge lacks before it may decide, in words; None where it lacks nothing."""
        drawn = len(self.calibration.drawn_labels)
        if drawn < need.labels:
            return f"its judge must be calibrated on {need.labels} labels drawn at random, and is on {drawn}"
        found = kappa_of(self.calibration)
        if found is None:
            return "how far its judge agrees with people is not known: there is only one kind of label"
        value, low = found
        if low < need.kappa:
            return (
                f"its judge must agree with people by at least κ {need.kappa:g} with 95% confidence, and does by "
                f"{value:.2f}, of which the interval begins at {low:.2f}; more labels may show more"
            )
        return None

    def _own(self, keys: Sequence[Key], passed: Sequence[float], population: Population | None) -> Corrected | None:
        """Return the estimate from labels of these conversations, None where fewer than two samples have one."""
        if self.calibration.run_id != self.run_id:
            return None
        said = {(one.sample_id, one.trial): one for one in self.calibration.drawn_labels if one.target == self.target}
        at = {key: place for place, key in enumerate(keys) if key in said}
        if len({sample for sample, _ in at}) < 2:
            return None
        labelled = set(at.values())
        rest = [place for place in range(len(keys)) if place not in labelled]
        weights = None if population is None else population.weights()
        return prediction_powered(
            [float(said[key].good) for key in at],
            [passed[place] for place in at.values()],
            [sample for sample, _ in at],
            [passed[place] for place in rest],
            [keys[place][0] for place in rest],
            [1 / (said[key].drawn or 1.0) for key in at],
            stands_for=None if weights is None else [weights[place] for place in (*at.values(), *rest)],
        )

    def _from_elsewhere(self, keys: Sequence[Key], passed: Sequence[float], population: Population | None) -> Corrected:
        drawn = self.calibration.drawn_labels
        table = table_of(
            [float(one.good) for one in drawn],
            [float(one.passed) for one in drawn],
            [one.sample_id for one in drawn],
            [1 / (one.drawn or 1.0) for one in drawn],
        )
        whole = None if population is None else population.mean(passed)
        return rogan_gladen(passed, [sample for sample, _ in keys], table, labels=len(drawn), population=whole)


def best_calibration(run_id: str, found: Iterable[Calibration]) -> Calibration | None:
    """Return the calibration that corrects a run: the newest from its own labels, else that with the most labels.

    `found` are those of one judging procedure, newest first. Labels that were not drawn at random correct nothing.
    """
    every = list(found)
    own = [one for one in every if one.run_id == run_id and one.drawn_labels]
    return next(iter(own), None) or max(every, key=lambda one: len(one.drawn_labels), default=None)


def kappa_of(calibration: Calibration) -> tuple[float, float] | None:
    """Return how far the judge agrees with the drawn labels, beyond chance, and the lower end of its 95% interval.

    None where there is only one kind of label.
    """
    drawn = calibration.drawn_labels
    passed, good = [one.passed for one in drawn], [one.good for one in drawn]
    weights = [1 / (one.drawn or 1.0) for one in drawn]
    value = kappa(passed, good, weights)
    interval = kappa_interval(passed, good, [one.sample_id for one in drawn], weights)
    return None if value is None or interval is None else (value, interval[0])


def best_calibrations(
    run_id: str, fingerprints: Mapping[str, str], found: Sequence[Calibration]
) -> dict[str, Calibration]:
    """Return for each grader the calibration of its judging procedure, where there is one."""
    best = {
        grader: best_calibration(run_id, [one for one in found if one.fingerprint == mine])
        for grader, mine in fingerprints.items()
    }
    return {grader: one for grader, one in best.items() if one is not None}


def _raw(verdicts: Sequence[float], population: Population | None) -> float | None:
    """Return the rate of the judge, None without a verdict."""
    if population is not None:
        whole = population.mean(verdicts)
        return whole and whole.mean
    return sum(verdicts) / len(verdicts) if verdicts else None


def _none_drawn(calibration: Calibration) -> str:
    if not calibration.labels:
        return "no conversation has a label that can be compared"
    return f"none of its {len(calibration.labels)} labels was drawn at random"
