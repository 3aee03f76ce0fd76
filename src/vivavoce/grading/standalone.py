"""A grader outside of a run: what it says of a conversation that a metric is given."""

from __future__ import annotations

from typing import Any

from vivavoce.conversation import split_turns
from vivavoce.grading.grader import Grader
from vivavoce.metrics.result import About, MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.samples.sample import Sample


async def graded(grader: Grader, given: MultiTurnEvaluationInput, name: str) -> MetricResult:
    """Return what a grader says of a conversation, as the result of a metric of that name.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached.
    """
    score = await grader.grade(_sample(given), _trajectory(given))
    fields: dict[str, Any] = {field: getattr(score, field) for field in Score.model_fields}
    fields |= {"name": name, "raw": score.value if score.raw is None else score.raw}
    return MetricResult.model_construct(about=About("numeric", len(given.messages), given.goal), **fields)


def _sample(given: MultiTurnEvaluationInput) -> Sample:
    """Return the sample of a conversation, made of what is known of it where there is none."""
    if given.sample is not None:
        return given.sample if given.sample.turn_count else given.sample.held(given.messages)
    return Sample.model_construct(
        id=given.conversation_history.conversation_id or "",
        messages=list(given.messages),
        ground_truth=given.reference,
        goal=given.goal,
        instructions=given.instructions,
        context=given.context,
        must=list(given.must),
        must_not=list(given.must_not),
    )


def _trajectory(given: MultiTurnEvaluationInput) -> Trajectory:
    opening, turns = split_turns(given.messages)
    seconds = [*given.turn_seconds, *(None for _ in turns[len(given.turn_seconds) :])]
    held = [
        Turn.model_construct(index=index, messages=messages, seconds=seconds[index])
        for index, messages in enumerate(turns)
    ]
    state = None if given.state is None else dict(given.state)
    return Trajectory.model_construct(opening=opening, turns=held, state=state, test=given.test)
