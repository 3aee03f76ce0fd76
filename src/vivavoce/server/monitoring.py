"""What an operator sees: a log line for each request and event, counters for Prometheus, and addresses for probes."""

from __future__ import annotations

import json
import logging
import multiprocessing
import re
import secrets
import sys
import time
from bisect import bisect_left
from collections.abc import Sequence
from ctypes import c_double
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Literal

from anyio import CapacityLimiter, move_on_after, to_thread
from fastapi import APIRouter, Request, Response
from sqlalchemy import func, select
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vivavoce.errors import StoreError
from vivavoce.records.redaction import without_keys
from vivavoce.safe_text import safe
from vivavoce.server.state import ServerState, server_of, store_of
from vivavoce.store.database.database import now_in
from vivavoce.store.database.schema import jobs
from vivavoce.store.store import Store

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
Field = str | int | float | bool | None

LOGGER = logging.getLogger("vivavoce.server")
LOGGER.addHandler(logging.NullHandler())
LOGGER.propagate = False

_LIBRARY_EVENTS = {"uvicorn": "http", "sqlalchemy": "database", "psycopg": "database"}
"""The events under which what libraries log is shown."""
_FIELDS = "vivavoce_fields"
_PLAIN = re.compile(r"[\w./:+@%-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How a server logs."""

    format: LogFormat = "text"
    level: LogLevel = "info"

    def start(self) -> None:
        """Log to standard error from now on, in this process; also what the libraries for HTTP and databases say."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_JsonLines() if self.format == "json" else _TextLines())
        LOGGER.handlers[:] = [handler]
        LOGGER.setLevel(self.level.upper())
        for name in _LIBRARY_EVENTS:
            library = logging.getLogger(name)
            library.handlers[:] = [handler]
            library.propagate = False
            library.setLevel(max(LOGGER.level, logging.WARNING))


def log(level: LogLevel, event: str, **fields: Field) -> None:
    """Log an event with its fields."""
    number = logging.getLevelNamesMapping()[level.upper()]
    if LOGGER.isEnabledFor(number):
        LOGGER.log(number, event, extra={_FIELDS: fields})


def _entry(record: logging.LogRecord) -> dict[str, Field]:
    """Return a record as named values; an exception is one of them."""
    fields: dict[str, Field] = dict(getattr(record, _FIELDS, {}))
    text = record.getMessage()
    library = _LIBRARY_EVENTS.get(record.name.partition(".")[0])
    entry: dict[str, Field] = {"event": text} if library is None else {"event": library, "detail": text}
    entry |= fields
    if record.exc_info:
        entry["exception"] = logging.Formatter().formatException(record.exc_info)
    return {name: without_keys(value) if isinstance(value, str) else value for name, value in entry.items()}


class _JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        head = {"at": f"{at}.{record.msecs:03.0f}Z", "level": record.levelname.lower()}
        return json.dumps({**head, **_entry(record)})


class _TextLines(logging.Formatter):
    """Lines for people: time, level, event, and `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        entry = _entry(record)
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        event, exception = entry.pop("event"), entry.pop("exception", None)
        values = [f"{name}={_text(value)}" for name, value in entry.items() if value is not None]
        line = "  ".join((at, record.levelname.lower(), str(event), *values))
        return safe(line if exception is None else f"{line}\n{exception}")


def _text(value: Field) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "other")
STATUSES = (
    *(200, 201, 202, 204, 206, 302, 303, 304, 401, 403, 404, 405, 408, 409, 411, 413, 415, 421, 422, 429, 500, 503),
    0,
)
"""The statuses of answers; 0 stands for any other."""
BUCKET_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, float("inf"))

_ANSWERS = len(METHODS) * len(STATUSES)
_CELLS = _ANSWERS + len(BUCKET_SECONDS) + 1


class Meter:
    """The counters of a server with `workers` processes; `row` is that of this worker."""

    def __init__(self, workers: int = 1) -> None:
        self._workers = workers
        self._cells: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn").RawArray(
            c_double, workers * _CELLS
        )
        self.row = 0

    def count(self, method: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        kind = METHODS.index(method) if method in METHODS else len(METHODS) - 1
        answer = STATUSES.index(status) if status in STATUSES else len(STATUSES) - 1
        self._add(kind * len(STATUSES) + answer, 1.0)
        self._add(_ANSWERS + bisect_left(BUCKET_SECONDS, seconds), 1.0)
        self._add(_CELLS - 1, seconds)

    def lines(self) -> list[str]:
        """Return the counters of all workers in the text format of Prometheus.

        Source: https://prometheus.io/docs/instrumenting/exposition_formats/
        """
        sums = [sum(self._cells[row * _CELLS + cell] for row in range(self._workers)) for cell in range(_CELLS)]
        lines = ["# HELP viva_requests_total Answered requests.", "# TYPE viva_requests_total counter"]
        for cell, number in enumerate(sums[:_ANSWERS]):
            if number:
                kind, answer = divmod(cell, len(STATUSES))
                labels = f'method="{METHODS[kind]}",status="{STATUSES[answer] or "other"}"'
                lines.append(f"viva_requests_total{{{labels}}} {number:.0f}")
        lines += ["# HELP viva_request_seconds Time to the end of an answer.", "# TYPE viva_request_seconds histogram"]
        total = 0.0
        for bound, number in zip(BUCKET_SECONDS, sums[_ANSWERS:], strict=False):
            total += number
            name = "+Inf" if bound == float("inf") else f"{bound:g}"
            lines.append(f'viva_request_seconds_bucket{{le="{name}"}} {total:.0f}')
        return [*lines, f"viva_request_seconds_sum {sums[-1]:.6f}", f"viva_request_seconds_count {total:.0f}"]

    def _add(self, cell: int, number: float) -> None:
        self._cells[self.row * _CELLS + cell] += number


def metrics_text(meter: Meter, store: Store) -> str:
    """Return the counters of a server, and the jobs of its store, in the text format of Prometheus."""
    lines = [
        "# HELP viva_info The version of the server.",
        "# TYPE viva_info gauge",
        f'viva_info{{version="{version("vivavoce")}"}} 1',
        *meter.lines(),
    ]
    try:
        lines += [*_job_lines(store), *_gauge("viva_store_up", "Whether the store can be read.", 1)]
    except StoreError:
        lines += _gauge("viva_store_up", "Whether the store can be read.", 0)
    return "\n".join(lines) + "\n"


def _job_lines(store: Store) -> Sequence[str]:
    j = jobs.c
    with store.database.connected() as connection:
        rows = connection.execute(select(j.status, func.count().label("number")).group_by(j.status))
        numbers: dict[str, int] = {row.status: row.number for row in rows}
        oldest = connection.execute(select(func.min(j.created_at)).where(j.status == "waiting")).scalar()
        age = 0.0 if oldest is None else max(0.0, connection.execute(select(now_in(connection))).scalar_one() - oldest)
        calls, cost = connection.execute(select(func.sum(j.calls), func.sum(j.cost))).one()
    lines = ["# HELP viva_jobs Jobs of the store by status.", "# TYPE viva_jobs gauge"]
    statuses = ("waiting", "running", "finished", "interrupted", "failed")
    lines += [f'viva_jobs{{status="{status}"}} {numbers.get(status, 0)}' for status in statuses]
    return [
        *lines,
        *_gauge("viva_oldest_waiting_job_seconds", "Age of the oldest waiting job.", age),
        *_gauge("viva_job_calls", "Calls that the jobs of the store have used.", calls or 0),
        *_gauge("viva_job_cost_dollars", "US dollars that the jobs of the store have used.", cost or 0),
    ]


def _gauge(name: str, text: str, value: float) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} gauge", f"{name} {value:g}"]


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
    return _metrics_answer(server_of(request).monitoring, store_of(request))


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
                    is_ready = await self._ready()
                    problem = _dead_thread(server_of(scope["app"])) if is_ready else "the store is unavailable"
                    app = PlainTextResponse(f"{problem}\n", 503) if problem else PlainTextResponse("ok\n")
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


def _dead_thread(state: ServerState) -> str | None:
    """Return what does not work any more although the server does."""
    if not state.jobs.is_at_work:
        return "the thread for jobs has ended; restart the server"
    if state.sender is not None and not state.sender.is_at_work:
        return "the thread for webhooks has ended; restart the server"
    return None


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
