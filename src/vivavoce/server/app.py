"""`create_app`: the server as an ASGI application, around one store."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.gzip import GZipMiddleware

from vivavoce.errors import StoreError
from vivavoce.extensions import answers
from vivavoce.plugins import lazy
from vivavoce.report.html.rendering import STATIC, page_folders
from vivavoce.server.access import Access, AccessMiddleware, HeadMiddleware
from vivavoce.server.api import (
    about,
    audit,
    captures,
    deletion,
    evaluations,
    exchange,
    exports,
    jobs,
    remarks,
    runs,
    search,
)
from vivavoce.server.authenticator import Authenticator
from vivavoce.server.fair_share import FairShare
from vivavoce.server.indexing import reading_ahead
from vivavoce.server.jobs import Jobs
from vivavoce.server.live_summary import LiveSummary
from vivavoce.server.monitoring import Monitoring, ProbeMiddleware, RequestLogMiddleware
from vivavoce.server.monitoring import router as metrics_router
from vivavoce.server.pages import capture as capture_page
from vivavoce.server.pages import (
    content,
    conversation,
    first_visit,
    run,
    run_list,
    sign_in,
    starting,
)
from vivavoce.server.pages import deletion as run_deletion
from vivavoce.server.pages import exchange as exchange_page
from vivavoce.server.pages import jobs as job_pages
from vivavoce.server.pages import remarks as remark_form
from vivavoce.server.pages import search as search_pages
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.process_route import RequestProcesses
from vivavoce.server.refusals import handle_errors
from vivavoce.server.sharing_limits import sharing_limits
from vivavoce.server.state import ServerState, server_of
from vivavoce.server.together import SHARED_API, SHARED_PAGES
from vivavoce.server.traffic import TrafficMiddleware
from vivavoce.server.webhooks import sending
from vivavoce.store.store import Store

THREADS = 8
"""Requests that are answered at a time: Python works on one after the other, and more threads only take the processor
and the connections of the store from each other."""

THREADS_FOR_USER = 4
"""The same of one user, so that one user leaves threads to others."""

WRITES = 4
"""Requests that write at a time: while something else locks the store, they wait in threads that readers need."""

WRITES_FOR_USER = 2
"""The same of one user."""

EVALUATIONS = 32
"""Groups of clusters that judges name at a time; others wait."""

EXPORTS = 8
"""Exports that are created or sent at a time; others wait."""

EXPORTS_FOR_USER = 4
"""The same of one user, so that one user leaves places to others."""

STREAMS = 400
"""Streams of events of jobs at a time; one more is refused."""

STREAMS_FOR_USER = 50
"""The same of one user, so that one user leaves places to others."""

REPLAYS = 4
"""Streams that send past events of the store at a time; others wait."""

REPLAYS_FOR_USER = 2
"""The same of one user."""

API = (
    *SHARED_API,
    *(about, exports, captures, remarks, deletion),
    *(audit, search, evaluations, exchange, jobs),
)
LAST_API = (runs,)
"""After the routes of features, because `/runs/{run}/samples/{sample:path}/{trial}` would take theirs."""
PAGES = (
    *SHARED_PAGES,
    *(run_list, run, remark_form, run_deletion, conversation, exchange_page, content),
    search_pages,
    *(first_visit, starting, job_pages, capture_page, sign_in),  # /jobs/new is not a job
)


@asynccontextmanager
async def _serving(app: FastAPI) -> AsyncGenerator[None]:
    """Continue the jobs of earlier servers, and index and send webhooks while the application is served."""
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    await to_thread.run_sync(server_of(app).jobs.go_on)
    async with reading_ahead(app), sharing_limits(app), sending(app):
        yield


def _secret(store: Store) -> bytes:
    """Return what signs forms: the same at every server of the store, so that any may answer the next request."""
    try:
        return store.secrets.value("forms")
    except StoreError:  # it can only be read, so forms would change nothing
        return secrets.token_bytes(32)


def routers() -> list[APIRouter]:
    """Return the routers of the API, of features, and of pages, in the order in which a path is looked for."""
    features = [lazy(reference) for reference in answers("register_routes")]
    return [*(module.router for module in API), *features, *(module.router for module in (*LAST_API, *PAGES))]


def _static_files() -> StaticFiles:
    """Return the files of pages: the core's own, then those of plugins."""
    files = StaticFiles(directory=STATIC)
    files.all_directories = [*files.all_directories, *(str(folder / "static") for folder in page_folders())]
    return files


def create_app(
    store: Store, access: Access, policy: ServerPolicy | None = None, monitoring: Monitoring | None = None
) -> FastAPI:
    """Return the application; it reads `store`, and the caller closes it.

    `policy` says what requests may run; by default, the suites of the current folder. `monitoring` says whether there
    are metrics for Prometheus; by default there are none.

    The API is below `/api/v1`, described at `/openapi.json`; the pages are at `/`.
    """
    app = FastAPI(
        title="vivavoce",
        version=version("vivavoce"),
        lifespan=_serving,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    monitoring = monitoring or Monitoring()
    policy, secret = policy or ServerPolicy(), _secret(store)
    state = app.state.shared = ServerState(
        store=store,
        policy=policy,
        secret=secret,
        access=access,
        authenticator=Authenticator(store, access.digest, proxied=access.proxied, secure=access.secure),
        monitoring=monitoring,
        jobs=Jobs(store, policy),
        live_summary=LiveSummary(),
        processes=RequestProcesses(str(store.place.address), policy, secret),
        turns=FairShare(THREADS, THREADS_FOR_USER),
        writing_turns=FairShare(WRITES, WRITES_FOR_USER),
        exports=FairShare(EXPORTS, EXPORTS_FOR_USER),
        export_threads=CapacityLimiter(EXPORTS),
        streams=FairShare(STREAMS, STREAMS_FOR_USER),
        replays=FairShare(REPLAYS, REPLAYS_FOR_USER),
        evaluations=CapacityLimiter(EVALUATIONS),
    )
    app.add_middleware(TrafficMiddleware)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    app.add_middleware(AccessMiddleware, access=access, authenticator=state.authenticator)
    app.add_middleware(ProbeMiddleware, store=store, monitoring=monitoring)
    app.add_middleware(HeadMiddleware)
    app.add_middleware(RequestLogMiddleware, meter=monitoring.meter)
    handle_errors(app)
    # as they are: included, a router's routes would all be built again at the first request
    app.router.routes.extend(route for router in routers() for route in router.routes)
    if monitoring.has_metrics:
        app.router.routes.extend(metrics_router.routes)
    app.mount("/static", _static_files(), name="static")
    return app
