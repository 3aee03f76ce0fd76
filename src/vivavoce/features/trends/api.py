"""Trends: a grader over the runs of a suite."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from vivavoce.features.trends.trends import LIMIT, Trend, trend
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.state import store_of

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)


@router.get("/trends", response_model=Trend)
def trends(
    request: Request,
    suite: Annotated[str, Query(description="The name of a suite.")],
    grader: Annotated[str | None, Query(description="A grader; default: the headline grader of the runs.")] = None,
    target: Annotated[str | None, Query(description="A target, if runs have several; default: the first one.")] = None,
    first: Annotated[str | None, Query(alias="from", description="The first run.")] = None,
    last: Annotated[str | None, Query(alias="to", description="The last run.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="How many runs, at most.")] = LIMIT,
) -> Response:
    """Return the means of a grader over the newest runs of a suite, or some others, and what changed between them."""
    return answer(trend(store_of(request), suite, grader, target, first=first, last=last, limit=limit))
