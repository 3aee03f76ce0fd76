"""What watches production: rates over time, budget, and whether the gate holds."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from vivavoce.features.watch.state import Bucket, Watched, WatchEntry, read_watch, watches
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.state import store_of

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)


@router.get("/watches", response_model=list[WatchEntry])
def all_watches(request: Request) -> Response:
    """List what watches production, the one that was heard of last first."""
    return answer(watches(store_of(request)))


@router.get("/watch", response_model=Watched)
def one_watch(
    request: Request,
    name: Annotated[str | None, Query(description="A watch; default: the one with the latest report.")] = None,
    per: Annotated[Bucket, Query(description="The last 48 hours, or the last 30 days in UTC.")] = "hour",
) -> Response:
    """Return what a watch saw, what it may use, and whether its gate holds; rates are of the judged conversations."""
    return answer(read_watch(store_of(request), name, per))
