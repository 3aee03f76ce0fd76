"""What a run would use and how long it would take, by the latest complete run of its suite."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.errors import UsageError
from vivavoce.records.details import by_role
from vivavoce.report.details import latency_lines
from vivavoce.run.summary import Summary
from vivavoce.store.store import Store


def expected_lines(place: str, suite: str, conversations: int) -> Iterator[str]:
    """Yield what a run would use, and how long replies would take, by the latest complete run of its suite.

    Nothing where there is no such run, or no store.
    """
    try:
        store = Store.open(place, create=False)
    except UsageError:
        return  # there is no store yet, and so no run before
    with store:
        before = next((run for run in store.runs() if run.suite == suite and run.status == "finished"), None)
        grading = None if before is None else store.grading(before.id)
    if before is None or grading is None or grading.summary is None:
        return
    summary = Summary.model_validate(grading.summary)
    times = conversations / max(summary.attempts, 1)
    if used := by_role({role: one.times(times) for role, one in summary.usage.items()}):
        yield f"as run {before.id}: about {used}"
    yield from (f"as run {before.id}: {line}" for line in latency_lines(summary))
