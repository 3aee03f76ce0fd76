"""`GradeResult`: a score under the names of letta-evals, as grading functions return it and reward functions see it."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from vivavoce.records.failure import Failure
from vivavoce.records.score import Finding, Raw, Score, State
from vivavoce.records.usage import Usage


class GradeResult(BaseModel):
    """The result of one grader for one conversation.

    `score` is between 0 and 1, None unless `state` is `scored`. `passed` is optional: without it, a score of 1 passes.
    With per-turn grading `metadata` has `per_turn_grades`, whose turns count from 0, `turns_passed` and `turns_total`;
    `turns` has the same as scores.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    state: State = "scored"
    passed: StrictBool | None = None
    rationale: str | None = None
    submission: str = ""
    ground_truth: Any = None
    findings: tuple[Finding, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    turns: tuple[Score, ...] | None = None
    failure: Failure | None = None
    usage: Usage | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.score is None) == (self.state == "scored"):
            raise ValueError(f"a result is scored if and only if it has a score; got {self.state} with {self.score}")
        return self

    @classmethod
    def of(cls, score: Score) -> GradeResult:
        """Return a score under these names."""
        return cls.model_construct(
            score=score.value,
            state=score.state,
            passed=score.passed,
            rationale=score.reason,
            submission=score.submission,
            ground_truth=score.ground_truth,
            findings=score.findings,
            metadata=metadata_of(score),
            turns=score.turns,
            failure=score.failure,
            usage=score.usage,
        )

    def as_score(self) -> Score:
        """Return it as a score."""
        return Score(
            value=self.score,
            state=self.state,
            passed=self.passed,
            reason=self.rationale,
            findings=self.findings,
            extra=self.metadata,
            failure=self.failure,
            usage=self.usage,
        )


def metadata_of(score: Score) -> dict[str, Any]:
    """Return the metadata of a grade as letta-evals has it, with the grades of its turns."""
    metadata = dict(score.extra)
    known: dict[str, Raw | None] = {"score": score.raw, "passed": score.passed, "confidence": score.confidence}
    if score.raw is not None:
        metadata |= {name: value for name, value in known.items() if value is not None}
    if score.turns is not None:
        counted = [turn for turn in score.turns if turn.state != "skipped"]
        metadata |= {
            "turns_passed": sum(turn.passed is True for turn in counted),
            "turns_total": len(counted),
            "per_turn_grades": [turn_grade(turn) for turn in score.turns],
        }
    return metadata


def turn_grade(turn: Score) -> dict[str, Any]:
    """Return the score of a turn, which counts from 0, as an entry of `per_turn_grades`."""
    entry = {
        "turn": turn.turn,
        "score": turn.value,
        "state": turn.state,
        "rationale": turn.reason,
        "submission": turn.submission,
        "ground_truth": turn.ground_truth,
    }
    if turn.extra:
        entry["metadata"] = turn.extra
    if turn.failure is not None:
        entry["failure"] = turn.failure.model_dump(mode="json", exclude_none=True)
    return entry
