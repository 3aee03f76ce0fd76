"""Comparisons of runs as data."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from vivavoce.features.compare.cache import comparisons_of
from vivavoce.features.compare.several import SeveralComparisons
from vivavoce.records.run import Grading
from vivavoce.report.comparison.comparison import Comparison
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.state import store_of
from vivavoce.store.store import Store

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)


@router.get("/comparisons", response_model=Comparison)
def comparison(
    request: Request,
    a: Annotated[str, Query(description="A run.")],
    b: Annotated[str, Query(description="The run to compare it with.")],
) -> Response:
    """Compare two runs: the figures of each grader over the scenarios of both, and the samples that flipped."""
    store = store_of(request)
    return answer(comparisons_of(request).compare(store, _scores(store, a), _scores(store, b)))


@router.get("/comparisons/several", response_model=SeveralComparisons)
def several_comparisons(
    request: Request,
    baseline: Annotated[str, Query(description="A run.")],
    run: Annotated[list[str], Query(description="A run to compare it with; repeat for more.")],
) -> Response:
    """Compare several runs with one; the intervals of a grader hold together with 95%. Flips have no reasons."""
    store = store_of(request)
    first, *others = (_scores(store, name) for name in (baseline, *run))
    return answer(comparisons_of(request).several(store, first, others))


def _scores(store: Store, run: str) -> Grading:
    return store.grading(store.run(run, whole=True).id)
