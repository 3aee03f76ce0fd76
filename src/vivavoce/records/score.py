"""`Score`: what a grader or a metric says about a conversation or one of its turns, decided once, when it is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from vivavoce.comparing.thresholds import mean, reaches
from vivavoce.errors import Blame
from vivavoce.plugins import lazy
from vivavoce.records.counting import turn_label
from vivavoce.records.failure import Failure
from vivavoce.records.usage import Usage

State = Literal["scored", "error", "skipped"]
"""An error is never 0, never a pass, never left out of the counts."""

Raw = bool | float | str
"""A score in the metric's own terms: a yes or no, a number, a label."""

BREACH = "breach"
"""The kind of a finding of the goal's judge: a false statement, or a rule of the policy that was broken."""

TESTER_ERROR = "tester_error"
"""The kind of a failure of a test that its tester caused."""

FAILED_STEP = "failed_step"
"""The kind of a finding about a step with which a conversation failed."""

PASSING = 1.0
"""The value from which a score passes unless its grader has a threshold."""

UNSUPPORTED = "unsupported"
"""The key in `extra` of a score for the claims of its judge whose evidence is missing or not in the conversation."""


class Evidence(BaseModel):
    """Something that a score rests on: the words of a message, or a tool call by its reference, such as `c2`.

    `turn` is an index from 0; None stands for what precedes the first user message, and for evidence that was not
    found. Evidence is `verified` when it occurs in the conversation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    kind: Literal["quote", "call"] = "quote"
    turn: int | None = None
    verified: bool = False


FindingState = Literal["pass", "partial", "fail", "warn", "skip"]
"""Whether a finding speaks for the conversation, partly, against it, against it as a warning, or does not apply."""


WARN: Literal["warn"] = "warn"
"""The state of a finding that speaks against the conversation and decides nothing."""


class Finding(BaseModel):
    """One thing that a metric saw: enough for a reader who does not know the metric.

    `kind` is one word, such as `criterion`, `violation` or `claim`; `what` the sentence it is about; `verdict` the
    metric's word for it, such as `met` or `major`, and `state` what that amounts to. `turn` is an index from 0, None
    where it is about no single turn. `blame` says whose fault it is, where the metric says so. `data` is what only this
    metric knows of it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    what: str
    verdict: str
    state: FindingState
    turn: int | None = None
    evidence: tuple[Evidence, ...] = ()
    blame: Blame | None = None
    data: dict[str, Any] = Field(default_factory=dict)

    @property
    def fact(self) -> str:
        """What was found where an assertion was missed, else the sentence that it is about."""
        found = self.data.get("found")
        return found if self.state in ("fail", WARN) and isinstance(found, str) and found else self.what


class Score(BaseModel):
    """What one grader or metric says about a conversation, or with a `turn`, an index from 0, about that turn.

    `value` is from 0, worst, to 1, best; None where there is no score, and for a measurement (see `measured`). `raw`
    is the score in the metric's own terms. `passed` is decided when the score is made, by the metric's threshold or
    that of the grader; without either a value of 1 passes. It is None without a score and for a measurement.

    `findings` are what the score rests on, `other_evidence` what it rests on besides. `turns` are the scores of single
    turns, None where they were not scored apart. `extra` is what only this grader knows, as plain data. `failure` says
    what went wrong and whose fault it was. `fingerprint` is a hash of all that decides the score, and `settings` what
    the judge was asked with.

    Raises:
        ValueError: state, value and `passed` contradict each other.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    turn: int | None = None
    state: State = "scored"
    value: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    raw: Raw | None = None
    passed: bool | None = None
    reason: str | None = None
    confidence: float | None = None
    findings: tuple[Finding, ...] = ()
    other_evidence: tuple[Evidence, ...] = ()
    turns: tuple[Score, ...] | None = None
    submission: str = ""
    ground_truth: Any = None
    extra: dict[str, Any] = Field(default_factory=dict)
    failure: Failure | None = None
    usage: Usage | None = None
    fingerprint: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)

    def _repr_html_(self) -> str:
        """Return the score for a notebook, in which every text is escaped."""
        return cast("str", lazy("vivavoce.report.html.cards:score_html")(self))

    @property
    def measured(self) -> float | None:
        """The number of a measurement: a score that has no value, because its metric has no best score.

        It is in the metric's own unit, such as turns or seconds, and nothing says whether it passes. None for any
        other score.
        """
        return measured_of(self.state, self.value, self.raw)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """All that the score rests on, each piece once: the evidence of its findings, then the other."""
        found = (one for finding in self.findings for one in finding.evidence)
        return tuple(dict.fromkeys([*found, *self.other_evidence]))

    @property
    def has_unverified_evidence(self) -> bool:
        """Whether the judge claims something whose evidence is missing or not in the conversation."""
        return self.state == "scored" and bool(self.extra.get(UNSUPPORTED))

    @model_validator(mode="before")
    @classmethod
    def _decide(cls, data: Any) -> Any:
        return with_passed(cast("dict[str, Any]", data)) if isinstance(data, dict) else data

    @field_validator("raw", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _consistent(self) -> Score:
        if isinstance(self.raw, float) and not math.isfinite(self.raw):
            raise ValueError(f"a score is a finite number, got {self.raw}")
        scored = self.value is not None or self.raw is not None
        if (self.state == "scored") != scored:
            rule = "a score has state 'scored' if and only if it has a value"
            raise ValueError(f"{rule}; got {self.state} with {self.value if self.value is not None else self.raw}")
        if self.passed is not None and not scored:
            raise ValueError(f"state '{self.state}' neither passes nor fails; got passed={self.passed}")
        return self


def measured_of(state: State, value: float | None, raw: Raw | None) -> float | None:
    """Return the number of a score that is a measurement, None for any other score."""
    if state != "scored" or value is not None or isinstance(raw, bool | str):
        return None
    return raw


def with_passed(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a score with whether it passes, where nobody has said so."""
    value, state = fields.get("value"), fields.get("state", "scored")
    if fields.get("passed") is None and isinstance(value, int | float) and state == "scored":
        return {**fields, "passed": reaches(value, PASSING)}
    return fields


def failed(failure: Failure, **more: Any) -> Score:
    """Return the score of something that could not be graded."""
    return Score(state="error", reason=failure.message, failure=failure, **more)


def skipped(reason: str, **more: Any) -> Score:
    """Return the score of something that a grader does not apply to."""
    return Score(state="skipped", reason=reason, **more)


def mean_of_turns(turns: Sequence[Score], threshold: float = PASSING, **more: Any) -> Score:
    """Return the score of a conversation from those of its turns: the mean over the turns that count.

    A turn in state `error` makes the whole an error, for a mean without it would be a guess; skipped turns do not.
    Turns that were measured make the whole a measurement.
    """
    counted = [turn for turn in turns if turn.state != "skipped"]
    measured = [turn.measured for turn in counted if turn.measured is not None]
    values = [turn.value for turn in counted if turn.value is not None]
    broken = [turn for turn in counted if turn.state == "error"]
    if broken:
        first = broken[0]
        place = f"{turn_label(first.turn)}: {first.reason}"
        reason = f"{len(broken)} of {len(counted)} turns could not be graded; {place}"
        return Score(state="error", reason=reason, failure=first.failure, turns=tuple(turns), **more)
    if measured and not values:
        reason = f"the mean of {len(measured)} measured turn{'s' * (len(measured) != 1)}"
        return Score(raw=float(mean(measured)), reason=reason, turns=tuple(turns), **more)
    if not values:
        return skipped("no turn has a ground truth", turns=tuple(turns), **more)
    whole = mean(values)
    passed = sum(turn.passed is True for turn in counted)
    reason = f"{passed}/{len(counted)} turns passed"
    claims = dict.fromkeys(claim for turn in counted for claim in turn.extra.get(UNSUPPORTED, ()))
    more = {**more, "extra": {UNSUPPORTED: list(claims)}} if claims else more
    return Score(value=float(whole), passed=reaches(whole, threshold), reason=reason, turns=tuple(turns), **more)
