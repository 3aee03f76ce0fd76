"""Full-text search in messages and in the reasons of scores."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Query, Request, Response

from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import After, Limit
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.replies import SearchHit, SearchPage
from vivavoce.store.browse.keyset import encode_cursor, read_place
from vivavoce.store.search.search import Hit
from vivavoce.store.store import Store

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)


@router.get("/search", response_model=SearchPage)
def search(
    request: Request,
    text: Annotated[str, Query(alias="q", description="Words that must all occur; case and accents are ignored.")],
    run: Annotated[str | None, Query(description="Where to search; default: everywhere.")] = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Find words in messages and in reasons, newest first."""
    store = cast("Store", request.app.state.store)
    before: int | None = None if after is None else read_place(after, int)[0]
    within = None if run is None else store.run(run).id
    hits = store.search(text, run=within, limit=limit + 1, before=before)
    following = encode_cursor((hits[limit - 1].number,)) if len(hits) > limit else None
    return answer(SearchPage(hits=[_found(hit) for hit in hits[:limit]], next=following))


def _found(hit: Hit) -> SearchHit:
    where = {"run": hit.run_id, "grading": hit.grading_id, "turn": hit.turn}
    return SearchHit.model_validate({**hit.key._asdict(), **where, **hit.snippet._asdict()})
