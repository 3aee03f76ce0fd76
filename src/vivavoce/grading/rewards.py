"""Rewards: the one number of a sample, from one grader, from weights, or from a user's function.

A user's function is `(ctx)`, sync or async; it returns a number between 0 and 1, a `RewardOutput`, or a dict with
`score` and perhaps `metadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from vivavoce.comparing.thresholds import mean, reaches
from vivavoce.grading.extractors import letta_messages, letta_state
from vivavoce.grading.functions import GradeResult, call_user, reads_letta
from vivavoce.grading.grader import as_grade
from vivavoce.messages import AnyMessage
from vivavoce.plugins import Registry
from vivavoce.records.run import Attempt
from vivavoce.records.score import PASSING, Score, State, Usage, failed, failure_of, skipped
from vivavoce.samples.sample import Sample
from vivavoce.user_code import name_of, skip_reason

REWARD = "reward"
"""The name of the reward among the scores of a sample."""


class RewardOutput(BaseModel):
    """What a reward function returns: one number for a sample, 0 to 1, with its reason."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    state: State = "scored"
    passed: StrictBool | None = None
    rationale: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])

    def as_score(self) -> Score:
        """Return it as a score."""
        return Score(
            name=REWARD,
            value=self.score,
            state=self.state,
            passed=self.passed,
            reason=self.rationale,
            extra=self.metadata,
        )


@dataclass(frozen=True, slots=True)
class RewardContext:
    """The input of a reward function."""

    sample: Sample
    grades: Mapping[str, GradeResult]
    trajectory: list[list[AnyMessage]]
    model_handle: str
    agent_id: str | None = None
    agent_state: Mapping[str, Any] | None = None
    usage: Usage = field(default_factory=Usage)

    @property
    def submissions(self) -> dict[str, str]:
        """The submission of each grader."""
        return {name: grade.submission for name, grade in self.grades.items()}


class Composer(Protocol):
    """Something that turns the scores of a sample into its reward."""

    async def compose(self, scores: Mapping[str, Score], attempt: Attempt, sample: Sample) -> Score:
        """Return the reward; a failure is returned in state `error`."""
        ...


reward_composers: Registry[Callable[..., Any]] = Registry("reward composer", {})


def reward_composer(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function as a reward composer under its own name."""
    return reward_composers.add(name_of(function), function)


@dataclass(frozen=True, slots=True)
class WeightedReward:
    """The weighted mean of some graders' scores; with one grader, its score.

    With a `threshold`, a reward from there on passes; without it, the reward of one grader passes if its score passes.
    """

    weights: Mapping[str, float]
    threshold: float | None = None

    async def compose(self, scores: Mapping[str, Score], attempt: Attempt, sample: Sample) -> Score:
        """Return the mean; a grader without a score leaves the reward without one, in the same state."""
        del attempt, sample
        chosen = {name: scores[name] for name in self.weights}
        for state in ("error", "skipped"):
            without = [name for name, score in chosen.items() if score.state == state]
            if without:
                first = chosen[without[0]]
                return Score(name=REWARD, state=state, reason=f"{without[0]}: {first.reason}", failure=first.failure)
        value = mean([score.value or 0.0 for score in chosen.values()], [*self.weights.values()])
        return Score(name=REWARD, value=float(value), passed=self._passes(value, chosen))

    def _passes(self, value: Fraction, chosen: Mapping[str, Score]) -> bool:
        if self.threshold is not None:
            return reaches(value, self.threshold)
        return bool(next(iter(chosen.values())).passed) if len(chosen) == 1 else reaches(value, PASSING)


@dataclass(frozen=True, slots=True)
class CustomReward:
    """The reward from a user's function, which is called only if no grader has an error."""

    function: Callable[..., Any]
    threshold: float | None = None

    async def compose(self, scores: Mapping[str, Score], attempt: Attempt, sample: Sample) -> Score:
        """Call the function."""
        broken = [(name, score) for name, score in scores.items() if score.state == "error"]
        if broken:
            name, first = broken[0]
            return Score(name=REWARD, state="error", reason=f"{name}: {first.reason}", failure=first.failure)
        try:
            context = _context(sample, scores, attempt, letta=reads_letta(self.function))
            returned = await call_user(self.function, context)
            output = returned if isinstance(returned, RewardOutput) else as_grade(returned, name_of(self.function))
            reward = output.as_score()
        except Exception as error:
            if reason := skip_reason(error):
                return skipped(reason, name=REWARD)
            return failed(failure_of(error, "grader"), name=REWARD)
        update: dict[str, Any] = {"name": REWARD}
        if self.threshold is not None and reward.value is not None:
            update["passed"] = reaches(reward.value, self.threshold)
        return reward.model_copy(update=update)


def _context(sample: Sample, scores: Mapping[str, Score], attempt: Attempt, *, letta: bool) -> RewardContext:
    trajectory = attempt.trajectory
    turns = [list(turn.messages) for turn in trajectory.turns]
    return RewardContext(
        sample=sample,
        grades={name: GradeResult.of(score) for name, score in scores.items()},
        trajectory=letta_messages(turns) if letta else turns,
        model_handle=attempt.key.target,
        agent_id=trajectory.session_id,
        agent_state=letta_state(trajectory.state) if letta else trajectory.state,
        usage=trajectory.usage,
    )
