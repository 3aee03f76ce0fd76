"""What an operator sees of requests: an id and a log line for each, counters, and addresses for probes."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass, field

from anyio import CapacityLimiter, move_on_after, to_thread
from fastapi import APIRouter, Request, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vivavoce.errors import StoreError
from vivavoce.server.event_log import LogLevel, LogOptions, log
from vivavoce.server.metering import Meter, metrics_text
from vivavoce.store.store import Store

READY_SECONDS = 5.0
"""Seconds in which the store has to answer for a server to be ready."""
READY_AGE = 1.0
"""Seconds for which an answer about the store is used again."""

_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
_QUIET = ("/livez", "/readyz", "/metrics", "/static/")
"""Addresses that programs ask all the time: their requests are logged at level `debug`."""
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Monitoring:
    """What a server offers to monitoring: `/metrics` or not, with a token or `is_open` to all, and a log or none."""

    has_metrics: bool = False
    is_open: bool = False
    logs: LogOptions | None = None
    meter: Meter = field(default_factory=Meter)


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """Return the counters for Prometheus."""
    return _metrics_answer(request.app.state.monitoring, request.app.state.store)


class RequestLogMiddleware:
    """Gives each request an id, logs it when it is answered, and counts it."""

    def __init__(self, app: ASGIApp, meter: Meter) -> None:
        self.app, self._meter = app, meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = _request_id(Headers(scope=scope))
        scope.setdefault("state", {})["request_id"] = request_id
        status, size = 0, 0

        async def count_and_send(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request_id
            elif message["type"] == "http.response.body":
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, count_and_send)
        except Exception:
            status = status or 500
            raise
        finally:
            seconds = time.perf_counter() - began
            self._meter.count(scope["method"], status, seconds)
            self._log(scope, request_id, status, size, seconds)

    def _log(self, scope: Scope, request_id: str, status: int, size: int, seconds: float) -> None:
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        client, user = scope.get("client"), scope.get("state", {}).get("user")
        log(
            _level(scope["path"], status),
            "request",
            method=scope["method"],
            path=path.partition(b"?")[0].decode("ascii", "backslashreplace"),
            status=status,
            ms=round(seconds * 1000, 1),
            bytes=size,
            client=client[0] if client else None,
            user=getattr(user, "name", None) or None,
            id=request_id,
        )


class ProbeMiddleware:
    """Answers probes before the host name and the token are checked: `/livez`, `/readyz`, and open metrics."""

    def __init__(self, app: ASGIApp, store: Store, monitoring: Monitoring) -> None:
        self.app, self._store, self._monitoring = app, store, monitoring
        self._places = CapacityLimiter(1)
        self._is_ready: bool = False
        self._checked: float = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a probe, or pass the request on."""
        app: ASGIApp = self.app
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            match scope["path"]:
                case "/livez":
                    app = PlainTextResponse("ok\n")
                case "/readyz":
                    ready = await self._ready()
                    app = PlainTextResponse("ok\n") if ready else PlainTextResponse("the store is unavailable\n", 503)
                case "/metrics" if self._monitoring.has_metrics and self._monitoring.is_open:
                    app = await to_thread.run_sync(_metrics_answer, self._monitoring, self._store)
                case _:
                    pass
        await app(scope, receive, send)

    async def _ready(self) -> bool:
        """Return whether the store can be read; many probes at once ask it once."""
        if time.monotonic() - self._checked > READY_AGE:
            is_ready = False
            with move_on_after(READY_SECONDS):
                is_ready = await to_thread.run_sync(self._can_read, abandon_on_cancel=True, limiter=self._places)
            if is_ready is not self._is_ready and self._checked > 0:
                log("info" if is_ready else "error", "store.available" if is_ready else "store.unavailable")
            self._is_ready, self._checked = is_ready, time.monotonic()
        return self._is_ready

    def _can_read(self) -> bool:
        try:
            self._store.runs(limit=1)
        except StoreError:
            return False
        return True


def _metrics_answer(monitoring: Monitoring, store: Store) -> Response:
    return PlainTextResponse(metrics_text(monitoring.meter, store), media_type=_PROMETHEUS)


def _request_id(headers: Headers) -> str:
    """Return the id that a proxy gave a request, or a new one."""
    named = headers.get("x-request-id", "")
    return named if _ID.fullmatch(named) else secrets.token_hex(8)


def _level(path: str, status: int) -> LogLevel:
    if status >= 500:
        return "error"
    if status >= 400:
        return "warning"
    return "debug" if path.startswith(_QUIET) else "info"
