"""What the tests share that ask every reader of one run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vivavoce.report.graded_run import GradedRun
from vivavoce.run.summary import RunResult
from vivavoce.store.store import Store


@pytest.fixture(scope="module")
def graded(run: RunResult) -> Iterator[GradedRun]:
    """The run of a module, as reports read it."""
    with Store.open(run.place, create=False) as store:
        yield GradedRun(store, run.run, run.grading)
