"""How a request is refused: below `/api` with `{"detail": …}`, elsewhere on a page that says what to do."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import Request, Response
from starlette.exceptions import HTTPException
from starlette.types import Scope

from vivavoce.safe_text import safe
from vivavoce.server.api.answers import refused
from vivavoce.server.pages.page import page

_TITLES = {
    401: "A token is needed",
    403: "You may not do this",
    404: "Not found",
    405: "This cannot be done here",
    413: "This is too large",
    421: "This server has another name",
    429: "Too many requests",
}


def refusal(scope: Scope, status: int, why: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer to a request that may not be made."""
    if for_program(scope):
        return refused(why, status, headers)
    answer = page("problem.html", {"title": _title(status), "why": safe(why), "section": ""}, status)
    answer.headers.update(headers or {})
    return answer


def for_program(scope: Scope) -> bool:
    """Say whether a program asks, and not a person."""
    path: str = scope["path"]
    return path.startswith(("/api/", "/openapi.json"))


def on_http(request: Request, error: Exception) -> Response:
    """Answer what a route, or the framework, refuses itself, such as an address that is none."""
    assert isinstance(error, HTTPException)
    status = 422 if error.status_code == 400 else error.status_code
    return refusal(request.scope, status, str(error.detail), error.headers)


def _title(status: int) -> str:
    return _TITLES.get(status, "This request is not right")
