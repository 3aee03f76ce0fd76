"""The rates of a run without the errors of their judges, from the calibrations of its store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from vivavoce.plugins import lazy
from vivavoce.records.label import Calibration, CorrectedRate
from vivavoce.records.run import Grading, Run
from vivavoce.run.summary import Summary
from vivavoce.run.tallies import Correct, tally
from vivavoce.store.store import Store

if TYPE_CHECKING:
    from vivavoce.grading.scores import Corrects

MOST = 500
"""Rates that are kept; those of a set of scores that has ended do not change."""

_Key = tuple[str, str, float, str, str]
_kept: OrderedDict[_Key, Mapping[str, CorrectedRate]] = OrderedDict()
_lock = Lock()


def calibrated(store: Store, run_id: str, fingerprints: Mapping[str, str]) -> dict[str, Calibration]:
    """Return for each grader the calibration that corrects its rates in a run, where there is one."""
    found = store.calibrations.with_fingerprints(fingerprints.values())
    # numpy takes long to load, and most runs have no calibration
    return lazy("vivavoce.grading.correction:best_calibrations")(run_id, fingerprints, found) if found else {}


def correcting(store: Store, run_id: str, fingerprints: Mapping[str, str]) -> Correct:
    """Return what gives a gate the calibration of a grader for a target, None where there is none."""
    found = calibrated(store, run_id, fingerprints)

    def correct(target: str, grader: str) -> Corrects | None:
        one = found.get(grader)
        return None if one is None else lazy("vivavoce.grading.correction:Correction")(one, run_id, target)

    return correct


def corrected(summary: Summary, store: Store, run: Run, grading: Grading) -> Summary:
    """Return a summary whose graders have their corrected rate, or why there is none where they were calibrated."""
    found = calibrated(store, run.id, grading.fingerprints)
    stale = store.calibrations.stale(run.suite, grading) if len(found) < len(grading.fingerprints) else {}
    if not found and not stale:
        return summary
    rates = {name: _rates(store, grading, name, one) for name, one in found.items()}
    graders = [
        grader.model_copy(update={"corrected": rates[grader.name].get(grader.target)})
        if grader.name in rates
        else grader.model_copy(update={"corrected": _stale(stale[grader.name])})
        if grader.name in stale
        else grader
        for grader in summary.graders
    ]
    return summary.model_copy(update={"graders": graders})


def rates_of(store: Store, grading: Grading, grader: str, calibration: Calibration) -> dict[str, CorrectedRate]:
    """Return the rate of a grader by target, without the errors of its judge that labels show."""
    correction = lazy("vivavoce.grading.correction:Correction")
    sampling = store.run(grading.run_id).sampling
    if sampling is not None:
        rows = (row for row in store.scores(grading.id) if (row.kind, row.name) == ("grade", grader))
        mine = {target: one.scores for (target, _), one in tally(rows, sampling=sampling).items() if one.values}
        made = {target: correction(calibration, grading.run_id, target) for target in mine}
        rates = {target: replace(one, correction=made[target]).corrected() for target, one in mine.items()}
        return {target: rate for target, rate in rates.items() if rate is not None}
    by_target: dict[str, tuple[list[tuple[str, int]], list[bool]]] = {}
    for one in store.calibrations.verdicts(grading, grader):
        keys, passed = by_target.setdefault(one.target, ([], []))
        keys.append((one.sample_id, one.trial))
        passed.append(one.passed)
    return {
        target: correction(calibration, grading.run_id, target).rate(keys, passed)
        for target, (keys, passed) in by_target.items()
    }


def _rates(store: Store, grading: Grading, grader: str, calibration: Calibration) -> Mapping[str, CorrectedRate]:
    """Return the rate of a calibrated grader by target."""
    if grading.finished_at is None:
        return rates_of(store, grading, grader, calibration)
    key = (store.place, grading.id, grading.finished_at, grader, calibration.id)
    with _lock:
        if (kept := _kept.get(key)) is not None:
            _kept.move_to_end(key)
            return kept
    found = rates_of(store, grading, grader, calibration)
    with _lock:
        _kept[key] = found
        while len(_kept) > MOST:
            _kept.popitem(last=False)
    return found


def _stale(run_id: str) -> CorrectedRate:
    why = f"it was calibrated in run {run_id} with another prompt, model or setting; calibrate it again"
    return CorrectedRate(why=why, labels_of=run_id)
