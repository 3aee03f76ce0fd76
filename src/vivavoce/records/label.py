"""`Label`: what a person says of a conversation or a turn beside what a grader says, and how far the two agree."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from vivavoce.records.run import AttemptKey

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

    `blind` says that it was hidden who had said what. Labels stay beside it.
    """

    @field_validator("verdict")
    @classmethod
    def _decides(cls, verdict: HumanVerdict) -> HumanVerdict:
        if verdict == "unsure":
            raise ValueError("a decision is pass or fail")
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
