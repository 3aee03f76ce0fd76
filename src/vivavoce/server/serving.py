"""Serving the API and the pages of a store."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from threading import Thread

import uvicorn
from fastapi import FastAPI
from uvicorn.config import LOGGING_CONFIG

from vivavoce.plugins import lazy
from vivavoce.report.html.rendering import read_templates
from vivavoce.run.gc_tuning import RARELY
from vivavoce.server.app import create_app
from vivavoce.server.connection import AcceptFailures, server_config
from vivavoce.server.listening import Listening, listen
from vivavoce.server.monitoring import Meter, Monitoring, log
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.processes import prepare_processes
from vivavoce.server.state import server_of
from vivavoce.server.workers import Workers, killed_after_signal
from vivavoce.store.store import Store

PATIENCE = 5
"""Seconds that an answer in progress has when the server stops."""


class Server(uvicorn.Server):
    """Serves an application and stops its jobs first when it stops, so that event streams can end, too.

    With `logs`, the log of the process is set up already, and the HTTP library leaves it as it is.
    """

    def __init__(self, app: FastAPI, *, logs: bool = False) -> None:
        super().__init__(
            server_config(
                app,
                log_level=None if logs else "error",
                log_config=None if logs else LOGGING_CONFIG,
                access_log=False,
                timeout_graceful_shutdown=PATIENCE,
            )
        )
        self._jobs = server_of(app).jobs

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        asyncio.get_running_loop().set_exception_handler(AcceptFailures())
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop cleanly; finished work of jobs is stored, and the rest can be resumed."""
        log("info", "server.stopping")
        for server in self.servers:
            server.close()
        await asyncio.to_thread(self._jobs.close)
        await super().shutdown(sockets)


def serve(
    store: Store,
    host: str,
    port: int,
    token: str | None = None,
    *,
    public: str | None = None,
    policy: ServerPolicy | None = None,
    workers: int = 1,
    monitoring: Monitoring | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve a store until it is stopped; port 0 chooses a free one, and `started` is called with the address.

    `public` is the address of a proxy in front of the server. If other machines can reach it, requests need `token` or
    one of the tokens of the store; on a loopback address only if `token` is set. Several `workers` are processes of
    their own, each with a connection to the store; `store` is closed then. `monitoring` says
    whether requests and events are logged on standard error, and whether there are metrics.

    Raises:
        UsageError: other machines can reach it and there is no token, an address is invalid, or it cannot be used.
    """
    opened = listen(store, host, port, token, public=public)
    policy = policy or ServerPolicy()
    monitoring = replace(monitoring or Monitoring(), meter=Meter(workers))
    if monitoring.logs is not None:
        monitoring.logs.start()
    if workers == 1:
        if started is not None:
            started(opened.address)
        with killed_after_signal():
            answer(store, opened, policy, monitoring)
        return
    store.close()  # a worker that is forked must not share its connections
    if started is not None:
        started(opened.address)
    stopped_by = Workers(partial(_work, store.place.address, opened, policy, monitoring), workers).run()
    if stopped_by != signal.SIGINT:
        signal.raise_signal(stopped_by)


def answer(store: Store, opened: Listening, policy: ServerPolicy, monitoring: Monitoring) -> None:
    """Answer requests at a socket in this process until a signal stops it."""
    app = create_app(store, opened.access, policy, monitoring)
    log("info", "server.started", address=opened.address, store=str(store.place), pid=os.getpid())
    Thread(target=_load, daemon=True).start()
    with _rarely_collecting():
        asyncio.run(Server(app, logs=monitoring.logs is not None).serve(sockets=[opened.bound]))
    log("info", "server.stopped", pid=os.getpid())


def _load() -> None:
    """Load what the first pages, comparisons, and evaluations need, so that they do not wait for it."""
    prepare_processes()
    read_templates()
    with suppress(ImportError, MemoryError):  # with little memory, the first comparison says so
        lazy("scipy.special:bdtr")


def _work(
    address: str,
    opened: Listening,
    policy: ServerPolicy,
    monitoring: Monitoring,
    worker: int,
) -> None:
    if monitoring.logs is not None:
        monitoring.logs.start()
    monitoring.meter.row = worker
    with Store.open(address) as store:
        answer(store, opened, policy, monitoring)


@contextmanager
def _rarely_collecting() -> Generator[None]:
    """Exclude long-lived objects from garbage collection, and collect rarely, so that no request waits for it."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
