"""`create_app`: the server as an ASGI application, around one store."""

from __future__ import annotations

import secrets
from importlib.metadata import version

from anyio import CapacityLimiter
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from vivavoce.errors import StoreError, UsageError
from vivavoce.report.html.rendering import STATIC
from vivavoce.server.access import Access, AccessMiddleware
from vivavoce.server.allowed import Allowed
from vivavoce.server.api import about, evaluations, jobs, runs
from vivavoce.server.api.answers import on_http, on_invalid, on_store, on_usage
from vivavoce.server.jobs import Jobs
from vivavoce.server.pages import conversation, run, run_list
from vivavoce.store.store import Store

EVALUATIONS = 32
"""Conversations that requests have measured at a time; others wait."""


def create_app(store: Store, access: Access, allowed: Allowed | None = None) -> FastAPI:
    """Return the application; it reads `store`, and the caller closes it.

    `allowed` is what requests may have run: the suites of the folder where this runs, unless it is given.

    The API is below `/api/v1`, described at `/openapi.json`; the pages are at `/`.
    """
    app = FastAPI(
        title="vivavoce",
        version=version("vivavoce"),
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.store = store
    app.state.allowed = allowed or Allowed()
    app.state.jobs = Jobs(store, app.state.allowed)
    app.state.secret = secrets.token_bytes(32)
    app.state.evaluations = CapacityLimiter(EVALUATIONS)
    app.add_middleware(AccessMiddleware, access=access)
    app.add_exception_handler(UsageError, on_usage)
    app.add_exception_handler(StoreError, on_store)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http)
    app.include_router(about.router)
    app.include_router(runs.router)
    app.include_router(evaluations.router)
    app.include_router(jobs.router)
    app.include_router(conversation.router)
    app.include_router(run.router)
    app.include_router(run_list.router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app
