"""The run of a period that is over: nothing more is added to it, so it is finished, also where it stopped early."""

from __future__ import annotations

import time

from vivavoce.report.graded_run import GradedRun
from vivavoce.run.execution import ended
from vivavoce.store.store import Store


def finish(store: Store, run_id: str) -> None:
    """Say of a run that it is finished; why it stopped early, if it did, stays in the summary of its scores."""
    run, grading = next(iter(store.series.graded_runs([run_id])), (None, None))
    if run is None or run.status == "finished":
        return
    now = time.time()
    if grading is not None and grading.summary is None:
        store.update_grading(ended(grading, GradedRun(store, run, grading).summary(), now))
    store.update_run(run.model_copy(update={"status": "finished", "finished_at": run.finished_at or now}))
