"""The form of a run page for its title, its notes and its tags."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from vivavoce.records.label import remarks_of
from vivavoce.server.pages.forms import Form
from vivavoce.server.pages.links import run_page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of
from vivavoce.server.users import user_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.post("/runs/{run}/remarks")
def remark(request: Request, run: str, form: Form) -> Response:
    """Change what the form names; tags are separated by commas."""
    store = store_of(request)
    given: dict[str, object] = {name: form[name] for name in ("title", "notes") if name in form}
    if "tags" in form:
        given["tags"] = form["tags"].split(",")
    held = store.remark(store.run(run).id, remarks_of(given), user_of(request).name)
    return RedirectResponse(run_page(held.id), 303)
