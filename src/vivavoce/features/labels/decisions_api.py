"""Decisions where labels of people differ."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from vivavoce.features.labels.api import Grader
from vivavoce.records.label import LONGEST_NOTE, Decision, DifferingLabels
from vivavoce.records.run import AttemptKey
from vivavoce.report.graded_run import require_grader
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import RunName, Target, Trial, Turn, place_of
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.state import store_of
from vivavoce.store.labels import now_decision

router = APIRouter(prefix="/api/v1", tags=["labels"], route_class=StrictRoute, responses=ERRORS)


class DecisionToSet(BaseModel):
    """A decision; `blind` if it was hidden who had said what."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    verdict: Literal["pass", "fail"]
    note: Annotated[str | None, Field(max_length=LONGEST_NOTE)] = None
    blind: bool = False


@router.get("/runs/{run}/labels/differing", response_model=list[DifferingLabels])
def differing(
    request: Request,
    run: RunName,
    grader: Annotated[str | None, Query(description="Only those about this grader.")] = None,
) -> Response:
    """Return the places where people say both pass and fail, with all labels there, and what was decided."""
    store = store_of(request)
    stored_run = store.run(run)
    if grader:
        require_grader(grader, store.grading(stored_run.id))
    return answer(store.decisions.differing(stored_run.id, grader=grader))


@router.put("/runs/{run}/samples/{sample:path}/{trial}/decision", response_model=Decision)
def decide(
    request: Request,
    run: RunName,
    sample: str,
    trial: Trial,
    body: DecisionToSet,
    target: Target = None,
    turn: Turn = None,
    grader: Grader = "",
) -> Response:
    """Decide where labels differ; this replaces an earlier decision, and no label."""
    place = place_of(request, run, AttemptKey(sample, target or "", trial), turn, grader)
    decision = now_decision(place, body.verdict, body.note, blind=body.blind)
    store_of(request).decisions.set(place.run_id, decision)
    return answer(decision)


@router.delete("/runs/{run}/samples/{sample:path}/{trial}/decision", response_model=Decision)
def remove(
    request: Request,
    run: RunName,
    sample: str,
    trial: Trial,
    target: Target = None,
    turn: Turn = None,
    grader: Grader = "",
) -> Response:
    """Take a decision back, and return it."""
    place = place_of(request, run, AttemptKey(sample, target or "", trial), turn, grader)
    return answer(store_of(request).decisions.remove(place))
