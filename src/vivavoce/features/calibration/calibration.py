"""Calibration: how a judge compares with the labels of people, and how that is shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vivavoce.errors import NotFound, Problem, UsageError
from vivavoce.files.rows import format_of, read_rows
from vivavoce.records.label import Calibration, CorrectedRate, HumanVerdict, Label, LabelledVerdict, PeopleAgreement
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.records.score import conversation_label
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.label_agreement import collect_rated, people_agreement
from vivavoce.report.text import count
from vivavoce.run.corrected import rates_of
from vivavoce.stats.corrected import table_of
from vivavoce.stats.intervals import mean_interval, wilson
from vivavoce.stats.ranking import auroc, auroc_interval
from vivavoce.stats.raters import kappa, kappa_interval
from vivavoce.store.calibrations import KeyedVerdict, new_calibration
from vivavoce.store.labels import Paired, Truth, truth_of
from vivavoce.store.store import Store


class FileLabel(BaseModel):
    """A line of a file of labels, as `viva labels export` writes them; more fields are ignored."""

    model_config = ConfigDict(frozen=True)

    sample_id: str
    verdict: HumanVerdict
    target: str | None = None
    trial: int = Field(default=0, ge=0)
    turn: int | None = None
    grader: str = ""
    author: str = ""
    blind: bool = True
    drawn: float | None = Field(default=None, gt=0)


def from_people(store: Store, grading: Grading, grader: str, author: str) -> Calibration:
    """Return the labels that people gave on the pages and through the API, next to the verdicts of a grader.

    Where people differ, the decision counts, else what most of them say. `author` is who calibrates.

    Raises:
        NotFound: there is no such grader.
    """
    pairs, decisions = store.labels.paired(grading, grader), store.decisions.all(grading.run_id, grader=grader)
    truth = truth_of(pairs, decisions)
    truth.people = people_agreement([pair.label for pair in pairs])
    _drawn_in_all(truth, store.calibrations.verdicts(grading, grader))
    return new_calibration(grading, grader, truth, "people", author)


def find_calibration(
    store: Store, grading: Grading, grader: str, author: str, saved_id: str | None = None
) -> tuple[Calibration, bool]:
    """Return the calibration of a grader to look at, and whether it is a kept one.

    That is the one with the id `kept`; without one the labels of people as they are now; where there are none, the
    newest kept one of this judge in this run.

    Raises:
        NotFound: there is no such grader, or no calibration `kept` of it.
    """
    if saved_id is None:
        current = from_people(store, grading, grader, author)
        if current.labels:
            return current, False
        mine = grading.fingerprints[grader]
        same = [
            calibration
            for calibration in store.calibrations.of_run(grading.run_id, grader)
            if calibration.fingerprint == mine
        ]
        return (same[0], True) if same else (current, False)
    for saved in store.calibrations.of_run(grading.run_id, grader):
        if saved.id == saved_id:
            return saved, True
    raise NotFound("calibration", saved_id, within=f"run {grading.run_id}")


def from_file(graded: GradedRun, grader: str, path: Path, author: str, *, at_random: bool) -> Calibration:
    """Return the labels of a file next to the verdicts of a grader.

    `at_random` says that its conversations were drawn at random; otherwise a conversation counts as drawn if the
    file says so, or all where every conversation has a label.

    Raises:
        UsageError: a line is not a label, or of a conversation that the run does not have. NotFound: no such grader.
    """
    if format_of(path) == "csv":
        raise UsageError(Problem("labels are read from JSON Lines: viva labels export > labels.jsonl", path))
    places, pairs = _Places.of(graded, grader), list[Paired]()
    for number, row in read_rows(path):
        label = _line(row, path, number)
        if label.turn is None and label.grader in ("", grader):
            try:
                pairs.append(places.pair(label, grader, at_random=at_random))
            except ValueError as error:
                raise UsageError(Problem(str(error), path, number)) from None
    if not pairs:
        raise UsageError(Problem(f"has no label of a whole conversation for grader '{grader}'", path))
    truth = truth_of(pairs)
    truth.people = people_agreement([pair.label for pair in pairs])
    _drawn_in_all(truth, list(places.verdicts.values()))
    return new_calibration(graded.grading, grader, truth, "file", author)


def from_dataset(
    graded: GradedRun, grader: str, label: str, author: str, *, good_from: float | None, at_random: bool
) -> Calibration:
    """Return a label of the rows of the dataset next to the verdicts of a grader; `at_random` as in `from_file`.

    Raises:
        UsageError: no row has the label, or it is not a yes or no and `good_from` is missing. NotFound: no such grader.
    """
    (rated_cases,) = collect_rated(graded.outcomes(), [grader], label)
    truth, probability = Truth(unscored=rated_cases.skipped + rated_cases.errors.total()), 1.0 if at_random else None
    numbers = 0
    for case in rated_cases.cases:
        good = case.ratings.good(good_from)
        numbers += not case.ratings.boolean and good_from is None
        if good is None or case.passed is None:
            truth.split += good is None
            truth.unscored += good is not None
            continue
        verdict = LabelledVerdict(
            **case.key._asdict(),
            good=good,
            passed=case.passed,
            score=case.order[0],
            confidence=case.confidence,
            drawn=probability,
            blind=True,
        )
        truth.labels.append(verdict)
    if numbers:
        raise UsageError(f"labels.{label} is a number; set the lowest good value, such as --good-from 4")
    _drawn_in_all(truth, graded.store.calibrations.verdicts(graded.grading, grader))
    return new_calibration(graded.grading, grader, truth, "dataset", author)


def _drawn_in_all(truth: Truth, verdicts: Sequence[KeyedVerdict]) -> None:
    """Say how likely each label was drawn: where every conversation with a verdict has one, nothing was chosen.

    Where the conversations of the run were drawn themselves with unequal probabilities, a label had to be drawn twice.
    """
    if truth.labels and len(truth.labels) == len(verdicts):
        truth.labels = [label.model_copy(update={"drawn": 1.0}) for label in truth.labels]
    likely = {_key(verdict): verdict.drawn.probability for verdict in verdicts if verdict.drawn is not None}
    if len(set(likely.values())) > 1:
        truth.labels = [
            label.model_copy(update={"drawn": label.drawn and label.drawn * likely[label.key]})
            for label in truth.labels
        ]


def _line(row: dict[str, Any], path: Path, number: int) -> FileLabel:
    try:
        return FileLabel.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = f'{where}: {first["msg"]}; a label is {{"sample_id": …, "verdict": "pass" or "fail"}}'
        raise UsageError(Problem(message, path, number)) from None


@dataclass(frozen=True, slots=True)
class _Places:
    """The conversations of a run by sample and trial, and the verdicts of a grader."""

    run_id: str
    keys: Mapping[tuple[str, int], Sequence[AttemptKey]]
    verdicts: Mapping[AttemptKey, KeyedVerdict]

    @classmethod
    def of(cls, graded: GradedRun, grader: str) -> Self:
        keys: dict[tuple[str, int], list[AttemptKey]] = {}
        for key in sorted(graded.store.done(graded.run.id)):
            keys.setdefault((key.sample_id, key.trial), []).append(key)
        verdicts = graded.store.calibrations.verdicts(graded.grading, grader)
        return cls(graded.run.id, keys, {_key(verdict): verdict for verdict in verdicts})

    def pair(self, file_label: FileLabel, grader: str, *, at_random: bool) -> Paired:
        """Return a label of a file with its score.

        Raises:
            ValueError: it is of no conversation of the run, or of several.
        """
        key = self._labelled_key(file_label)
        label = Label(
            **key._asdict(),
            grader=grader,
            author=file_label.author,
            verdict=file_label.verdict,
            blind=file_label.blind,
            drawn=file_label.drawn or (1.0 if at_random else None),
            created_at=0.0,
        )
        score = self.verdicts.get(key)
        if score is None:
            return Paired(label, None, None, None)
        return Paired(label, "scored", score.score, score.passed, score.confidence)

    def _labelled_key(self, label: FileLabel) -> AttemptKey:
        attempts = self.keys.get((label.sample_id, label.trial), ())
        matching = [key for key in attempts if label.target in (None, key.target)]
        if len(matching) == 1:
            return matching[0]
        name = conversation_label(label.sample_id, label.trial)
        if matching:
            raise ValueError(f"{name} has several targets; name one of {', '.join(key.target for key in matching)}")
        raise ValueError(f"run {self.run_id} has no conversation {name}")


def _key(verdict: KeyedVerdict) -> AttemptKey:
    return AttemptKey(verdict.sample_id, verdict.target, verdict.trial)


Measure = Literal["sensitivity", "specificity", "accuracy", "kappa", "auroc", "brier"]


class Figure(BaseModel):
    """A measure over `n` labels with its 95% interval; None where it cannot be computed."""

    model_config = ConfigDict(frozen=True)

    name: Measure
    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


class Bin(BaseModel):
    """Verdicts whose judge was sure by `low_end` to `high_end`: how sure on average, and how often it was right."""

    model_config = ConfigDict(frozen=True)

    low_end: float
    high_end: float
    n: int
    said: float
    right: float
    low: float
    high: float


class Slice(BaseModel):
    """The figures of the labels with one tag, or of one target."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["tag", "target"]
    name: str
    labels: int
    figures: list[Figure]


class TargetRate(BaseModel):
    """The corrected rate of one target."""

    model_config = ConfigDict(frozen=True)

    target: str
    rate: CorrectedRate


class LabelsNeeded(BaseModel):
    """How many more labels drawn at random make the interval of a corrected rate as narrow as `width`, about.

    `labels` is None where not even a label for each of the `unlabelled` conversations does.
    """

    model_config = ConfigDict(frozen=True)

    width: float
    now: float | None = None
    unlabelled: int = 0
    labels: int | None = None


class CalibrationReport(BaseModel):
    """A calibration with what it shows; `kept` says that it corrects rates.

    `drawn` labels enter the figures; `not_blind` of them were given in sight of the judge's answer. Rows of the table:
    `both_pass`, `too_strict` where people pass what the judge fails, `too_lenient`, `both_fail`, of drawn labels.
    `notes` say what cannot be stated, and why.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    run: str
    grader: str
    fingerprint: str
    source: str
    created_at: float
    kept: bool
    labels: int
    drawn: int
    not_blind: int
    unsure: int
    split: int
    unscored: int
    both_pass: int
    too_strict: int
    too_lenient: int
    both_fail: int
    figures: list[Figure]
    bins: list[Bin]
    slices: list[Slice]
    people: PeopleAgreement | None
    rates: list[TargetRate]
    needed: LabelsNeeded
    notes: list[str]


MIN_LABELS = 10
"""Labels that a slice has at least to be shown."""
WIDTH = 0.1
"""The width of an interval that is asked for unless another one is."""
_EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_Z2 = 1.959963984540054**2


def calibration_report(
    store: Store, grading: Grading, calibration: Calibration, *, width: float = WIDTH, is_saved: bool = False
) -> CalibrationReport:
    """Return what a calibration shows of the judge of a grading, which is one of the run with the labels."""
    drawn_labels = calibration.drawn_labels
    cells = {(good, passed): 0 for good in (True, False) for passed in (True, False)}
    for label in drawn_labels:
        cells[label.good, label.passed] += 1
    verdicts = _verdicts(store, grading, calibration.grader)
    rates = [
        TargetRate(target=target, rate=rate)
        for target, rate in rates_of(store, grading, calibration.grader, calibration).items()
    ]
    return CalibrationReport(
        id=calibration.id,
        run=calibration.run_id,
        grader=calibration.grader,
        fingerprint=calibration.fingerprint,
        source=calibration.source,
        created_at=calibration.created_at,
        kept=is_saved,
        labels=len(calibration.labels),
        drawn=len(drawn_labels),
        not_blind=sum(not label.blind for label in drawn_labels),
        unsure=calibration.unsure,
        split=calibration.split,
        unscored=calibration.unscored,
        both_pass=cells[True, True],
        too_strict=cells[True, False],
        too_lenient=cells[False, True],
        both_fail=cells[False, False],
        figures=figures_of(drawn_labels),
        bins=list(_bins(drawn_labels)),
        slices=list(_slices(drawn_labels, store.details.tags(calibration.run_id) if drawn_labels else {})),
        people=calibration.people,
        rates=rates,
        needed=estimate_labels(rates, len(drawn_labels), sum(map(len, verdicts.values())) - len(drawn_labels), width),
        notes=list(_notes(calibration, cells, rates)),
    )


def figures_of(labels: Sequence[LabelledVerdict]) -> list[Figure]:
    """Return the measures of drawn labels, each with its interval.

    Sensitivity is the share of the good ones that the judge passes, specificity that of the bad ones that it fails.
    These and the accuracy have Wilson's interval for as many independent labels as they are worth.
    """
    if not labels:
        return []
    good, passed = [label.good for label in labels], [label.passed for label in labels]
    clusters, weights = [label.sample_id for label in labels], _weights(labels)
    table = table_of([float(flag) for flag in good], [float(flag) for flag in passed], clusters, weights)
    right = [float(is_good is has_passed) for is_good, has_passed in zip(good, passed, strict=True)]
    whole = table_of([1.0] * len(labels), right, clusters, weights)
    figures = [
        _share("sensitivity", table.tp, table.fn, sum(good)),
        _share("specificity", table.tn, table.fp, len(good) - sum(good)),
        _share("accuracy", whole.tp, whole.fn, len(labels)),
        _kappa(good, passed, clusters, weights),
        _auroc(labels, good, clusters, weights),
    ]
    return [*figures, *_brier(labels)]


def estimate_labels(rates: Sequence[TargetRate], labels: int, unlabelled: int, width: float) -> LabelsNeeded:
    """Return how many more labels make the widest interval of the rates as narrow as `width`, about.

    The width goes with one over the square root of the labels. Without an interval the variance is taken to be that
    of a judge who tells nothing about a rate of one half.
    """
    known = [
        rate.rate.high - rate.rate.low for rate in rates if rate.rate.high is not None and rate.rate.low is not None
    ]
    now = max(known, default=None)
    every = _Z2 / width**2 if now is None else labels * (now / width) ** 2
    more = max(0, math.ceil(every) - labels)
    enough = None if more > unlabelled else more
    return LabelsNeeded(width=width, now=now, unlabelled=unlabelled, labels=enough)


def _verdicts(store: Store, grading: Grading, grader: str) -> dict[str, list[KeyedVerdict]]:
    """Return the verdicts of a grader by target."""
    by_target: dict[str, list[KeyedVerdict]] = {}
    for verdict in store.calibrations.verdicts(grading, grader):
        by_target.setdefault(verdict.target, []).append(verdict)
    return by_target


def _weights(labels: Sequence[LabelledVerdict]) -> list[float]:
    return [1 / (label.drawn or 1.0) for label in labels]


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
    orders = sorted({_order(label) for label in labels})
    place = {order: float(number) for number, order in enumerate(orders)}
    values = [place[_order(label)] for label in labels]
    low, high = auroc_interval(values, good, clusters, weights) or (None, None)
    return Figure(name="auroc", n=len(labels), value=auroc(values, good, weights), low=low, high=high)


def _order(verdict: LabelledVerdict) -> tuple[float, float]:
    """Sort by the score, and those of equal score by how sure the judge is."""
    sure = verdict.confidence or 0.0
    return verdict.score, sure if verdict.passed else -sure


def _brier(labels: Sequence[LabelledVerdict]) -> Iterator[Figure]:
    sure = [(label, label.confidence) for label in labels if label.confidence is not None]
    errors = [(confidence - float(label.good is label.passed)) ** 2 for label, confidence in sure]
    mine = [label for label, _ in sure]
    estimate = mean_interval(errors, [label.sample_id for label in mine], weights=_weights(mine))
    if estimate is not None:
        yield Figure(name="brier", n=estimate.n, value=estimate.mean, low=estimate.low, high=estimate.high)


def _bins(labels: Sequence[LabelledVerdict]) -> Iterator[Bin]:
    for start, end in pairwise(_EDGES):
        last = end == _EDGES[-1]
        mine = [
            (label, label.confidence)
            for label in labels
            if label.confidence is not None and (start <= label.confidence < end or (last and label.confidence == end))
        ]
        if not mine:
            continue
        inside = [label for label, _ in mine]
        weights = _weights(inside)
        right = [float(label.good is label.passed) for label in inside]
        table = table_of([1.0] * len(inside), right, [label.sample_id for label in inside], weights)
        n = table.tp + table.fn
        low, high = wilson(table.tp, n)
        mean_confidence = float(np.average([confidence for _, confidence in mine], weights=weights))
        yield Bin(
            low_end=start, high_end=end, n=len(inside), said=mean_confidence, right=table.tp / n, low=low, high=high
        )


def _slices(labels: Sequence[LabelledVerdict], tags: Mapping[str, frozenset[str]]) -> Iterator[Slice]:
    """Yield the figures of each target and each tag that some labels have and others have not."""
    for target in sorted({label.target for label in labels}):
        yield from _slice("target", target, [label for label in labels if label.target == target], len(labels))
    for tag in sorted({tag for label in labels for tag in tags.get(label.sample_id, ())}):
        yield from _slice("tag", tag, [label for label in labels if tag in tags.get(label.sample_id, ())], len(labels))


def _slice(kind: Literal["tag", "target"], name: str, labels: Sequence[LabelledVerdict], every: int) -> Iterator[Slice]:
    if MIN_LABELS <= len(labels) < every:
        figures = [figure for figure in figures_of(labels) if figure.name in ("sensitivity", "specificity", "kappa")]
        yield Slice(kind=kind, name=name, labels=len(labels), figures=figures)


def _notes(
    calibration: Calibration, cells: Mapping[tuple[bool, bool], int], rates: Sequence[TargetRate]
) -> Iterator[str]:
    yield from _left_out(calibration)
    if calibration.drawn_labels:
        yield from _one_sided(cells)
    if 0 < len(calibration.drawn_labels) < MIN_LABELS:
        verb = "shows" if len(calibration.drawn_labels) == 1 else "show"
        yield f"{count(len(calibration.drawn_labels), 'label')} {verb} only large differences: see the intervals"
    for rate in rates:
        if rate.rate.why is not None:
            of = f" of {rate.target}" if len(rates) > 1 else ""
            yield f"no corrected rate{of}: {rate.rate.why}"


def _left_out(calibration: Calibration) -> Iterator[str]:
    """Yield what no figure has, and what people saw."""
    if not_random := len(calibration.labels) - len(calibration.drawn_labels):
        yield f"{count(not_random, 'label')} of conversations that were not randomly sampled: not counted"
    if visible := sum(not label.blind for label in calibration.drawn_labels):
        yield f"{count(visible, 'drawn label')} made while the judge's answer was visible, which biases labels"
    if calibration.split:
        left = f"{count(calibration.split, 'conversation')} on which people are evenly split: not counted"
        yield f"{left}, so the figures are about easier conversations: let a third person label these"
    if calibration.unsure:
        yield f"{count(calibration.unsure, 'conversation')} that people could not decide: not counted"


def _one_sided(cells: Mapping[tuple[bool, bool], int]) -> Iterator[str]:
    """Yield what labels or verdicts of one kind leave open."""
    good, bad = cells[True, True] + cells[True, False], cells[False, False] + cells[False, True]
    if not bad:
        yield (
            "people pass every sampled conversation: with only one kind of label, there is no specificity, κ, or AUROC"
        )
    if not good:
        yield (
            "people fail every sampled conversation: with only one kind of label, there is no sensitivity, κ, or AUROC"
        )
    if good and bad and not cells[True, False] + cells[False, False]:
        yield "the judge passes everything: its pass rate is uninformative"
