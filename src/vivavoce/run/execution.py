"""`Execution`: a run of a store, from the experiment that it builds to its result."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

from vivavoce.grading.scores import ErrorLimit
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import run as run_loop
from vivavoce.plugins import lazy
from vivavoce.records.details import TrialsSpent
from vivavoce.records.run import Event, Grading, Listener, Run
from vivavoce.run.corrected import correcting
from vivavoce.run.details import detailed
from vivavoce.run.experiment import Experiment, Scoring
from vivavoce.run.gc_tuning import tuned_gc
from vivavoce.run.options import RunOptions
from vivavoce.run.stopping import Stopping, intervals_by
from vivavoce.run.summary import RunResult, Summary, summarise
from vivavoce.run.tallies import Tallies, tally
from vivavoce.run.verdict import Rules
from vivavoce.run.workers import WorkerPool
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store


def notebook_listeners() -> list[Listener]:
    """Return what shows the progress of a run in a notebook, and nothing elsewhere."""
    if "IPython" not in sys.modules:
        return []
    return cast("list[Listener]", lazy("vivavoce.run.notebook_progress:notebook_progress")())


Build = Callable[[Budget, ReplyStore | None], Experiment]
"""Builds an experiment when it is to run: its models count against a budget, and their answers are kept in a store."""


@dataclass
class Execution(ABC):
    """Work on a run of a store, step by step; `stop` ends it early.

    `build` makes the experiment when the work begins, so that nothing is opened for work that waits.
    """

    build: Build
    store: Store
    options: RunOptions = field(default_factory=RunOptions)
    listeners: Sequence[Listener] = ()
    workers: WorkerPool | None = field(default=None, init=False)

    @cached_property
    def budget(self) -> Budget:
        """The calls that it may make, and what they may cost."""
        return Budget(max_calls=self.options.max_calls, max_cost=self.options.max_cost)

    def stop(self) -> int:
        """Begin nothing more and finish what is in flight; a second time, drop that too.

        Returns how many conversations are still in flight.
        """
        if self.workers is None:
            raise KeyboardInterrupt
        self.workers.stop()
        return self.workers.at_work

    async def execute(self) -> RunResult:
        """Do it, and return what came out.

        Raises:
            UsageError: something that the experiment is made of is wrong; nothing was run.
        """
        with tuned_gc():
            async with kept_answers(self.store, cache=self.options.cache or self.options.replay) as answers:
                experiment = self.build(self.budget, answers)
                try:
                    result = await self.work(experiment)
                finally:
                    await experiment.close()
                unusable = () if self.options.batch else _notes(answers)
                return replace(result, notes=(*experiment.notes, *result.notes, *unusable))

    async def check(self) -> None:
        """Make the experiment and close it again: what is wrong with it is found, and nothing is run.

        Raises:
            UsageError: something that the experiment is made of is wrong, such as a judge that nobody names.
        """
        async with kept_answers(self.store, cache=self.options.cache or self.options.replay) as answers:
            await self.build(self.budget, answers).close()

    @abstractmethod
    async def work(self, experiment: Experiment) -> RunResult:
        """Execute an experiment, which the caller closes."""

    async def tell(self, event: Event) -> None:
        """Give an event to every listener."""
        for listener in self.listeners:
            await listener.on(event)

    def summary(self, grading: Grading, scoring: Scoring) -> Summary:
        """Return the summary of a set of scores, read from the store."""
        attempts, failed = self.store.counts(grading.run_id)
        run, stopping = self.store.run(grading.run_id), scoring.stopping
        tallies = tally(self.store.scores(grading.id), intervals_by(stopping), run.sampling)
        found = summarise(
            tallies,
            attempts=attempts,
            failed=failed,
            rules=self._rules(run, scoring),
            pairs=scoring.agreement,
            graders=scoring.graders,
            errors=self.store.error_count(grading.id),
            warned=self.store.details.warned(grading) if scoring.requirements else None,
        )
        if stopping is not None:
            found = found.model_copy(update={"trials": self._spent(grading, tallies, stopping, attempts)})
        return detailed(found, tallies, self.store, grading, scoring.graders)

    def _rules(self, run: Run, scoring: Scoring) -> Rules:
        limit = self.options.max_errors
        return Rules(
            scoring.gate,
            scoring.requirements,
            None if limit is None else ErrorLimit(limit),
            correcting(self.store, run.id, scoring.fingerprints),
            part=run.partial_of is not None or bool(run.options.get("samples")),
        )

    def _spent(self, grading: Grading, tallies: Tallies, stopping: Stopping, attempts: int) -> TrialsSpent:
        planned = self.store.run(grading.run_id).options.get("planned")
        return stopping.spent({name: one.scores for (_, name), one in tallies.items()}, attempts, planned)


@asynccontextmanager
async def kept_answers(store: Store, *, cache: bool) -> AsyncGenerator[ReplyStore | None]:
    """Give the place where answers of judges are kept, None where they are not to be."""
    answers = store.replies() if cache else None
    try:
        yield answers
    finally:
        if answers is not None:
            await answers.close()


def ended(grading: Grading, summary: Summary, now: float) -> Grading:
    """Return a set of scores that is complete."""
    final = {"finished_at": now, "verdict": summary.verdict, "summary": summary.model_dump(mode="json")}
    return grading.model_copy(update=final)


def _notes(answers: ReplyStore | None) -> tuple[str, ...]:
    """Return how many cached answers could not be used, where there are any."""
    count = answers.rejected if answers is not None else 0
    if not count:
        return ()
    what = f"{count} cached answer{'s are' if count > 1 else ' is'} outside the schema and could not be used"
    return (f"{what}; run again without --replay, or export the questions again",)


_STOPPING = (signal.SIGINT, signal.SIGTERM)

DROP_SECONDS = 10.0
"""Seconds that work may take to end after a second signal; then the program ends, whatever it waits for."""

_INTERRUPTED = 130
"""The exit code of a program that Ctrl-C has ended."""


class _Signals:
    """Passes signals on to what stops the work; after the second the program ends soon, also where a store hangs."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        self._count = 0
        self._timer = threading.Timer(DROP_SECONDS, os._exit, (_INTERRUPTED,))
        self._timer.daemon = True

    def take(self) -> None:
        """Take a signal."""
        self._count += 1
        if self._count == 2:
            self._timer.start()
        self._stop()

    def end(self) -> None:
        """Let the program go on: the work has ended."""
        self._timer.cancel()


def execute(work: Execution, stop: Callable[[], object]) -> RunResult:
    """Do work and wait for it; a signal calls `stop`, which stops it. Afterwards signals do what they did before."""
    if threading.current_thread() is not threading.main_thread():  # no other thread is given signals
        return run_loop(work.execute())
    handlers = {number: signal.getsignal(number) for number in _STOPPING}
    signals = _Signals(stop)
    try:
        return run_loop(_interruptible(work, signals))
    finally:
        signals.end()
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)


async def _interruptible(work: Execution, signals: _Signals) -> RunResult:
    loop = asyncio.get_running_loop()
    for number in _STOPPING:
        with suppress(NotImplementedError):  # Windows has no such handlers; Ctrl-C ends the program there
            loop.add_signal_handler(number, signals.take)
    return await work.execute()
