"""Calibrations: how far a judge can be believed by the labels of people, and the labels that correct its rates."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from vivavoce.errors import UsageError
from vivavoce.features.calibration.calibration import (
    WIDTH,
    CalibrationReport,
    calibration_report,
    find_calibration,
    from_people,
)
from vivavoce.records.label import Calibration
from vivavoce.records.run import Grading
from vivavoce.report.graded_run import require_grader
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import GradingName, RunName
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.state import store_of
from vivavoce.server.users import user_of
from vivavoce.store.store import Store

router = APIRouter(prefix="/api/v1", tags=["labels"], route_class=StrictRoute, responses=ERRORS)

Width = Annotated[float, Query(gt=0, le=1, description="The target width of the rate's 95% interval.")]


class JudgeToCalibrate(BaseModel):
    """The grader whose judge is calibrated, by the labels of the run as they are now."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    grader: str
    width: float = Field(default=WIDTH, gt=0, le=1)
    grading: str | None = None


@router.get("/runs/{run}/calibration", response_model=CalibrationReport)
def calibration(
    request: Request,
    run: RunName,
    grader: Annotated[str, Query(description="The grader whose judge is compared with the labels.")],
    width: Width = WIDTH,
    grading: GradingName = None,
    saved_id: Annotated[str | None, Query(alias="kept", description="The id of a saved calibration to show.")] = None,
) -> Response:
    """Return how far a judge can be believed by the labels of the run as they are now, or by those of a saved one.

    Without a label the newest saved calibration of this judge is shown. Nothing is saved.
    """
    store, scores = _load_grading(request, run, grading, grader)
    judge_calibration, is_saved = find_calibration(store, scores, grader, user_of(request).name, saved_id)
    return answer(calibration_report(store, scores, judge_calibration, width=width, is_saved=is_saved))


@router.get("/runs/{run}/calibrations", response_model=list[Calibration])
def calibrations(
    request: Request,
    run: RunName,
    grader: Annotated[str | None, Query(description="Only calibrations of this grader.")] = None,
) -> Response:
    """List the calibrations that were kept of the labels of a run, newest first."""
    store = store_of(request)
    stored_run = store.run(run)
    if grader is not None:
        require_grader(grader, store.grading(stored_run.id))
    return answer(store.calibrations.of_run(stored_run.id, grader))


@router.post("/runs/{run}/calibrations", response_model=CalibrationReport, status_code=201)
def keep(request: Request, run: RunName, body: JudgeToCalibrate) -> Response:
    """Keep the labels of the run as they are now, to correct the rates of the judge, and return what they show."""
    store, scores = _load_grading(request, run, body.grading, body.grader)
    judge_calibration = from_people(store, scores, body.grader, user_of(request).name)
    if not judge_calibration.drawn_labels:
        raise UsageError("nothing to save: no label is of a randomly sampled conversation")
    store.calibrations.add(judge_calibration)
    return answer(calibration_report(store, scores, judge_calibration, width=body.width, is_saved=True), 201)


def _load_grading(request: Request, run: str, grading: str | None, grader: str) -> tuple[Store, Grading]:
    store = store_of(request)
    scores = store.grading(store.run(run).id, grading)
    require_grader(grader, scores)
    return store, scores
