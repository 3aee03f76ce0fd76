"""What is known of a run besides its scores' means: how long replies took, and where scores vary."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Latency(BaseModel):
    """How long a target took for its `replies`, in seconds: the median, and what 95% of them do not exceed."""

    model_config = ConfigDict(frozen=True)

    target: str
    replies: int
    p50: float
    p95: float


class VarianceSummary(BaseModel):
    """The variance of the scores of one grader against one target, split into where it comes from.

    `samples` is between samples (sampling), `trials` between trials of a sample (the target), `judgements` between
    judgements of one conversation (the judge). One is None where nothing repeats: then it is not measured, and part of
    the level above. `judged` says whether a model judges.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    target: str
    samples: float | None = None
    trials: float | None = None
    judgements: float | None = None
    judged: bool = False
