"""`Calibration`: what people say of conversations that a judge scored, kept to correct the rates of that judge."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.records.label import PeopleAgreement
from vivavoce.records.run import AttemptKey

LabelSource = Literal["people", "file", "dataset"]
"""Where labels are from: the pages and the API, a file, or the rows of the dataset."""

CorrectionMethod = Literal["prediction_powered", "rogan_gladen"]
"""Labels drawn at random from the same conversations, or how often the judge is right about labels of other ones."""


class LabelledVerdict(BaseModel):
    """What people say of a conversation, `good` or not, beside the judge's verdict, score and confidence.

    `drawn` is how likely the conversation was drawn to be labelled, 1 where all were as likely; None where it was
    chosen in another way, such as by doubt, so that no rate can be estimated from it. `blind` says that the judge's
    answer was hidden from all who labelled it.
    """

    model_config = ConfigDict(frozen=True)

    sample_id: str
    target: str
    trial: int
    good: bool
    passed: bool
    score: float
    confidence: float | None = None
    drawn: float | None = None
    blind: bool = False

    @property
    def key(self) -> AttemptKey:
        """Which conversation of the run it is about."""
        return AttemptKey(self.sample_id, self.target, self.trial)


class Calibration(BaseModel):
    """The labels of a run beside the verdicts of one judge.

    `fingerprint` is that of all that decides the judge's scores: labels correct the rates of scores that have the same
    one. `people` is how far those who gave them agree, where two or more labelled one conversation. What is not in
    `labels` is counted: `unsure` conversations that nobody could tell, `split` ones of which as
    many people say pass as fail and that nobody decided, and `unscored` ones without a score.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    run_id: str
    grading_id: str
    grader: str
    fingerprint: str
    source: LabelSource
    author: str
    created_at: float
    labels: list[LabelledVerdict]
    unsure: int = 0
    split: int = 0
    unscored: int = 0
    people: PeopleAgreement | None = None

    @property
    def drawn(self) -> list[LabelledVerdict]:
        """The labels from which rates can be estimated."""
        return [one for one in self.labels if one.drawn is not None]


class CorrectedRate(BaseModel):
    """The share of conversations that pass, without the errors of the judge; `raw` is the judge's own share.

    `low` and `high` are its 95% interval. All three are None where no rate can be given, and `why` says why in one
    sentence. `labels` counts the labels behind it, which are those of the run `labels_of`.
    """

    model_config = ConfigDict(frozen=True)

    raw: float | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: CorrectionMethod | None = None
    labels: int = 0
    labels_of: str | None = None
    calibration: str | None = None
    why: str | None = None


class CalibrationNeed(BaseModel):
    """What a judge must have before it decides a gate: drawn labels, and the least agreement with them (kappa).

    The lower end of the 95% interval of kappa has to reach it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    labels: int = Field(ge=1)
    kappa: float = Field(default=0.0, ge=-1, le=1)
