"""What people say of a run: its title, notes and tags."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from vivavoce.records.label import Remarks
from vivavoce.records.run import Run
from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.runs import RunName
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.state import store_of
from vivavoce.server.users import user_of

router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=StrictRoute, responses=ERRORS)


@router.patch("/runs/{run}", response_model=Run)
def remark(request: Request, run: RunName, change: Remarks) -> Response:
    """Change the title, the notes or the tags of a run; what is left out stays, an empty text removes it."""
    store = store_of(request)
    return answer(store.remark(store.run(run).id, change, user_of(request).name))
