"""`Reason`: why a run passes, fails or is undecided, as data; reports put it into words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.comparing.thresholds import Operator

Verdict = Literal["pass", "fail", "inconclusive"]
Severity = Literal["fail", "warn"]
"""What a missed requirement does: it fails the run, or is only a warning."""
OfScores = Literal["avg_score", "accuracy", "min", "max", "median", "p50", "p95", "p99"]
Aggregation = OfScores | Literal["pass^k", "pass@k"]
"""What is compared: an aggregate of all scores, or of what the trials of each sample come to."""
Bound = Literal["mean", "lower"]
"""A mean itself, or the lower end of its 95% interval."""
RateBound = Bound | Literal["corrected", "corrected_lower"]
"""The same, and both of a pass rate without the errors of its judge."""

Code = Literal[
    "threshold",
    "no_interval",
    "undecided",
    "calibration",
    "samples",
    "few_trials",
    "min_scored",
    "nothing_scored",
    "errors",
    "spoiled",
    "unverified",
    "breaches",
    "requirement",
    "warned",
    "sentence",
]
"""What a reason is about.

`threshold`: an aggregate and what it must be; inconclusive where the `errors` could change the result. `no_interval`:
a lower bound of a single sample. `undecided`: the trials did not decide a condition, for the interval from `low` to
`high` holds its value. `calibration`: what the judge lacks before it may decide, or why its rate cannot be
corrected, is its text. `samples`: how often each sample must pass. `few_trials`: samples with fewer trials
than the gate needs. `min_scored`: too few scores. `nothing_scored`: no score at all. `errors`: more
conversations with errors than the run may have. `spoiled`: the tester spoiled more conversations than the gate allows
to leave out. `unverified`: more scores rest on evidence that is missing or not in the conversation than the gate
allows. `breaches`: the judge of a goal found more false statements or broken rules besides it than the gate allows, or
missing scores leave open whether it did. `requirement`: assertions or a rule that must hold in every conversation;
inconclusive where an error could change that, or where it applied to no conversation. `warned`: single assertions that
only warn. `sentence`: one of an older store, of which only the words are known.
"""


class Condition(BaseModel):
    """What an aggregate of scores must be; with `lower` the lower end of its 95% interval; `k` is that of pass^k.

    With `corrected` it is the pass rate without the errors of the judge. A `pass_threshold` or another `pass_op` than
    `gte` of the gate says which scores `accuracy` counts, whatever the grader lets pass.
    """

    model_config = ConfigDict(frozen=True)

    aggregation: Aggregation
    op: Operator
    value: float
    lower: bool = False
    corrected: bool = False
    k: int | None = None
    pass_threshold: float | None = None
    pass_op: Operator = "gte"


class SampleTrials(BaseModel):
    """How often a sample passed, of how many scores; `errors` of its trials have none."""

    model_config = ConfigDict(frozen=True)

    sample_id: str
    passed: int
    scored: int
    errors: int = 0


class Reason(BaseModel):
    """One thing that the verdict on a run rests on.

    `graders` has the weight of each grader that it is about; empty for the whole run. `target` is named where a run
    has several. `found` is the aggregate. `errors` and `scored` count what has no score because of an error and
    what has one; for `errors`, of the code, they count conversations, and `limit` is how many may have an error. Of the
    `errors`, `tester_errors` were made by the tester that led the conversations. With `errors_fail` the gate counts
    each of the `errors` as a score of 0 that does not pass. For `spoiled`, `errors` of `scored` conversations were
    spoiled, and `limit` is how many may be. For `unverified`, `errors` of `scored` scores are, and `limit` is how many
    may be. For `breaches`, `missed` of the kind in `text` were found, in the `samples`, and `limit` is how many may be.
    `text` is a `sentence`, or of `calibration`. For `samples` and `few_trials`, `trials` is how many of them must
    pass or are needed, `scored` counts samples, `samples` are the first of those that missed it, and
    `samples_in_all` is how many did. For `requirement` and `warned` the last two are the same, `scored` counts
    conversations, and `missed` is how many of them missed it.
    """

    model_config = ConfigDict(frozen=True)

    verdict: Verdict
    code: Code
    graders: dict[str, float] = Field(default_factory=dict[str, float])
    target: str | None = None
    condition: Condition | None = None
    found: float | None = None
    low: float | None = None
    high: float | None = None
    errors: int = 0
    tester_errors: int = 0
    errors_fail: bool = False
    scored: int = 0
    min_scored: float = 0.0
    limit: str | None = None
    text: str | None = None
    trials: int | None = None
    samples: list[SampleTrials] = Field(default_factory=list[SampleTrials])
    samples_in_all: int = 0
    missed: int = 0


def failing_grader(reasons: Iterable[Mapping[str, Any]]) -> tuple[str | None, str | None]:
    """Return the grader, and the target where there are several, of the first reason for a failure that is about one.

    The reasons are plain data, as they are stored; both are None where nothing failed because of a single grader.
    """
    for reason in reasons:
        graders: dict[str, float] = reason.get("graders") or {}
        if reason.get("verdict") == "fail" and len(graders) == 1:
            return next(iter(graders)), reason.get("target")
    return None, None
