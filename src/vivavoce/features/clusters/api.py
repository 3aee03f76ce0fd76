"""What failed in a run, grouped by what the failures have in common."""

from __future__ import annotations

from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict

from vivavoce.features.clusters.cache import ask_for_names, cluster_cache, naming_judge, with_kept_names
from vivavoce.features.clusters.records import Clusters
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import GradingName, RunName
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.state import policy_of, store_of

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)


class ClustersToName(BaseModel):
    """Which clusters a judge is to name, and the judge; by default VIVAVOCE_JUDGE or another that requests may use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str | None = None
    grader: str | None = None
    grading: str | None = None


@router.get("/runs/{run}/clusters", response_model=Clusters)
async def clusters(
    request: Request,
    run: RunName,
    grader: Annotated[str | None, Query(description="Only failures of this grader.")] = None,
    grading: GradingName = None,
    judge: Annotated[str | None, Query(description="Show the cluster names that this model gave, if any.")] = None,
) -> Response:
    """Group the failures of a run, the clusters with the most conversations first; no model is asked."""
    named_by = naming_judge(policy_of(request), judge)
    report = await _load_clusters(request, run, grader, grading)
    store = store_of(request)
    return await to_thread.run_sync(lambda: answer(with_kept_names(store, report, named_by)))


@router.post("/runs/{run}/clusters/names", response_model=Clusters)
async def name(request: Request, run: RunName, body: ClustersToName) -> Response:
    """Have a judge name the clusters of a run, and return them; its answer is kept, and the groups stay as they are."""
    judge = naming_judge(policy_of(request), body.judge)
    clusters = await _load_clusters(request, run, body.grader, body.grading)
    return answer(await ask_for_names(request, clusters, judge))


async def _load_clusters(request: Request, run: str, grader: str | None, grading: str | None) -> Clusters:
    return (await cluster_cache(request).find_in_turn(request, run, grading, grader)).report
