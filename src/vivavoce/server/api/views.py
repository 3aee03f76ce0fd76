"""Views: pages with their filter, order and columns, kept under a name."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict

from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.replies import Problem
from vivavoce.server.state import store_of
from vivavoce.server.users import user_of
from vivavoce.store.views import View

router = APIRouter(prefix="/api/v1", tags=["views"], route_class=StrictRoute, responses=ERRORS)

_FORBIDDEN = {**ERRORS, 403: {"model": Problem, "description": "It is somebody else's."}}


class ViewToSave(BaseModel):
    """A view: the address of a page of this server, such as `/runs/r1?filter=state:fail`, and its name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    path: str
    shared: bool = False


@router.get("/views", response_model=list[View])
def views(request: Request) -> Response:
    """Return one's own views and those that others share."""
    return answer(store_of(request).views.all(user_of(request).name))


@router.post("/views", response_model=View, status_code=201)
def save(request: Request, body: ViewToSave) -> Response:
    """Keep a page under a name, in place of one's earlier view of that name."""
    made = store_of(request).views.save(user_of(request).name, body.name, body.path, shared=body.shared)
    return answer(made, 201)


@router.delete("/views/{view}", response_model=View, responses=_FORBIDDEN)
def remove(
    request: Request, view: Annotated[int, Path(ge=1, le=2**63 - 1, description="The id of a view.")]
) -> Response:
    """Remove one's own view, and return it; those of others need the role admin."""
    user = user_of(request)
    return answer(store_of(request).views.remove(view, user.name, anyones=user.may("admin")))
