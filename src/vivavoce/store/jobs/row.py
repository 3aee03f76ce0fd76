"""`JobRow`: a job as the store has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vivavoce.store.database.database import AnyRow, values_of

OPEN = ("waiting", "running")
"""The states of jobs that are not over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job; `body` and `key` are hashes, `request` is JSON and None once nobody is to continue the job.

    `starts` counts the servers that began to run it and have not ended it in good order: while it runs that includes
    the present one, and otherwise only those that crashed. `calls` and `cost` are what it has used of its limits.
    `cancels` counts how often somebody cancelled it. `owner` works on it until `lease_until`, under the number `fence`,
    and on the run `holds` at this moment. Times are seconds since the epoch.
    """

    id: str
    folder: str
    kind: str
    status: str = "waiting"
    created_at: float
    suite: str | None = None
    run: str | None = None
    grading: str | None = None
    planned: int | None = None
    done: int = 0
    errors: int = 0
    verdict: str | None = None
    detail: str | None = None
    request: str | None = None
    key: str | None = None
    body: str = ""
    new_run: str | None = None
    starts: int = 0
    calls: int = 0
    cost: float = 0.0
    cancels: int = 0
    owner: str | None = None
    lease_until: float = 0.0
    fence: int = 0
    holds: str | None = None


def job_row_of(row: AnyRow) -> JobRow:
    """Return a job from its row."""
    values: dict[str, Any] = values_of(row)
    return JobRow(**values)
