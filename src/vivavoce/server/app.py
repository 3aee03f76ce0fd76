"""`create_app`: the server as an ASGI application, around one store."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles

from vivavoce.errors import StoreError, UsageError
from vivavoce.server.access import Access, AccessMiddleware
from vivavoce.server.pages.templates import HERE
from vivavoce.store.store import Store


def create_app(store: Store, access: Access) -> FastAPI:
    """Return the application; it reads `store`, and the caller closes it.

    The API is below `/api/v1`, described at `/openapi.json`; the pages are at `/`.
    """
    app = FastAPI(title="vivavoce", version=version("vivavoce"), docs_url=None, redoc_url=None)
    app.state.store = store
    app.add_middleware(AccessMiddleware, access=access)
    app.add_exception_handler(UsageError, _usage)
    app.add_exception_handler(StoreError, _store)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    return app


def _usage(request: Request, error: Exception) -> JSONResponse:
    """Answer a request that is wrong with what is wrong; what it names and is not there is not found."""
    del request
    missing = str(error).startswith(("no run", "there is no", "no such"))
    return JSONResponse({"detail": str(error)}, 404 if missing else 422)


def _store(request: Request, error: Exception) -> JSONResponse:
    del request
    return JSONResponse({"detail": str(error)}, 503)
