"""A grader outside of a run: its score for a conversation, as the result of a metric."""

from __future__ import annotations

from typing import Any

from vivavoce.conversation import split_turns
from vivavoce.grading.grader import Grader
from vivavoce.metrics.result import About, MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.samples.sample import Sample


async def graded(grader: Grader, metric_input: MultiTurnEvaluationInput, name: str) -> MetricResult:
    """Return the score of a grader for a conversation, as the result of a metric with that name.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached.
    """
    score = await grader.grade(_sample(metric_input), _trajectory(metric_input), metric_input.trial)
    fields: dict[str, Any] = {field: getattr(score, field) for field in Score.model_fields}
    fields |= {"name": name, "raw": score.value if score.raw is None else score.raw}
    return MetricResult.model_construct(about=About("numeric", len(metric_input.messages), metric_input.goal), **fields)


def _sample(metric_input: MultiTurnEvaluationInput) -> Sample:
    """Return the sample of a conversation; if there is none, build one from what is known."""
    if metric_input.sample is not None:
        return (
            metric_input.sample if metric_input.sample.turn_count else metric_input.sample.held(metric_input.messages)
        )
    return Sample.model_construct(
        id=metric_input.conversation_history.conversation_id or "",
        messages=list(metric_input.messages),
        ground_truth=metric_input.reference,
        goal=metric_input.goal,
        instructions=metric_input.instructions,
        context=metric_input.context,
        policy=metric_input.policy,
        must=list(metric_input.must),
        must_not=list(metric_input.must_not),
    )


def _trajectory(metric_input: MultiTurnEvaluationInput) -> Trajectory:
    opening, turns = split_turns(metric_input.messages)
    seconds = [*metric_input.turn_seconds, *(None for _ in turns[len(metric_input.turn_seconds) :])]
    turn_records = [
        Turn.model_construct(index=index, messages=messages, seconds=seconds[index])
        for index, messages in enumerate(turns)
    ]
    state = None if metric_input.state is None else dict(metric_input.state)
    return Trajectory.model_construct(opening=opening, turns=turn_records, state=state, test=metric_input.test)
