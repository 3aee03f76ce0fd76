"""What a judge was asked for a score. The score is made again for it, in a process of its own."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from vivavoce.errors import NotFound
from vivavoce.records.replies import JudgeExchange
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import GradingName, RunName, Trial, graded_run, outcome_of
from vivavoce.server.process_route import ProcessRoute
from vivavoce.server.state import policy_of, store_of
from vivavoce.suites.judge_requests import prove_judge_exchange

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=ProcessRoute, responses=ERRORS)


@router.get("/runs/{run}/samples/{sample:path}/{trial}/exchange", response_model=JudgeExchange)
async def exchange(
    request: Request,
    run: RunName,
    sample: str,
    trial: Trial,
    grader: Annotated[str, Query(description="The grader whose judge was asked.")],
    turn: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only what was asked about this turn.")] = None,
    target: str | None = None,
    grading: GradingName = None,
) -> Response:
    """Return what a judge was asked for a score and what it answered, or why that cannot be proven."""
    record, scores = graded_run(request, run, grading)
    outcome = outcome_of(request, record, scores, sample, trial, target)
    if turn is not None and turn >= len(outcome.attempt.trajectory.turns):
        raise NotFound("turn", str(turn), within="this conversation")
    exchange_record = await prove_judge_exchange(store_of(request), record, scores, outcome, grader)
    shown = exchange_record.model_copy(update={"missing": policy_of(request).shown(exchange_record.missing)})
    return answer(shown if turn is None else shown.about(turn))
