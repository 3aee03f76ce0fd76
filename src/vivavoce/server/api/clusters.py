"""What failed in a run, grouped by what the failures have in common."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Query, Request, Response

from vivavoce.report.clusters.cluster import Clusters
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import GradingName, RunName
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.clustering import ClusterCache
from vivavoce.store.store import Store

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)


@router.get("/runs/{run}/clusters", response_model=Clusters)
def clusters(
    request: Request,
    run: RunName,
    grader: Annotated[str | None, Query(description="Only failures of this grader.")] = None,
    grading: GradingName = None,
) -> Response:
    """Group the failures of a run, the clusters with the most conversations first."""
    store = cast("Store", request.app.state.store)
    cache = cast("ClusterCache", request.app.state.clusters)
    return answer(cache.find(store, store.grading(store.run(run).id, grading), grader).report)
