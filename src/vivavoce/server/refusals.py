"""Refused requests: under `/api` with `{"detail": …}`, elsewhere with a page that says what to do."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import Scope

from vivavoce.errors import GraderFault, StoreError, UsageError
from vivavoce.safe_text import safe
from vivavoce.server.api.answers import on_error, on_invalid, refused
from vivavoce.server.pages.page import page

_TITLES = {
    401: "A token is required",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    413: "Too large",
    421: "Unknown host name",
    429: "Too many requests",
}


def refusal(scope: Scope, status: int, why: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer to a forbidden request."""
    if for_program(scope):
        return refused(why, status, headers)
    answer = page("problem.html", {"title": _title(status), "why": safe(why), "section": ""}, status)
    answer.headers.update(headers or {})
    return answer


def for_program(scope: Scope) -> bool:
    """Return whether the client is a program, not a browser."""
    path: str = scope["path"]
    return path.startswith(("/api/", "/openapi.json"))


def on_http(request: Request, error: Exception) -> Response:
    """Answer an error of a route or of the framework, such as an unknown address."""
    assert isinstance(error, HTTPException)
    status = 422 if error.status_code == 400 else error.status_code
    return refusal(request.scope, status, str(error.detail), error.headers)


def handle_errors(app: FastAPI) -> None:
    """Have an application answer errors of requests."""
    for kind in (UsageError, StoreError, GraderFault):  # a GraderFault is the end of the time of a request
        app.add_exception_handler(kind, on_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http)


def _title(status: int) -> str:
    return _TITLES.get(status, "Invalid request")
