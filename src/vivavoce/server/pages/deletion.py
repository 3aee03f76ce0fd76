"""Deleting a run from its page, after a confirmation."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from vivavoce.safe_text import safe
from vivavoce.server.pages.forms import Form, form_key
from vivavoce.server.pages.links import run_list, run_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of
from vivavoce.server.users import needs, user_of
from vivavoce.store.runs.claim import Claimed

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/runs/{run}/delete", dependencies=[needs("admin")])
def confirm(request: Request, run: str) -> Response:
    """Ask for confirmation, and say what is deleted with the run."""
    store = store_of(request)
    stored_run = store.run(run)
    values: dict[str, object] = {
        "section": "runs",
        "run": stored_run,
        "count": store.counts(stored_run.id)[0],
        "held": store.held(stored_run.id),
        "back": run_page(stored_run.id),
        "form_key": form_key(request),
    }
    return page("delete_run.html", values)


@router.post("/runs/{run}/delete", dependencies=[needs("admin")])
def deleted(request: Request, run: str, form: Form) -> Response:
    """Delete a run; it needs the exact id, so that no other run is deleted by mistake."""
    del form
    try:
        store_of(request).maintenance.delete_run(run, user_of(request).name)
    except Claimed as error:
        raise HTTPException(409, safe(str(error))) from error
    return RedirectResponse(run_list(), 303)
