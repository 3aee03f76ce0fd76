"""Counts of requests for Prometheus; all workers of a server share the memory, and each writes its own row."""

from __future__ import annotations

import multiprocessing
import sys
from bisect import bisect_left
from collections.abc import Sequence
from ctypes import c_double
from importlib.metadata import version
from typing import Any

from sqlalchemy import func, select

from vivavoce.errors import StoreError
from vivavoce.store.database.database import now_in
from vivavoce.store.database.schema import jobs
from vivavoce.store.store import Store

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
