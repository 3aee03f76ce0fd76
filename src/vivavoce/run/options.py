"""`RunOptions`: what a caller may set for one run."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from vivavoce.grading.scores import ErrorLimit


class RunOptions(BaseModel):
    """Options of one run, which override the suite; None leaves the choice to the suite.

    `trials`, `max_samples`, `tags`, `samples`, `sample` and `max_concurrent` choose which part of a suite is
    run. The other limits are per run and may differ when it is resumed: calls, cost and errors.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    trials: int | None = Field(default=None, ge=1)
    max_samples: int | None = Field(default=None, ge=1)
    tags: list[str] | None = None
    samples: list[str] | None = None
    sample: int | None = Field(default=None, ge=1)
    """How many of the recorded conversations are drawn at random and judged, in place of all."""
    sample_by: list[str] | None = None
    """What conversations are distinguished by, so that each kind is drawn in proportion."""
    weight_by: str | None = None
    """What the probability of a conversation is in proportion to; without it all are as likely."""
    max_concurrent: int | None = Field(default=None, ge=1)
    max_calls: int | None = Field(default=None, ge=0)
    cache: bool = True
    """Whether answers of judges are cached."""
    replay: bool = False
    """Whether only cached answers of judges are used, and no judge is called."""
    batch: bool = False
    """Whether judges are asked in batches, whose answers come within a day, and never directly."""
    max_cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Maximum cost of model calls in US dollars; the cost of the target itself is not known."""
    max_errors: str | None = None
    """Maximum number of conversations with an error, as `3` or `5%`; the gate then uses the scores that exist."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.batch and (self.replay or not self.cache):
            raise ValueError("a batch asks for missing answers and caches them: leave out replay and cache=False")
        return self

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        if self.sample is None and (self.sample_by or self.weight_by is not None):
            raise ValueError("sampling options need sample, the number of conversations to draw")
        if self.sample is not None and (self.max_samples is not None or self.samples is not None):
            raise ValueError("sample draws from all conversations; leave out max_samples and samples")
        return self

    @field_validator("max_errors")
    @classmethod
    def _limit(cls, text: str | None) -> str | None:
        return None if text is None else ErrorLimit(text).text
