"""How far a judge can be believed: sensitivity, specificity and more from labels, by slice, and how many more to ask.

Only drawn labels enter a figure. Those that were chosen in another way, such as by doubt, are counted and named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from vivavoce.records.label import Calibration, LabelledVerdict
from vivavoce.records.run import Grading
from vivavoce.report.calibrated import Bin, CalibrationReport, Figure, LabelsNeeded, Measure, Slice, TargetRate
from vivavoce.report.text import count
from vivavoce.run.corrected import rates_of
from vivavoce.stats.corrected import table_of
from vivavoce.stats.intervals import mean_interval, wilson
from vivavoce.stats.kappa import kappa, kappa_interval
from vivavoce.stats.ranking import auroc, auroc_interval
from vivavoce.store.labels.calibrations import KeyedVerdict
from vivavoce.store.store import Store

FEWEST = 10
"""Labels that a slice has at least to be shown."""
WIDTH = 0.1
"""The width of an interval that is asked for unless another one is."""
_EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_Z2 = 1.959963984540054**2


def calibration_report(
    store: Store, grading: Grading, found: Calibration, *, width: float = WIDTH, kept: bool = False
) -> CalibrationReport:
    """Return what a calibration shows of the judge of a grading, which is one of the run with the labels."""
    drawn = found.drawn
    cells = {(good, passed): 0 for good in (True, False) for passed in (True, False)}
    for one in drawn:
        cells[one.good, one.passed] += 1
    verdicts = _verdicts(store, grading, found.grader)
    rates = [
        TargetRate(target=target, rate=rate) for target, rate in rates_of(store, grading, found.grader, found).items()
    ]
    return CalibrationReport(
        id=found.id,
        run=found.run_id,
        grader=found.grader,
        fingerprint=found.fingerprint,
        source=found.source,
        created_at=found.created_at,
        kept=kept,
        labels=len(found.labels),
        drawn=len(drawn),
        not_blind=sum(not one.blind for one in drawn),
        unsure=found.unsure,
        split=found.split,
        unscored=found.unscored,
        both_pass=cells[True, True],
        too_strict=cells[True, False],
        too_lenient=cells[False, True],
        both_fail=cells[False, False],
        figures=figures_of(drawn),
        bins=list(_bins(drawn)),
        slices=list(_slices(drawn, store.details.tags(found.run_id) if drawn else {})),
        people=found.people,
        rates=rates,
        needed=needed(rates, len(drawn), sum(map(len, verdicts.values())) - len(drawn), width),
        notes=list(_notes(found, cells, rates)),
    )


def figures_of(labels: Sequence[LabelledVerdict]) -> list[Figure]:
    """Return the measures of drawn labels, each with its interval.

    Sensitivity is the share of the good ones that the judge passes, specificity that of the bad ones that it fails.
    These and the accuracy have Wilson's interval for as many independent labels as they are worth.
    """
    if not labels:
        return []
    good, passed = [one.good for one in labels], [one.passed for one in labels]
    clusters, weights = [one.sample_id for one in labels], _weights(labels)
    table = table_of([float(one) for one in good], [float(one) for one in passed], clusters, weights)
    right = [float(one is other) for one, other in zip(good, passed, strict=True)]
    whole = table_of([1.0] * len(labels), right, clusters, weights)
    figures = [
        _share("sensitivity", table.tp, table.fn, sum(good)),
        _share("specificity", table.tn, table.fp, len(good) - sum(good)),
        _share("accuracy", whole.tp, whole.fn, len(labels)),
        _kappa(good, passed, clusters, weights),
        _auroc(labels, good, clusters, weights),
    ]
    return [*figures, *_brier(labels)]


def needed(rates: Sequence[TargetRate], labels: int, unlabelled: int, width: float) -> LabelsNeeded:
    """Return how many more labels make the widest interval of the rates as narrow as `width`, about.

    The width goes with one over the square root of the labels. Without an interval the variance is taken to be that
    of a judge who tells nothing about a rate of one half.
    """
    known = [one.rate.high - one.rate.low for one in rates if one.rate.high is not None and one.rate.low is not None]
    now = max(known, default=None)
    every = _Z2 / width**2 if now is None else labels * (now / width) ** 2
    more = max(0, math.ceil(every) - labels)
    enough = None if more > unlabelled else more
    return LabelsNeeded(width=width, now=now, unlabelled=unlabelled, labels=enough)


def _verdicts(store: Store, grading: Grading, grader: str) -> dict[str, list[KeyedVerdict]]:
    """Return the verdicts of a grader by target."""
    found: dict[str, list[KeyedVerdict]] = {}
    for one in store.calibrations.verdicts(grading, grader):
        found.setdefault(one.target, []).append(one)
    return found


def _weights(labels: Sequence[LabelledVerdict]) -> list[float]:
    return [1 / (one.drawn or 1.0) for one in labels]


def _share(name: Measure, hits: float, misses: float, n: int) -> Figure:
    if not hits + misses:
        return Figure(name=name, n=0)
    low, high = wilson(hits, hits + misses)
    return Figure(name=name, n=n, value=hits / (hits + misses), low=low, high=high)


def _kappa(good: Sequence[bool], passed: Sequence[bool], clusters: Sequence[str], weights: Sequence[float]) -> Figure:
    low, high = kappa_interval(passed, good, clusters, weights) or (None, None)
    return Figure(name="kappa", n=len(good), value=kappa(passed, good, weights), low=low, high=high)


def _auroc(
    labels: Sequence[LabelledVerdict], good: Sequence[bool], clusters: Sequence[str], weights: Sequence[float]
) -> Figure:
    orders = sorted({_order(one) for one in labels})
    place = {order: float(number) for number, order in enumerate(orders)}
    values = [place[_order(one)] for one in labels]
    low, high = auroc_interval(values, good, clusters, weights) or (None, None)
    return Figure(name="auroc", n=len(labels), value=auroc(values, good, weights), low=low, high=high)


def _order(one: LabelledVerdict) -> tuple[float, float]:
    """Sort by the score, and those of equal score by how sure the judge is."""
    sure = one.confidence or 0.0
    return one.score, sure if one.passed else -sure


def _brier(labels: Sequence[LabelledVerdict]) -> Iterator[Figure]:
    sure = [(one, one.confidence) for one in labels if one.confidence is not None]
    errors = [(confidence - float(one.good is one.passed)) ** 2 for one, confidence in sure]
    mine = [one for one, _ in sure]
    found = mean_interval(errors, [one.sample_id for one in mine], weights=_weights(mine))
    if found is not None:
        yield Figure(name="brier", n=found.n, value=found.mean, low=found.low, high=found.high)


def _bins(labels: Sequence[LabelledVerdict]) -> Iterator[Bin]:
    for start, end in pairwise(_EDGES):
        last = end == _EDGES[-1]
        mine = [
            (one, one.confidence)
            for one in labels
            if one.confidence is not None and (start <= one.confidence < end or (last and one.confidence == end))
        ]
        if not mine:
            continue
        inside = [one for one, _ in mine]
        weights = _weights(inside)
        right = [float(one.good is one.passed) for one in inside]
        table = table_of([1.0] * len(inside), right, [one.sample_id for one in inside], weights)
        n = table.tp + table.fn
        low, high = wilson(table.tp, n)
        said = float(np.average([confidence for _, confidence in mine], weights=weights))
        yield Bin(low_end=start, high_end=end, n=len(inside), said=said, right=table.tp / n, low=low, high=high)


def _slices(labels: Sequence[LabelledVerdict], tags: Mapping[str, frozenset[str]]) -> Iterator[Slice]:
    """Yield the figures of each target and each tag that some labels have and others have not."""
    for target in sorted({one.target for one in labels}):
        yield from _slice("target", target, [one for one in labels if one.target == target], len(labels))
    for tag in sorted({tag for one in labels for tag in tags.get(one.sample_id, ())}):
        yield from _slice("tag", tag, [one for one in labels if tag in tags.get(one.sample_id, ())], len(labels))


def _slice(kind: Literal["tag", "target"], name: str, labels: Sequence[LabelledVerdict], every: int) -> Iterator[Slice]:
    if FEWEST <= len(labels) < every:
        kept = [one for one in figures_of(labels) if one.name in ("sensitivity", "specificity", "kappa")]
        yield Slice(kind=kind, name=name, labels=len(labels), figures=kept)


def _notes(found: Calibration, cells: Mapping[tuple[bool, bool], int], rates: Sequence[TargetRate]) -> Iterator[str]:
    yield from _left_out(found)
    if found.drawn:
        yield from _one_sided(cells)
    if 0 < len(found.drawn) < FEWEST:
        verb = "shows" if len(found.drawn) == 1 else "show"
        yield f"{count(len(found.drawn), 'label')} {verb} only the largest differences: see the intervals"
    for one in rates:
        if one.rate.why is not None:
            of = f" of {one.target}" if len(rates) > 1 else ""
            yield f"no corrected rate{of}: {one.rate.why}"


def _left_out(found: Calibration) -> Iterator[str]:
    """Yield what no figure has, and what people saw."""
    if chosen := len(found.labels) - len(found.drawn):
        yield f"{count(chosen, 'label')} of conversations that were not drawn at random: no figure has them"
    if shown := sum(not one.blind for one in found.drawn):
        yield f"{count(shown, 'drawn label')} given in sight of the judge's answer, which people tend to follow"
    if found.split:
        left = f"{count(found.split, 'conversation')} on which people differ evenly: no figure has them"
        yield f"{left}, so they are about the easier ones: let a third person label these"
    if found.unsure:
        yield f"{count(found.unsure, 'conversation')} that nobody could tell: no figure has them"


def _one_sided(cells: Mapping[tuple[bool, bool], int]) -> Iterator[str]:
    """Yield what labels or verdicts of one kind leave open."""
    good, bad = cells[True, True] + cells[True, False], cells[False, False] + cells[False, True]
    if not bad:
        yield "people pass every drawn conversation: only one kind of label, so there is no specificity, κ, or AUROC"
    if not good:
        yield "people fail every drawn conversation: only one kind of label, so there is no sensitivity, κ, or AUROC"
    if good and bad and not cells[True, False] + cells[False, False]:
        yield "the judge passes everything: its rate says nothing, only the labels do"
