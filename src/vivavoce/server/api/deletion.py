"""Deleting a run."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from vivavoce.server.api.answers import ERRORS
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.replies import Problem
from vivavoce.server.state import store_of
from vivavoce.server.users import needs, user_of

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)

_MORE = {409: {"model": Problem, "description": "The run is in use."}}


@router.delete("/runs/{run}", status_code=204, responses={**ERRORS, **_MORE}, dependencies=[needs("admin")])
def delete_run(request: Request, run: Annotated[str, Path(description="The full id of a run.")]) -> Response:
    """Delete a run with its conversations, scores and labels permanently. Requires the role admin."""
    store_of(request).maintenance.delete_run(run, user_of(request).name)
    return Response(status_code=204)
