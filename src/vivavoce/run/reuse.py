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
        """Return a conversation that went through, None if there is none."""
        stored = self.store.attempts(self.run.id, sample_id=key.sample_id)
        return next((one for one in stored if one.key == key and one.failure is None), None)

    def unchanged(self, key: AttemptKey, sample: str, position: int) -> Attempt | None:
        """Return a conversation about the same row that went through, at its place in the new plan, once.

        All are read at the first call, which takes a tenth of the time of a query for each.
        """
        if self._ahead is None:
            stored = self.store.attempts(self.run.id)
            self._ahead = {one.key: one for one in stored if one.failure is None}
        found = self._ahead.pop(key, None)
        return None if found is None or found.sample != sample else found.model_copy(update={"position": position})
