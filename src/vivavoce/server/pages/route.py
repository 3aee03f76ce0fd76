"""`PageRoute`: what goes wrong while a page is made is told on a page, in a sentence and with the way back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from vivavoce.errors import StoreError, UsageError
from vivavoce.safe_text import safe
from vivavoce.server.pages.page import page
from vivavoce.server.statuses import INVALID, answered

TITLES = {
    "not_found": "Not found",
    "foreign_form": "This form is not accepted",
    "store_unavailable": "The store cannot be read",
}
"""The title of a page about an error, by its code."""


class PageRoute(APIRoute):
    """A route whose answer is a page, also where there is nothing to show."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                wrong = "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in error.errors())
                return _problem("This address is not right", wrong, INVALID.status)
            except (UsageError, StoreError) as error:
                found, why = answered(error), request.app.state.policy.shown(_sentences(error))
                return _problem(TITLES.get(found.code, "This request is not right"), why, found.status)

        return told


def _sentences(error: UsageError | StoreError) -> str:
    return "; ".join(map(str, error.problems)) if isinstance(error, UsageError) else str(error)


def _problem(title: str, why: str, status: int) -> Response:
    return page("problem.html", {"title": title, "why": safe(why), "section": ""}, status)
