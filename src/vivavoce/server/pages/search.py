"""The search page: one box over conversations, reasons and runs; and the names that complete what one types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from vivavoce.errors import UsageError
from vivavoce.records.score import conversation_label, to_number
from vivavoce.safe_text import safe
from vivavoce.server.pages.links import run_page, sample_page, search_data, search_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of
from vivavoce.store.browse.filter import encode_cursor, read_place
from vivavoce.store.browse.listing import RunEntry
from vivavoce.store.search.query import AFTER, BEFORE, OPERATORS, ROLES, STATES, Query, marked, parse_query, quoted
from vivavoce.store.search.search import Found, Hit, Kind
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

SHOWN, ALONE = 8, 30
"""Hits of each kind on the first page, and on a page of one kind."""
OFFERED = 300
"""Names of each kind that complete what one types, at most."""
RECENT = 8
"""Newest runs that the palette offers."""
KINDS: dict[Kind, str] = {"comment": "Comments", "conversation": "Conversations", "reason": "Reasons"}


@dataclass(frozen=True, slots=True)
class Row:
    """A hit: where it leads, who said it, and the excerpt in pieces, each with whether it was searched for."""

    name: str
    link: str
    by: str
    hit: Hit
    run: RunEntry | None
    pieces: Sequence[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Group:
    """The hits of a kind; `more` leads to the next ones, and `ended` says that there is nothing beyond."""

    title: str
    kind: Kind
    rows: list[Row]
    more: str | None
    ended: bool


@router.get("/search")
def search(request: Request, q: str = "", kind: str | None = None, after: str | None = None) -> Response:
    """Show what fits a query, by kind; `kind` shows one of them alone, a page at a time."""
    text = q.strip()
    chosen: Kind | None = kind if kind in KINDS else None
    values: dict[str, object] = {
        "section": "search",
        "text": text,
        "operators": [(operator, search_page(q=operator.example)) for operator in OPERATORS],
        "json_link": search_data(q=text, kind=chosen) if text else None,
        "problem": "",
        "groups": [],
        "runs": [],
        "more_runs": 0,
        "everything": search_page(q=text) if chosen else None,
    }
    before: int | None = None if after is None else read_place(after, int)[0]
    if not text:
        return page("search.html", values)
    try:
        groups = _search_groups(store_of(request), parse_query(text), text, chosen, before)
    except UsageError as error:
        return page("search.html", {**values, "problem": safe(str(error))}, 422)
    return page("search.html", {**values, **groups})


@router.get("/search/names")
def names(request: Request) -> Response:
    """Return what completes a query and fills the palette: operators with their values, and the newest runs."""
    store = store_of(request)
    known = store.searcher.vocabulary()
    values = {
        "run": ["latest", *known.runs],
        "suite": known.suites,
        "target": known.targets,
        "grader": known.graders,
        "tag": known.tags,
        "state": STATES,
        "role": ROLES,
    }
    answer = {
        "operators": [
            {
                "name": operator.name,
                "selects": operator.selects,
                "example": operator.example,
                "values": [quoted(value) for value in values.get(operator.name, ())][:OFFERED],
            }
            for operator in OPERATORS
        ],
        "runs": [
            {"name": f"{safe(run.suite)}, {safe(run.id)}", "link": run_page(run.id)}
            for run in store.browse.named_runs(known.runs[:RECENT])
        ],
    }
    return JSONResponse(answer)


def _search_groups(store: Store, query: Query, text: str, kind: Kind | None, before: int | None) -> dict[str, object]:
    """Return the groups, and the runs where no kind of hits is chosen.

    Raises:
        UsageError: the query names something unknown.
    """
    conversations, reasons = query.finds
    possible: list[tuple[Kind, bool]] = [
        ("comment", query.is_of_runs),
        ("conversation", conversations),
        ("reason", reasons),
    ]
    kinds: list[Kind] = [one for one, can in possible if can and kind in (None, one)]
    limit = ALONE if kind else SHOWN
    found: list[tuple[Kind, Found]] = [
        (one, store.searcher.find(query, kind=one, limit=limit, before=before)) for one in kinds
    ]
    runs = store.searcher.runs(query) if kind is None else []
    held = {hit.run_id for _, page_of in found for hit in page_of.hits}
    entries = {run.id: run for run in store.browse.named_runs([*held, *runs[:SHOWN]])}
    groups = [
        Group(
            KINDS[one],
            one,
            [_row(hit, query, entries.get(hit.run_id)) for hit in page_of.hits],
            search_page(q=text, kind=one, after=encode_cursor((page_of.next,))) if page_of.next is not None else None,
            page_of.next is None,
        )
        for one, page_of in found
    ]
    return {
        "groups": groups,
        "runs": [(one, run_page(one.id)) for name in runs[:SHOWN] if (one := entries.get(name))],
        "more_runs": max(len(runs) - SHOWN, 0),
        "nothing": not runs and all(group.ended and not group.rows for group in groups),
        "first_page": before is None,
    }


def _row(hit: Hit, query: Query, run: RunEntry | None) -> Row:
    key = hit.key
    link = sample_page(
        hit.run_id, key.sample_id, trial=key.trial, turn=hit.turn, target=key.target, grading=hit.grading_id
    )
    place = "#verdict" if hit.turn is None else f"#t{to_number(hit.turn)}"
    if hit.comment is not None:
        place = f"#c{hit.comment}"
    shown = hit.snippet
    begun, cut = shown.start >= BEFORE, len(shown.text) - shown.end >= AFTER
    pieces = [(safe(re.sub(r"\s+", " ", part)), found) for part, found in marked(shown.text, query.words)]
    pieces = [("…", False)] * begun + pieces + [("…", False)] * cut
    return Row(conversation_label(key.sample_id, key.trial), link + place, hit.by or "", hit, run, pieces)
