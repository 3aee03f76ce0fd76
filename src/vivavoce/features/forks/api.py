"""Forks: runs that go on from a conversation of another run, and what they show."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from vivavoce.errors import NotFound
from vivavoce.features.forks.records import ListedFork, forks_of
from vivavoce.features.forks.report import Forked, read_fork
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import RunName
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.state import store_of

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)


@router.get("/runs/{run}/fork", response_model=Forked)
def fork(request: Request, run: RunName) -> Response:
    """Return what a fork shows: how often its continuations succeeded by turn, and where the odds fell."""
    store = store_of(request)
    return answer(read_fork(store, store.run(run)))


@router.get("/runs/{run}/forks", response_model=list[ListedFork])
def forks(
    request: Request,
    run: RunName,
    sample: Annotated[str | None, Query(description="Only forks of the conversations of this sample.")] = None,
) -> Response:
    """List the forks of the conversations of a run, the oldest first."""
    store = store_of(request)
    stored_run = store.run(run)
    if sample is not None and not store.stored(stored_run.id, [sample]):
        raise NotFound(
            "sample", sample, within=f"run {stored_run.id}", known={key.sample_id for key in store.done(stored_run.id)}
        )
    return answer([entry for entry in forks_of(store, stored_run.id) if sample in (None, entry.fork.sample)])
