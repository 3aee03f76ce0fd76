"""`PageRoute`: what goes wrong while a page is made is told on a page, in a sentence and with the way back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from vivavoce.errors import StoreError, UsageError
from vivavoce.report.text import safe
from vivavoce.server.pages.forms import ForeignForm
from vivavoce.server.pages.page import page


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
                return _problem("This address is not right", wrong, 422)
            except ForeignForm as error:
                return _problem("This form is not accepted", str(error), 403)
            except UsageError as error:
                return _problem("There is nothing here", "; ".join(map(str, error.problems)), 404)
            except StoreError as error:
                return _problem("The store cannot be read", str(error), 503)

        return told


def _problem(title: str, why: str, status: int) -> Response:
    return page("problem.html", {"title": title, "why": safe(why), "section": ""}, status)
