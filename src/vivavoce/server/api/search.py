"""Search in messages, in the reasons of scores, in comments and in what is said of runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import After, Limit
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.replies import SearchPage, search_hit
from vivavoce.server.state import store_of
from vivavoce.store.browse.filter import encode_cursor, read_place
from vivavoce.store.search.query import OPERATORS, parse_query
from vivavoce.store.search.search import Kind

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)


BESIDE = 20
"""Runs, and comments, on the first page of an answer, at most."""


@router.get("/search", response_model=SearchPage)
def search(
    request: Request,
    text: Annotated[
        str,
        Query(
            alias="q",
            description="Words that must all occur; case and accents are ignored. Operators: "
            + "; ".join(f"`{operator.example}`: {operator.selects}" for operator in OPERATORS)
            + ". Quotation marks keep words together, a leading `-` excludes.",
        ),
    ],
    run: Annotated[str | None, Query(description="Where to search; default: everywhere.")] = None,
    kind: Annotated[
        Kind | None,
        Query(description="The only kind of hits; default: all, and runs."),
    ] = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Find words in messages and in reasons, newest first, and the comments and runs that have them."""
    store = store_of(request)
    before: int | None = None if after is None else read_place(after, int)[0]
    within = None if run is None else store.run(run).id
    query = parse_query(text)
    found = store.searcher.find(query, run_id=within, kind=kind, limit=limit, before=before)
    is_first = after is None and kind is None
    runs = store.searcher.runs(query)[:BESIDE] if is_first and run is None else []
    comments = store.searcher.find(query, run_id=within, kind="comment", limit=BESIDE).hits if is_first else []
    following = None if found.next is None else encode_cursor((found.next,))
    hits = [search_hit(hit) for hit in found.hits]
    said = [search_hit(hit) for hit in comments]
    named = store.browse.named_runs(runs) if runs else []
    return answer(SearchPage(hits=hits, comments=said, runs=named, next=following))
