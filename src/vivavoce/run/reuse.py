"""Conversations of an earlier run that need not be held again: neither the sample nor what holds them has changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from vivavoce.records.run import Attempt, AttemptKey, Run
from vivavoce.run.experiment import Experiment
from vivavoce.store.store import Store

HOLDING = ("driver", "target", "targets", "tester", "setup_script", "recording")
"""The parts of a suite that decide how a conversation goes, besides its sample."""


@dataclass(slots=True)
class Reuse:
    """The conversations of an earlier run."""

    store: Store
    run: Run
    _ahead: dict[AttemptKey, Attempt] | None = field(default=None, init=False)

    def fits(self, experiment: Experiment) -> bool:
        """Return whether an experiment holds its conversations as that run did."""
        description, then = experiment.description, self.run
        return (
            all(description.spec.get(part) == then.spec.get(part) for part in HOLDING)
            and description.code == then.options.get("code")
            and experiment.tester_fingerprint == then.options.get("tester", "")
        )

    def conversation(self, key: AttemptKey) -> Attempt | None:
        """Return a conversation that went through, None if there is none or the tester or its judge spoiled it."""
        stored = self.store.attempts(self.run.id, sample_id=key.sample_id)
        usable = (attempt for attempt in stored if attempt.failure is None and not _is_spoiled(attempt))
        return next((attempt for attempt in usable if attempt.key == key), None)

    def unchanged(self, key: AttemptKey, sample: str, position: int) -> Attempt | None:
        """Return a conversation about the same row that went through, at its place in the new plan, once.

        All are read at the first call, which takes a tenth of the time of a query for each.
        """
        if self._ahead is None:
            stored = self.store.attempts(self.run.id)
            self._ahead = {one.key: one for one in stored if one.failure is None}
        found = self._ahead.pop(key, None)
        return None if found is None or found.sample != sample else found.model_copy(update={"position": position})


def _is_spoiled(attempt: Attempt) -> bool:
    """Say whether a test has to be held again, because its tester or its judge is to blame for its result."""
    test = attempt.trajectory.test
    return test is not None and not test.target_passed and test.blame in ("tester", "judge")
