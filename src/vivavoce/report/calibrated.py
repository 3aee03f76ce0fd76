"""`CalibrationReport`: what a calibration shows of a judge, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from vivavoce.records.label import CorrectedRate, PeopleAgreement

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
