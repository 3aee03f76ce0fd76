"""`AssertionRun`: the one run that the assertions of many tests add to, from several processes as well."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import count
from typing import Any

from vivavoce.errors import NotFound, StoreError
from vivavoce.records.run import GIVEN_IN_PYTHON, Grading, Outcome, Run
from vivavoce.run.execution import ended
from vivavoce.run.summary import summarise
from vivavoce.run.tallies import tally
from vivavoce.run.verdict import Rules
from vivavoce.store.runs.claim import Claimed
from vivavoce.store.store import Store
from vivavoce.suites.expectations import EXPECT

_RULES = Rules(requirements={EXPECT: "fail"})
"""What the assertions of tests must meet, whichever test they are in."""
NAME = "pytest"
"""What the run is called, and its suite."""


@dataclass
class AssertionRun:
    """A run of a store; whoever comes first begins it, and each conversation is committed when it is added."""

    store: Store
    run_id: str
    _positions: count[int] = field(default_factory=count)
    _claims: list[AbstractContextManager[None]] = field(default_factory=list[AbstractContextManager[None]])
    _name_counts: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])

    @property
    def grading_id(self) -> str:
        """The id of its scores."""
        return f"{self.run_id}-g1"

    @property
    def next_position(self) -> int:
        """The place of the next conversation among those of this process."""
        return next(self._positions)

    def name_for(self, test: str, trial: int) -> str:
        """Return the name of one more conversation of a trial: that of the test, from the second on numbered."""
        self._name_counts[test, trial] += 1
        number = self._name_counts[test, trial]
        return test if number == 1 else f"{test} ({number})"

    async def add(self, outcome: Outcome) -> None:
        """Store a conversation with its scores.

        Raises:
            StoreError: it cannot be written.
        """
        self._begin()
        self._claim()
        prints = {name: score.fingerprint for name, score in outcome.scores.items() if score.fingerprint}
        async with self.store.writer(self.run_id, self.grading_id, prints) as writer:
            await writer.put(outcome)

    def finish(self) -> Run | None:
        """Summarise it; return its record, None where nothing was added."""
        run = stored_run(self.store, self.run_id)
        if run is None:
            return None
        now, grading = time.time(), self.store.grading(run.id)
        attempts, failed = self.store.counts(run.id)
        errors = self.store.error_count(grading.id)
        scores = tally(self.store.scores(grading.id))
        summary = summarise(scores, attempts=attempts, failed=failed, rules=_RULES, errors=errors)
        run = run.model_copy(update={"status": "finished", "finished_at": now})
        self.store.update_grading(ended(grading, summary, now))
        self.store.update_run(run)
        self.release()
        return run

    def _claim(self) -> None:
        """Show that a process works on the run; several do, and it is enough that one of them says so."""
        if self._claims:
            return
        claim = self.store.claimed(self.run_id)
        with suppress(Claimed):
            claim.__enter__()
            self._claims.append(claim)

    def release(self) -> None:
        """End the claim of this process on the run."""
        while self._claims:
            self._claims.pop().__exit__(None, None, None)

    def _begin(self) -> None:
        if stored_run(self.store, self.run_id) is not None:
            return
        spec, now = _spec(), time.time()
        options: dict[str, Any] = {"suite": NAME, "dataset": GIVEN_IN_PYTHON, "code": None}
        run = Run(
            id=self.run_id,
            suite=NAME,
            spec=spec,
            base="",
            options=options,
            started_at=now,
            version=version("vivavoce"),
        )
        try:
            self.store.add_run(run, Grading(id=self.grading_id, run_id=run.id, spec=spec, created_at=now))
        except StoreError:
            if stored_run(self.store, self.run_id) is None:  # else another worker was a moment earlier
                raise


def stored_run(store: Store, run_id: str) -> Run | None:
    """Return the run of an id, None where the store has none."""
    try:
        run = store.run(run_id)
    except NotFound:
        return None
    return run if run.id == run_id else None


def _spec() -> dict[str, Any]:
    """Return the run as data, with the keys of a suite."""
    return {
        "name": NAME,
        "dataset": {"path": f"({GIVEN_IN_PYTHON})", "fields": {}},
        "driver": "replay",
        "graders": {},
        "agreement": [],
        "trials": 1,
        "max_concurrent": 1,
    }
