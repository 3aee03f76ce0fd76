"""Deleting a run."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from vivavoce.server.api.answers import ERRORS
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.replies import Problem
from vivavoce.server.users import needs, user_of

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)

_MORE = {409: {"model": Problem, "description": "It is being worked on."}}


@router.delete("/runs/{run}", status_code=204, responses={**ERRORS, **_MORE}, dependencies=[needs("admin")])
def delete_run(request: Request, run: Annotated[str, Path(description="The id of a run, in full.")]) -> Response:
    """Delete a run with its conversations, scores and labels, for good. It takes the role admin."""
    request.app.state.store.maintenance.delete_run(run, user_of(request).name)
    return Response(status_code=204)
