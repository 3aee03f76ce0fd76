"""Making a row of a dataset of a stored conversation, and adding it where the policy lets a request do so."""

from __future__ import annotations

from fastapi import Request

from vivavoce.errors import UsageError
from vivavoce.records.run import AttemptKey
from vivavoce.report.capture import Captured, capture
from vivavoce.samples.dataset_file import Appended, append_row
from vivavoce.server.state import policy_of, store_of
from vivavoce.store.runs.naming import no_conversation


def captured_row(request: Request, run: str, key: AttemptKey, region: str | None = None) -> Captured:
    """Return the row of a conversation; an empty target is that of the only one.

    Raises:
        UsageError: there is no such conversation, or it cannot be captured.
    """
    store = store_of(request)
    stored_run = store.run(run)
    attempts = list(store.attempts(stored_run.id, sample_id=key.sample_id))
    for attempt in attempts:
        if attempt.key.trial == key.trial and key.target in ("", attempt.key.target):
            return capture(stored_run, attempt, region)
    raise no_conversation(stored_run.id, key.sample_id, key.target or None, key.trial, (one.key for one in attempts))


def add_row(request: Request, row: Captured, name: str) -> Appended:
    """Add a row to a file of the served folder.

    Raises:
        UsageError: the policy forbids it, or the file cannot be used.
    """
    policy = policy_of(request)
    path = policy.dataset(name)
    try:
        return append_row(path, row.row)
    except UsageError as error:
        raise UsageError(*(policy.shown(str(problem)) for problem in error.problems)) from error
