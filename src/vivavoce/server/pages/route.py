"""`PageRoute`: errors while making a page are shown on a page, in a sentence and with a way back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from vivavoce.errors import GraderFault, StoreError, UsageError
from vivavoce.safe_text import safe
from vivavoce.server.access import Handler, reading_once
from vivavoce.server.pages.page import page
from vivavoce.server.process_route import in_process
from vivavoce.server.state import policy_of
from vivavoce.server.statuses import INVALID, answered
from vivavoce.server.turns import in_turn

TITLES = {
    "not_found": "Not found",
    "foreign_form": "This form is not accepted",
    "store_unavailable": "The store cannot be read",
}
"""The title of an error page, by error code."""


class PageRoute(APIRoute):
    """A route whose answer is always a page, also for an error."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of requests."""
        return _with_error_pages(in_turn(self, reading_once(self, super().get_route_handler())))


class ProcessPageRoute(PageRoute):
    """A route whose page is made in a process of its own, where the application has a way to begin one."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of requests."""
        return _with_error_pages(in_process(super().get_route_handler()))


def _with_error_pages(handle: Handler) -> Handler:
    async def respond(request: Request) -> Response:
        try:
            return await handle(request)
        except RequestValidationError as error:
            wrong = "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in error.errors())
            return _problem("Invalid address", wrong, INVALID.status)
        except (UsageError, StoreError, GraderFault) as error:  # a GraderFault is the end of the time of a request
            found, why = answered(error), policy_of(request).shown(_sentences(error))
            return _problem(TITLES.get(found.code, "Invalid request"), why, found.status)

    return respond


def _sentences(error: UsageError | StoreError | GraderFault) -> str:
    return "; ".join(map(str, error.problems)) if isinstance(error, UsageError) else str(error)


def _problem(title: str, why: str, status: int) -> Response:
    return page("problem.html", {"title": title, "why": safe(why), "section": ""}, status)
