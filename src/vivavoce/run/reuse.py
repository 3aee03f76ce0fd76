"""Conversations of an earlier run that need not be held again: neither the sample nor what holds them has changed."""

from __future__ import annotations

from dataclasses import dataclass

from vivavoce.records.run import Attempt, AttemptKey, Run
from vivavoce.run.experiment import Experiment
from vivavoce.store.store import Store

HOLDING = ("driver", "target", "tester", "setup_script")
"""The parts of a suite that decide how a conversation goes, besides its sample."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """The conversations of an earlier run."""

    store: Store
    run: Run

    def fits(self, experiment: Experiment) -> bool:
        """Return whether an experiment holds its conversations as that run did."""
        description, then = experiment.description, self.run
        return (
            all(description.spec.get(part) == then.spec.get(part) for part in HOLDING)
            and description.code == then.options.get("code")
            and experiment.tester_fingerprint == then.options.get("tester", "")
        )

    def conversation(self, key: AttemptKey, sample: str | None = None) -> Attempt | None:
        """Return a conversation that went through, None if there is none; `sample` is the row that it must be of."""
        stored = self.store.attempts(self.run.id, sample_id=key.sample_id)
        found = next((one for one in stored if one.key == key and one.failure is None), None)
        return found if found is None or sample in (None, found.sample) else None
