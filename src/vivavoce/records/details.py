"""What is known of a run besides its scores' means: how long replies took, what was skipped, where scores vary."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Latency(BaseModel):
    """How long a target took for its `replies`, in seconds: the median, and what 95% of them do not exceed."""

    model_config = ConfigDict(frozen=True)

    target: str
    replies: int
    p50: float
    p95: float


class MeasurementSummary(BaseModel):
    """The scores of a grader that are measurements, `n` of them, in the metric's own unit, such as turns or seconds."""

    model_config = ConfigDict(frozen=True)

    n: int
    mean: float
    min: float
    max: float


class SkipSummary(BaseModel):
    """Why one grader did not apply to some conversations with one target: `skipped` of `conversations`.

    `reasons` counts them by what the grader says, the most frequent first; `other` were skipped for further reasons.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    target: str
    skipped: int
    conversations: int
    reasons: dict[str, int]
    other: int = 0


class AgentFailures(BaseModel):
    """How often one grader found a fault of an agent: in `turns` of those in which it acts, `failures` in all.

    `share` is the share of its turns, with the 95% interval from `low` to `high`, clustered by sample; None where
    nothing can be said.
    """

    model_config = ConfigDict(frozen=True)

    grader: str
    failures: int
    turns: int
    share: float
    low: float | None = None
    high: float | None = None


class AgentSummary(BaseModel):
    """What one of several agents of a target did, and what failed of it.

    It acts in `turns` turns of `conversations` conversations, in which it made `calls`, of which `tool_errors` came
    back with an error, and handed over `handoffs` times. In `failed_turns` a grader found a fault of it, or the target
    broke down while it was the last to act; `share` is their share with its 95% interval, clustered by sample.
    `graders` are those that found one, the most frequent first.
    """

    model_config = ConfigDict(frozen=True)

    agent: str
    target: str
    conversations: int
    turns: int
    calls: int
    tool_errors: int
    handoffs: int
    failed_turns: int
    share: float
    low: float | None = None
    high: float | None = None
    graders: list[AgentFailures] = Field(default_factory=list[AgentFailures])


class VarianceSummary(BaseModel):
    """The variance of the scores of one grader against one target, split into where it comes from.

    `samples` is between samples (sampling), `trials` between trials of a sample (the target), `judgements` between
    judgements of one conversation (the judge). One is None where nothing repeats: then it is not measured, and part of
    the level above. `judged` says whether a model judges, `counted` of how many samples this is an estimate.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    target: str
    samples: float | None = None
    trials: float | None = None
    judgements: float | None = None
    counted: int | None = None
    judged: bool = False
