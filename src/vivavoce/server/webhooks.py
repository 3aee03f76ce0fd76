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
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from anyio import to_thread
from fastapi import FastAPI

from vivavoce.errors import NotFound, StoreError
from vivavoce.records.score import shorten
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import strict_json
from vivavoce.store.store import Store
from vivavoce.store.webhooks import FIRST_WAIT, Due, key_of
from vivavoce.wire.outward import post

PAUSE = 2.0
"""Seconds between two looks for what is due."""

STOP_SECONDS = 5.0
"""How long a server that stops waits for the delivery in progress; one that breaks off is sent again."""


class Sender:
    """A thread that sends what is due until it is stopped; several servers of a store share the work."""

    def __init__(
        self, store: Store, *, private: bool = False, first_wait: float = FIRST_WAIT, pause: float = PAUSE
    ) -> None:
        self._store, self._private, self._first_wait, self._pause = store, private, first_wait, pause
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send_all, name="vivavoce-webhooks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the delivery in progress, if it ends soon; the rest stays in the store."""
        self._stopped.set()
        self._thread.join(STOP_SECONDS)

    def _send_all(self) -> None:
        while not self._stopped.is_set():
            with suppress(StoreError):  # it cannot be read or written now, and what is due stays due
                for due in self._store.webhooks.take(time.time()):
                    if self._stopped.is_set():
                        break
                    self._send(due)
            self._stopped.wait(self._pause)

    def _send(self, due: Due) -> None:
        status, error = None, None
        try:
            status = post(due.url, *self._signed(due), private=self._private)
            if not 200 <= status < 300:
                error = f"answered {status}"
        except Exception as broken:  # whatever an address or a receiver causes is about this message alone
            error = shorten(f"{type(broken).__name__}: {broken}", 500)
        self._store.webhooks.end(due, time.time(), status=status, error=error, first_wait=self._first_wait)

    def _signed(self, due: Due) -> tuple[bytes, dict[str, str]]:
        body = due.body
        if body is None:
            body = body_of(self._store, due)
            self._store.webhooks.begin(due.id, body)
        sent = body.encode()
        return sent, signed_headers(due.id, int(time.time()), sent, due.secret)


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
    sender = Sender(app.state.store, private=app.state.policy.private_webhooks)
    try:
        yield
    finally:
        await to_thread.run_sync(sender.stop)
