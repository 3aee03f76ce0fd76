"""The groups of a run as data."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from vivavoce.features.groups.report import Grouped, group_conversations
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import Filter, GradingName, RunName
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.requested_metrics import check_grader, check_graders
from vivavoce.server.state import store_of
from vivavoce.store.browse.filter import parse_filter

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)


@router.get("/runs/{run}/groups", response_model=Grouped)
def groups(
    request: Request,
    run: RunName,
    by: Annotated[
        str, Query(description="`tag`, `target`, `trial`, `persona`, or a field such as `metadata.language`.")
    ] = "tag",
    grader: Annotated[
        str | None, Query(description="Grader whose pass rate is compared; default: a conversation's worst score.")
    ] = None,
    pairs: Annotated[
        str | None, Query(description="A field; samples with the same value are variants of one case.")
    ] = None,
    filter: Filter = "",  # noqa: A002 - it is called so in the address
    grading: GradingName = None,
) -> Response:
    """Group the conversations of a run, the largest groups first, and say which differ from the others."""
    store = store_of(request)
    scores = store.grading(store.run(run).id, grading)
    check_graders(scores, parse_filter(filter), "position")
    if grader is not None:
        check_grader(grader, scores)
    return answer(group_conversations(store, scores, by, filter, grader=grader, pairs=pairs))
