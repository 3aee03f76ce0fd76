"""Grades: one number about a conversation or one of its turns, with its reason and state."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.records.failure import Failure
from vivavoce.records.usage import Usage

State = Literal["scored", "error", "skipped"]
"""An error is never 0, never a pass, never left out of the counts."""


TESTER_ERROR = "tester_error"
"""The kind of a failure of a test that its tester spoilt."""

PASSED = 1.0
"""A turn, or a sample, passes with this score."""


class TurnGrade(BaseModel):
    """The grade of one turn, counted from 0."""

    model_config = ConfigDict(frozen=True)

    turn: int
    score: float | None = Field(default=None, ge=0, le=1)
    state: State = "scored"
    rationale: str | None = None
    submission: str = ""
    ground_truth: Any = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    failure: Failure | None = None

    def model_post_init(self, context: Any, /) -> None:
        """Refuse a state that contradicts the score."""
        check_state(self.state, self.score)

    def spelled(self) -> dict[str, Any]:
        """Return the grade as plain data, as `GradeResult.metadata` repeats it."""
        entry = {
            "turn": self.turn,
            "score": self.score,
            "state": self.state,
            "rationale": self.rationale,
            "submission": self.submission,
            "ground_truth": self.ground_truth,
        }
        if self.metadata:
            entry["metadata"] = self.metadata
        if self.failure is not None:
            entry["failure"] = self.failure.model_dump(mode="json", exclude_none=True)
        return entry


class GradeResult(BaseModel):
    """What one grader says about one conversation.

    `score` is between 0 and 1, None unless `state` is `scored`. With per-turn grading, `per_turn_grades` holds each
    turn, and `metadata` repeats it together with `turns_passed` and `turns_total`.
    """

    model_config = ConfigDict(frozen=True)

    score: float | None = Field(default=None, ge=0, le=1)
    state: State = "scored"
    rationale: str | None = None
    submission: str = ""
    ground_truth: Any = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    per_turn_grades: list[TurnGrade] | None = None
    failure: Failure | None = None
    usage: Usage | None = None

    def model_post_init(self, context: Any, /) -> None:
        """Refuse a state that contradicts the score."""
        check_state(self.state, self.score)


def check_state(state: State, score: float | None) -> None:
    """Raise ValueError for a state that contradicts the score."""
    if (score is None) == (state == "scored"):
        raise ValueError(f"something is scored if and only if it has a score; got {state} with {score}")


def failed(failure: Failure, **more: Any) -> GradeResult:
    """Return the grade of something that could not be graded."""
    return GradeResult(state="error", rationale=failure.message, failure=failure, **more)


def skipped(reason: str, **more: Any) -> GradeResult:
    """Return the grade of something that does not apply."""
    return GradeResult(state="skipped", rationale=reason, **more)
