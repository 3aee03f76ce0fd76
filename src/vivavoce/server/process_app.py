"""The application that answers one request in a process of its own: only routes that may take long."""

from __future__ import annotations

import traceback
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any

from fastapi import FastAPI

from vivavoce.errors import MissingExtra
from vivavoce.metrics.evaluation import choose
from vivavoce.metrics.factory import metrics
from vivavoce.pacing.loops import run
from vivavoce.server.api import captures, evaluations, exchange
from vivavoce.server.pages import capture as capture_page
from vivavoce.server.pages import exchange as exchange_page
from vivavoce.server.process_route import PlainRequest, PlainResponse, Surroundings
from vivavoce.server.processes import answering
from vivavoce.server.refusals import handle_errors
from vivavoce.server.state import RequestState
from vivavoce.server.users import visitor
from vivavoce.store.store import Store
from vivavoce.work_time import interrupted_work, limited_work


@cache
def _application() -> FastAPI:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    handle_errors(app)
    for module in (evaluations, exchange, exchange_page, captures, capture_page):
        app.router.routes.extend(module.router.routes)
    return app


def _respond(request: PlainRequest, surroundings: Surroundings) -> PlainResponse:
    """Answer a request, whose work is limited and can be interrupted."""
    app = _application()
    with ExitStack() as stack:
        store = None if evaluations.is_sent(request.path) else stack.enter_context(Store.open(surroundings.store))
        app.state.shared = RequestState(store=store, policy=surroundings.policy, secret=surroundings.secret)
        visitor.set(request.user)
        stack.enter_context(interrupted_work())
        stack.enter_context(limited_work())
        return run(_answer(app, request))


async def _answer(app: FastAPI, request: PlainRequest) -> PlainResponse:
    """Pass a request to an application, and collect its answer."""
    status, headers, body = 500, list[tuple[bytes, bytes]](), bytearray()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status, headers = message["status"], [*message["headers"]]
        else:
            body.extend(message.get("body", b""))

    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
        "method": request.method,
        "path": request.path,
        "raw_path": request.raw_path,
        "query_string": request.query_string,
        "headers": request.headers,
        "state": {"user": request.user},
    }
    try:
        await app(scope, receive, send)
    except Exception:  # the framework has answered with 500 before
        traceback.print_exc()
    return PlainResponse(status, headers, bytes(body))


def load_metrics() -> None:
    """Load what the package itself needs for metrics, so that no process has to."""
    for name in set(metrics.names()) - set(metrics.plugin_names()):
        with suppress(MissingExtra):
            metrics.get(name)
    choose(["turn_count", "refusal", "expect"])


_application()
respond = answering(_respond)
