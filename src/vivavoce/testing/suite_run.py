"""One run of a suite for all the tests that it has: whoever comes first holds it, and the others wait and read it."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from vivavoce.pacing.limits import Budget
from vivavoce.records.run import Outcome, Run
from vivavoce.report.graded_run import GradedRun
from vivavoce.run.attempt import RECORDED
from vivavoce.run.execution import execute
from vivavoce.run.experiment import Experiment
from vivavoce.run.experiment_run import ExperimentRun, new_id
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import Summary
from vivavoce.run.workers import INTERRUPTED
from vivavoce.store.replies import ReplyStore
from vivavoce.store.runs.claim import Claimed
from vivavoce.store.store import Store
from vivavoce.suites.experiment import build_experiment
from vivavoce.suites.load import Suite
from vivavoce.testing.assertion_run import stored_run
from vivavoce.testing.session import SharedSession

LOOK = 0.1
"""Seconds between two looks whether another worker is done."""


@dataclass(frozen=True, slots=True)
class SuiteSelection:
    """What of a suite was chosen: the ids of samples, None for all of them, and the names of targets."""

    samples: tuple[str, ...] | None
    targets: frozenset[str]


@dataclass(frozen=True)
class HeldRun:
    """A run that came to its end, with its conversations by sample and target."""

    graded: GradedRun

    @property
    def run(self) -> Run:
        """The record of the run."""
        return self.graded.run

    @cached_property
    def summary(self) -> Summary:
        """Its summary."""
        return self.graded.summary()

    @cached_property
    def only_warn(self) -> frozenset[str]:
        """The graders whose misses only warn."""
        return frozenset(grader.name for grader in self.summary.graders if grader.severity == "warn")

    @property
    def nothing_scored(self) -> bool:
        """Whether no conversation of the run has a score."""
        return not any(grader.scored for grader in self.summary.graders)

    @cached_property
    def _outcomes(self) -> Mapping[tuple[str, str], Sequence[Outcome]]:
        outcomes_by_sample: dict[tuple[str, str], list[Outcome]] = {}
        for outcome in self.graded.outcomes():
            outcomes_by_sample.setdefault((outcome.attempt.key.sample_id, outcome.attempt.key.target), []).append(
                outcome
            )
        return outcomes_by_sample

    def of(self, sample: str, target: str) -> Sequence[Outcome]:
        """Return the conversations of a sample with a target, one for each trial."""
        return self._outcomes.get((sample, target), ())


def run_once(session: SharedSession, suite: Suite, selection: SuiteSelection) -> HeldRun:
    """Return the run of what was chosen of a suite; it is held here unless another worker has held it.

    A run that another worker left unfinished, because its process ended, is continued.

    Raises:
        UsageError: the suite, its files or its dataset are wrong; nothing was run.
        KeyboardInterrupt: it was interrupted; what is done is kept.
    """
    store = session.store
    run_id = new_id(suite.spec.name, _id_end(session, suite.base / suite.source))
    with _turn(store, f"{run_id}-pytest"):
        stored = stored_run(store, run_id)
        if stored is None or stored.finished_at is None:
            execution = ExperimentRun(
                _Build(session, suite, selection).build,
                store,
                _options(session, selection),
                resumed=stored,
                run_id=run_id,
            )
            result = execute(execution, lambda: _drop(execution))
            if result.stopped_by == INTERRUPTED:
                raise KeyboardInterrupt
            stored = result.run
    return HeldRun(GradedRun(store, stored, store.grading(run_id)))


@dataclass(frozen=True, slots=True)
class _Build:
    """Builds the experiment: that of the suite, with the targets that were chosen, and the judges of the session."""

    session: SharedSession
    suite: Suite
    selection: SuiteSelection

    def build(self, budget: Budget, answers: ReplyStore | None) -> Experiment:
        """Return the experiment."""
        replies = self.session.cassette_replies or answers
        built = build_experiment(self.suite, _options(self.session, self.selection), budget, replies)
        selected_targets = tuple(target for target in built.targets if target.name in self.selection.targets)
        return replace(built, targets=selected_targets) if built.targets else built


def _options(session: SharedSession, selection: SuiteSelection) -> RunOptions:
    samples = None if selection.samples is None else list(selection.samples)
    return RunOptions(samples=samples, replay=session.replays)


def runs_of(session: SharedSession, suites: Collection[Path]) -> list[str]:
    """Return the ids of the runs that were begun of suites, whether or not they came to their end."""
    ends = {_id_end(session, path) for path in suites}
    return [run.id for run in session.store.runs() if run.id.rpartition("-")[2] in ends]


def _id_end(session: SharedSession, path: Path) -> str:
    """Return the end of the id that the run of a suite has in every worker."""
    text = f"{session.token} {os.path.abspath(path)}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=3).hexdigest()


def _drop(work: ExperimentRun) -> None:
    """Stop at once: pytest ends when it is interrupted, and whoever continues the run holds what is dropped again."""
    work.stop()
    work.stop()


@contextmanager
def _turn(store: Store, name: str) -> Generator[None]:
    """Wait until no other worker is at it; the claim of a worker ends with its process, so nobody waits forever."""
    while True:
        claim = store.claimed(name)
        try:
            claim.__enter__()
            break
        except Claimed:
            time.sleep(LOOK)
    try:
        yield
    finally:
        claim.__exit__(None, None, None)


def target_names(suite: Suite, names: Sequence[str]) -> list[str]:
    """Return what the targets of a suite are called in its results."""
    return [RECORDED] if suite.spec.driver == "replay" else list(names)
