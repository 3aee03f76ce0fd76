"""Rewards: the one number of a sample, from one grader, from weights, or from a user's function.

A user's function is `(ctx)`, sync or async; it returns a number between 0 and 1, a `RewardOutput`, or a dict with
`score` and perhaps `metadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from vivavoce.grading.calling import call_user
from vivavoce.grading.grader import as_grade
from vivavoce.messages import AnyMessage
from vivavoce.plugins import Registry
from vivavoce.records.failure import failure_of
from vivavoce.records.run import Reward
from vivavoce.records.score import GradeResult
from vivavoce.records.trajectory import Trajectory
from vivavoce.records.usage import Usage
from vivavoce.samples.sample import Sample

RewardOutput = Reward


@dataclass(frozen=True, slots=True)
class RewardContext:
    """What a reward function may look at."""

    sample: Sample
    grades: Mapping[str, GradeResult]
    trajectory: list[list[AnyMessage]]
    model_handle: str
    agent_id: str | None = None
    agent_state: Mapping[str, Any] | None = None
    usage: Usage = field(default_factory=Usage)

    @property
    def submissions(self) -> dict[str, str]:
        """What each grader looked at."""
        return {name: grade.submission for name, grade in self.grades.items()}


class Composer(Protocol):
    """Something that turns the grades of a sample into its reward."""

    async def compose(self, context: RewardContext) -> Reward:
        """Return the reward; what goes wrong comes back in state `error`."""
        ...


reward_composers: Registry[Callable[..., Any]] = Registry("reward composer", {})


def reward_composer(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function as a reward composer under its own name."""
    return reward_composers.add(function.__name__, function)


@dataclass(frozen=True, slots=True)
class WeightedReward:
    """The weighted mean of some graders' scores; with one grader, its score."""

    weights: Mapping[str, float]

    async def compose(self, context: RewardContext) -> Reward:
        """Return the mean; a grader without a score leaves the reward without one, in the same state."""
        chosen = {name: context.grades[name] for name in self.weights}
        for state in ("error", "skipped"):
            without = [name for name, grade in chosen.items() if grade.state == state]
            if without:
                first = chosen[without[0]]
                reason = f"{without[0]}: {first.rationale}"
                return Reward(state=state, rationale=reason, failure=first.failure)
        total = sum(self.weights.values())
        return Reward(score=sum(w * (chosen[name].score or 0.0) for name, w in self.weights.items()) / total)


@dataclass(frozen=True, slots=True)
class CustomReward:
    """The reward a user's function gives; it is asked only when every grader has spoken without error."""

    function: Callable[..., Any]

    async def compose(self, context: RewardContext) -> Reward:
        """Call the function."""
        broken = [(name, grade) for name, grade in context.grades.items() if grade.state == "error"]
        if broken:
            name, grade = broken[0]
            return Reward(state="error", rationale=f"{name}: {grade.rationale}", failure=grade.failure)
        try:
            value = await call_user(self.function, context)
            if isinstance(value, Reward):
                return value
            grade = as_grade(value, self.function.__name__)
        except Exception as error:
            failure = failure_of(error, "grader")
            return Reward(state="error", rationale=failure.message, failure=failure)
        return Reward(score=grade.score, state=grade.state, rationale=grade.rationale, metadata=grade.metadata)


def context_of(sample: Sample, grades: Mapping[str, GradeResult], trajectory: Trajectory, target: str) -> RewardContext:
    """Return what a reward function may look at, for one attempt."""
    return RewardContext(
        sample=sample,
        grades=grades,
        trajectory=[list(turn.messages) for turn in trajectory.turns],
        model_handle=target,
        agent_id=trajectory.session_id,
        agent_state=trajectory.state,
        usage=trajectory.usage,
    )
