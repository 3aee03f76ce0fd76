"""Queues of conversations to label that are assigned to people."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from vivavoce.records.run import AttemptKey
from vivavoce.report.graded_run import require_grader
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.state import store_of
from vivavoce.server.users import user_of
from vivavoce.store.queues import AssignedQueue, QueuePlan, Selection

router = APIRouter(prefix="/api/v1", tags=["labels"], route_class=StrictRoute, responses=ERRORS)

QueueId = Annotated[str, Path(description="The id of a queue.")]


class QueueToAssign(BaseModel):
    """A queue: `size` conversations of a run are dealt to `people`, by the names of their tokens.

    `overlap` people label each conversation. With `blind`, the run and the score of the judge are hidden.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    grader: str = ""
    people: list[str]
    overlap: int = 1
    size: int = 50
    selection: Selection = "random"
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1
    blind: bool = True

    @property
    def plan(self) -> QueuePlan:
        """What is dealt, and how."""
        return QueuePlan(**self.model_dump(exclude={"run"}))


@router.post("/label-queues", response_model=AssignedQueue, status_code=201)
def assign(request: Request, body: QueueToAssign) -> Response:
    """Assign conversations of a run to people to label."""
    store = store_of(request)
    grading = store.grading(store.run(body.run).id)
    if body.grader:
        require_grader(body.grader, grading)
    return answer(store.queues.create(grading, body.plan, user_of(request).name), 201)


@router.get("/label-queues", response_model=list[AssignedQueue])
def queues(
    request: Request,
    run: Annotated[str | None, Query(description="Only those of this run.")] = None,
    person: Annotated[str | None, Query(description="Only those of this person.")] = None,
) -> Response:
    """Return the newest hundred queues with the progress of each person, newest first."""
    store = store_of(request)
    return answer(store.queues.all(run_id=None if run is None else store.run(run).id, person=person))


@router.get("/label-queues/{queue}", response_model=AssignedQueue)
def queue(request: Request, queue: QueueId) -> Response:
    """Return a queue with the progress of each person."""
    return answer(store_of(request).queues.get(queue))


@router.get("/label-queues/{queue}/items", response_model=list[AttemptKey])
def items(
    request: Request, queue: QueueId, person: Annotated[str, Query(description="The name of a person.")]
) -> Response:
    """Return the conversations that somebody labels in a queue, in order."""
    store = store_of(request)
    return answer(store.queues.items(store.queues.get(queue).id, person))


@router.delete("/label-queues/{queue}", response_model=AssignedQueue)
def remove(request: Request, queue: QueueId) -> Response:
    """Delete a queue, and return it; labels stay."""
    return answer(store_of(request).queues.delete(queue, user_of(request).name))
