"""The menu of views: pages kept under a name, on the list of runs, on runs and on comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from vivavoce.errors import UsageError
from vivavoce.server.authenticator import requested_path
from vivavoce.server.pages.forms import Form, form_key, index_of
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.pages.sign_in import local
from vivavoce.server.state import store_of
from vivavoce.server.users import user_of
from vivavoce.store.views import View

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class ViewsMenu:
    """The views of a person; `here` is the page that they look at, without a `form_key` none can be kept."""

    views: Sequence[tuple[View, bool]]
    here: str
    form_key: str | None


def views_menu(request: Request) -> ViewsMenu:
    """Return the menu for a page; each view with whether this person may remove it."""
    user, store = user_of(request), store_of(request)
    return ViewsMenu(
        views=[(one, one.author == user.name or user.may("admin")) for one in store.views.all(user.name)],
        here=requested_path(request.scope),
        form_key=form_key(request) if user.may("write") else None,
    )


@router.post("/views")
def change(request: Request, form: Form) -> Response:
    """Keep the page that the form is on, or remove a view, and return there."""
    user, store = user_of(request), store_of(request)
    match form.get("action"):
        case "save":
            store.views.save(user.name, form.get("name", ""), form.get("path", ""), shared="shared" in form)
        case "remove":
            store.views.remove(index_of(form.get("view", "")) + 1, user.name, anyones=user.may("admin"))
        case _:
            raise UsageError("unknown action; save or remove")
    return RedirectResponse(local(form.get("path", "/")), 303)
