"""What people say: labels and comments on conversations, titles and tags of runs, and calibrations of judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from vivavoce.errors import UsageError
from vivavoce.records.run import AttemptKey
from vivavoce.safe_text import safe

LONGEST_COMMENT = 4000
"""Characters of a comment."""

CommentText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_COMMENT)]
"""The text of a comment: plain text with line breaks, in which `#t3` refers to turn 3."""


class Comment(BaseModel):
    """A comment of a person; `turn` is None for the whole conversation, times are in seconds since the epoch.

    `resolved_by` and `resolved_at` are None while it is open.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    sample_id: str
    target: str
    trial: int
    turn: int | None = None
    author: str
    text: str
    created_at: float
    resolved_by: str | None = None
    resolved_at: float | None = None

    @property
    def key(self) -> AttemptKey:
        """Which conversation of its run it is about."""
        return AttemptKey(self.sample_id, self.target, self.trial)


LONGEST_TITLE = 200
LONGEST_NOTES = 10_000
LONGEST_TAG = 60
MOST_TAGS = 20


def _one_line(text: str) -> str:
    return " ".join(safe(text).split())


def _tags(tags: list[str]) -> list[str]:
    return [tag for tag in dict.fromkeys(tags) if tag]


Tag = Annotated[str, Field(max_length=LONGEST_TAG), AfterValidator(_one_line)]


class Remarks(BaseModel):
    """Remarks on a run, or a change of them: what is not set stays as it is, an empty text removes what was there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: Annotated[str, Field(max_length=LONGEST_TITLE), AfterValidator(_one_line)] | None = None
    notes: Annotated[str, Field(max_length=LONGEST_NOTES), AfterValidator(str.strip)] | None = None
    tags: Annotated[list[Tag], Field(max_length=MOST_TAGS), AfterValidator(_tags)] | None = None


def remarks_of(fields: Mapping[str, object]) -> Remarks:
    """Return what somebody typed as remarks.

    Raises:
        UsageError: a text is too long, or there are too many tags.
    """
    try:
        return Remarks.model_validate(fields)
    except ValidationError as error:
        raise UsageError(
            *(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors())
        ) from error


HumanVerdict = Literal["pass", "fail", "unsure"]
"""It passes, it does not, or one cannot tell; the last is counted apart and agrees with nobody."""

LONGEST_NOTE = 4000
"""Characters of a note."""


class Label(BaseModel):
    """One person's answer to the question of one grader; it never changes a score.

    `turn` is None for the whole conversation, `grader` empty where the answer is to no grader's question. `blind` says
    that the grader's own answer was hidden. `drawn` is how likely the conversation was drawn to be labelled, 1 where
    all were as likely; None where it was chosen in another way. `created_at` is in seconds since the epoch.
    """

    model_config = ConfigDict(frozen=True)

    sample_id: str
    target: str
    trial: int
    turn: int | None = None
    grader: str = ""
    author: str
    verdict: HumanVerdict
    note: str | None = Field(default=None, max_length=LONGEST_NOTE)
    blind: bool = False
    created_at: float
    drawn: float | None = Field(default=None, gt=0)

    @property
    def key(self) -> AttemptKey:
        """Which conversation of its run it is about."""
        return AttemptKey(self.sample_id, self.target, self.trial)


class Decision(Label):
    """What `author` decided where labels of people differ: the answer that a judge is compared with there.

    `blind` says that it was hidden who had said what. Labels stay next to it.
    """

    @field_validator("verdict")
    @classmethod
    def _decides(cls, verdict: HumanVerdict) -> HumanVerdict:
        if verdict == "unsure":
            raise ValueError("expected pass or fail")
        return verdict


class DifferingLabels(BaseModel):
    """A conversation or turn where people say both pass and fail of one grader's question.

    `labels` are all of them there, oldest first; `decision` is None while nobody has decided.
    """

    model_config = ConfigDict(frozen=True)

    sample_id: str
    target: str
    trial: int
    turn: int | None = None
    grader: str = ""
    labels: list[Label]
    decision: Decision | None = None

    @property
    def key(self) -> AttemptKey:
        """Which conversation of its run it is about."""
        return AttemptKey(self.sample_id, self.target, self.trial)


class Disagreement(BaseModel):
    """A label that says the opposite of the judge; `lenient` where the judge let pass what the person did not."""

    model_config = ConfigDict(frozen=True)

    label: Label
    score: float
    lenient: bool


class Disputed(BaseModel):
    """A conversation or turn on which people disagree, and what each of them says."""

    model_config = ConfigDict(frozen=True)

    sample_id: str
    target: str
    trial: int
    turn: int | None = None
    verdicts: dict[str, HumanVerdict]


class PeopleAgreement(BaseModel):
    """How far people agree with each other on the `n` places that two or more of them labelled pass or fail.

    `alpha` is Krippendorff's, with its 95 % interval from `low` to `high`; `kappa` is Cohen's for two people, and
    Fleiss' for more where all of them labelled every place. Each is None where it cannot be computed. `same` counts
    places where all agree; `disputed` has the first hundred of the others.
    """

    model_config = ConfigDict(frozen=True)

    people: list[str]
    n: int
    same: int
    alpha: float | None = None
    low: float | None = None
    high: float | None = None
    kappa: float | None = None
    disputed: list[Disputed]


class LabelAgreement(BaseModel):
    """How far a judge agrees with people: `n` pairs of verdicts, by what both said, and Cohen's kappa.

    `low` and `high` are the 95 % interval of kappa. Labels that cannot tell, and those where the judge gave no score,
    are counted apart and enter nothing else. Where labels differ and somebody decided, the decision is compared in
    their place; `decided` counts these. `disagreements` are the first hundred. `people` is how far people agree
    with each other, None where no place has labels of two.
    """

    model_config = ConfigDict(frozen=True)

    n: int
    both_pass: int
    both_fail: int
    too_lenient: int
    too_strict: int
    unsure: int
    unscored: int
    agreement: float | None = None
    kappa: float | None = None
    low: float | None = None
    high: float | None = None
    disagreements: list[Disagreement]
    people: PeopleAgreement | None = None
    decided: int = 0


LabelSource = Literal["people", "file", "dataset"]
"""Where labels are from: the pages and the API, a file, or the rows of the dataset."""

CorrectionMethod = Literal["prediction_powered", "rogan_gladen"]
"""Labels drawn at random from the same conversations, or how often the judge is right about labels of other ones."""


class LabelledVerdict(BaseModel):
    """What people say of a conversation, `good` or not, next to the judge's verdict, score and confidence.

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
    """The labels of a run next to the verdicts of one judge.

    `fingerprint` is that of all that decides the judge's scores: labels correct the rates of scores that have the same
    one. `people` is how far those who gave them agree, where two or more labelled one conversation. What is not in
    `labels` is counted: `unsure` conversations that nobody could tell, `split` ones where as
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
    def drawn_labels(self) -> list[LabelledVerdict]:
        """The labels from which rates can be estimated."""
        return [label for label in self.labels if label.drawn is not None]


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
