"""Comments of people on conversations and their turns."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict

from vivavoce.records.label import Comment, CommentText
from vivavoce.records.run import AttemptKey
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import After, Limit, RunName, Target, Trial, Turn, place_of
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.replies import Problem
from vivavoce.server.state import store_of
from vivavoce.server.users import user_of
from vivavoce.store.browse.listing import CommentPage

router = APIRouter(prefix="/api/v1", tags=["comments"], route_class=StrictRoute, responses=ERRORS)

CommentId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The id of a comment.")]
_FORBIDDEN = {**ERRORS, 403: {"model": Problem, "description": "It is somebody else's."}}


class CommentToAdd(BaseModel):
    """A comment: plain text with line breaks, in which `#t3` refers to turn 3."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: CommentText


class CommentChange(BaseModel):
    """Whether a comment is resolved."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    resolved: bool


@router.get("/runs/{run}/comments", response_model=CommentPage)
def comments(request: Request, run: RunName, after: After = None, limit: Limit = 50) -> Response:
    """List the comments on conversations of a run, oldest first."""
    store = store_of(request)
    return answer(store.comments.page(store.run(run).id, after=after, limit=limit))


@router.get("/runs/{run}/samples/{sample:path}/{trial}/comments", response_model=list[Comment])
def of_conversation(request: Request, run: RunName, sample: str, trial: Trial, target: Target = None) -> Response:
    """Return the comments on a conversation and its turns, oldest first."""
    place = place_of(request, run, AttemptKey(sample, target or "", trial))
    return answer(store_of(request).comments.of(place.run_id, place.key))


@router.post("/runs/{run}/samples/{sample:path}/{trial}/comments", response_model=Comment, status_code=201)
def add(
    request: Request,
    run: RunName,
    sample: str,
    trial: Trial,
    body: CommentToAdd,
    target: Target = None,
    turn: Turn = None,
) -> Response:
    """Comment on a conversation, or on a turn of it."""
    place = place_of(request, run, AttemptKey(sample, target or "", trial), turn)
    return answer(store_of(request).comments.add(place.run_id, place.key, turn, place.author, body.text), 201)


@router.put("/runs/{run}/comments/{comment}", response_model=Comment)
def resolve(request: Request, run: RunName, comment: CommentId, body: CommentChange) -> Response:
    """Mark a comment as resolved, or as open again."""
    store = store_of(request)
    return answer(store.comments.resolve(store.run(run).id, comment, user_of(request).name, resolved=body.resolved))


@router.delete("/runs/{run}/comments/{comment}", response_model=Comment, responses=_FORBIDDEN)
def remove(request: Request, run: RunName, comment: CommentId) -> Response:
    """Remove one's own comment, and return it; those of others need the role admin."""
    store, user = store_of(request), user_of(request)
    return answer(store.comments.remove(store.run(run).id, comment, user.name, anyones=user.may("admin")))
