"""The sender: what webhooks are to be told, signed as Standard Webhooks say, and sent until it arrives.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from anyio import to_thread
from fastapi import FastAPI

from vivavoce.errors import NotFound, StoreError
from vivavoce.records.redaction import without_keys
from vivavoce.records.score import shorten
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import strict_json
from vivavoce.server.monitoring import log
from vivavoce.server.state import server_of, store_of
from vivavoce.store.store import Store
from vivavoce.store.webhooks import FIRST_WAIT, Due, key_of
from vivavoce.wire.outward import post

PAUSE = 2.0
"""Seconds between two looks for what is due."""

STOP_SECONDS = 5.0
"""How long a server that stops waits for the delivery in progress; one that breaks off is sent again."""


MAX_RECEIVERS = 16
"""Webhooks that one server sends to at a time; others wait."""


class Sender:
    """Threads that send what is due until they are stopped; several servers of a store share the work."""

    def __init__(
        self, store: Store, *, private: bool = False, first_wait: float = FIRST_WAIT, pause: float = PAUSE
    ) -> None:
        self._store, self._private, self._first_wait, self._pause = store, private, first_wait, pause
        self._stopped = threading.Event()
        self._threads: dict[str, threading.Thread] = {}
        self._thread = threading.Thread(target=self._send_all, name="vivavoce-webhooks", daemon=True)
        self._thread.start()

    @property
    def is_at_work(self) -> bool:
        """Whether the thread that looks for what is due works, or was stopped."""
        return self._stopped.is_set() or self._thread.is_alive()

    def stop(self) -> None:
        """Stop after the deliveries in progress, if they end soon; the rest stays in the store."""
        self._stopped.set()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in (self._thread, *self._threads.values()):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _send_all(self) -> None:
        while not self._stopped.is_set():
            try:
                for webhook in self._store.webhooks.waiting():
                    self._begin(webhook)
            except StoreError:  # it cannot be read now, and what is due stays due
                pass
            except Exception as error:  # this thread serves all webhooks, and must not end before the server
                _log_failure(error)
            self._stopped.wait(self._pause)

    def _begin(self, webhook: str) -> None:
        """Begin to send to a webhook in a thread of its own, so that a slow receiver holds up nobody else."""
        self._threads = {name: thread for name, thread in self._threads.items() if thread.is_alive()}
        if webhook not in self._threads and len(self._threads) < MAX_RECEIVERS:
            thread = threading.Thread(target=self._send_to, args=(webhook,), name="vivavoce-webhook", daemon=True)
            self._threads[webhook] = thread
            thread.start()

    def _send_to(self, webhook: str) -> None:
        """Send what is due to a webhook, each message under a lease that begins right before."""
        try:
            while not self._stopped.is_set() and (batch := self._store.webhooks.take(limit=1, webhook=webhook)):
                for due in batch:
                    self._send(due)
        except StoreError:  # it cannot be read or written now, and what is due stays due
            return
        except Exception as error:  # whatever is stored of a webhook is about this webhook alone
            _log_failure(error)

    def _send(self, due: Due) -> None:
        status, error = None, None
        try:
            status = post(due.url, *self._signed(due), private=self._private)
            if not 200 <= status < 300:
                error = f"answered {status}"
        except Exception as broken:  # whatever an address or a receiver causes is about this message alone
            error = shorten(f"{type(broken).__name__}: {broken}", 500)
        self._store.webhooks.end(due, status=status, error=error, first_wait=self._first_wait)

    def _signed(self, due: Due) -> tuple[bytes, dict[str, str]]:
        body = due.body
        if body is None:
            body = body_of(self._store, due)
            self._store.webhooks.begin(due.id, body)
        sent = body.encode()
        return sent, signed_headers(due.id, int(time.time()), sent, due.secret)


def _log_failure(error: Exception) -> None:
    log("error", "webhooks.failed", detail=without_keys(f"{type(error).__name__}: {error}"))


def signed_headers(message: str, timestamp: int, body: bytes, secret: str) -> dict[str, str]:
    """Return the headers of a message, with its signature."""
    signature = hmac.new(key_of(secret), f"{message}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "content-type": "application/json",
        "user-agent": "vivavoce",
        "webhook-id": message,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


def body_of(store: Store, due: Due) -> str:
    """Return what is sent of an event: its type, when it happened, and the data."""
    at = datetime.fromtimestamp(due.created_at, UTC).isoformat()
    return strict_json({"type": due.event, "timestamp": at, "data": {**due.about, **_finding(store, due)}})


def _finding(store: Store, due: Due) -> dict[str, object]:
    """Return the verdict on a run that ended, and what it rests on; nothing of one that was deleted or not graded."""
    if due.event != "run.finished":
        return {}
    try:
        run = store.run(str(due.about["run"]))
        graded = GradedRun(store, run, store.grading(run.id))
    except NotFound:
        return {}
    return {"grading": graded.grading.id, "verdict": graded.grading.verdict, "finding": graded.finding}


@asynccontextmanager
async def sending(app: FastAPI) -> AsyncGenerator[None]:
    """Send in the background while an application is served."""
    sender = server_of(app).sender = Sender(store_of(app), private=server_of(app).policy.private_webhooks)
    try:
        yield
    finally:
        await to_thread.run_sync(sender.stop)
