"""Run a suite: read it, check it, make what it names, hold the conversations, keep and sum up what came out."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.pacing.budget import Budget
from vivavoce.pacing.waiting import wait_for
from vivavoce.plugins import load_object
from vivavoce.records.events import AttemptEnded, AttemptStarted, Event, Listener, RunEnded, RunStarted, TurnEnded
from vivavoce.records.run import AttemptKey, Grading, Run, Status
from vivavoce.records.trajectory import Turn
from vivavoce.run.attempt import Grades, Task, hold
from vivavoce.run.check import prepare
from vivavoce.run.crew import INTERRUPTED, Crew
from vivavoce.run.drivers import ScriptedDriver
from vivavoce.run.lane import open_lane
from vivavoce.run.plan import RECORDED, Plan, RunOptions, hash_file, plan_of
from vivavoce.run.summary import Summary, summarise, tally
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.store.writer import OutcomeWriter
from vivavoce.suites.build import Grading as Graded
from vivavoce.suites.build import needs_state
from vivavoce.suites.document import Document
from vivavoce.suites.hooks import check_setup, run_setup
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite, load_suite
from vivavoce.suites.spec import FunctionTargetSpec, LettaTargetSpec, SuiteSpec
from vivavoce.suites.targets import build_targets
from vivavoce.targets.target import Target


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run left behind: its record, its set of scores, and the summary."""

    run: Run
    grading: Grading
    summary: Summary
    notes: tuple[str, ...] = ()
    stopped_by: str | None = None

    @property
    def shown(self) -> Summary:
        """The summary with the verdict of the whole: a run that was stopped early has decided nothing."""
        return self.summary.model_copy(update={"verdict": self.grading.verdict})

    @property
    def exit_code(self) -> int:
        """0 pass, 1 a gate failed, 3 inconclusive, 130 interrupted.

        Without a gate nothing can fail, but a grader that could score nothing leaves the run inconclusive.
        """
        if self.stopped_by == INTERRUPTED:
            return 130
        if self.stopped_by is not None or not self.summary.graders:
            return 3
        if any(grader.errors and not grader.scored for grader in self.summary.graders):
            return 3
        return {None: 0, "pass": 0, "fail": 1, "inconclusive": 3}[self.summary.verdict]


@dataclass(slots=True)
class SuiteRun:
    """One execution of a suite, step by step; `stop` and `cancel` end it early."""

    suite: Suite
    options: RunOptions
    store: Store
    listeners: Sequence[Listener] = ()
    resumed: Run | None = None
    crew: Crew | None = None

    def stop(self) -> None:
        """Begin nothing more and finish what is in flight; a second time, stop that too."""
        if self.crew is None:
            raise KeyboardInterrupt
        self.crew.stop()

    async def execute(self) -> RunResult:
        """Run it, and return what came out.

        Raises:
            UsageError: the suite, its files or its dataset are wrong; nothing was run.
        """
        plan = plan_of(self.suite, self.options)
        budget = Budget(max_calls=self.options.max_calls)
        opener = JudgeOpener(budget)
        graded, dataset = prepare(self.suite, plan, opener)
        planned = (
            plan.check_ids() if plan.ids is not None else min(dataset.samples, plan.max_samples or dataset.samples)
        )
        targets = [] if plan.replays else build_targets(self.suite, plan.concurrency)
        try:
            return await self._run(plan, graded, targets, budget, planned)
        finally:
            for closing in (*targets, *graded.models):
                await closing.close()

    async def _run(self, plan: Plan, graded: Graded, targets: list[Target], budget: Budget, planned: int) -> RunResult:
        await self._set_up(targets)
        run, grading = self._records(plan, graded)
        done = self.store.done(run.id) if self.resumed else set[AttemptKey]()
        drivers = self._drivers(plan, targets, budget)
        await self._tell(
            RunStarted(run, grading, planned * len(drivers) * (1 if plan.replays else plan.trials), len(done))
        )
        self.crew = Crew(1 if plan.replays and not graded.models else 2 * plan.concurrency)
        async with self.store.writer(run.id, grading.id, graded.fingerprints) as writer:
            attempt = partial(self._attempt, Grades(graded.graders, graded.composer), writer)
            await self.crew.run(plan.tasks(drivers, done), attempt)
        return await self._finish(run, grading, graded, self.crew.stopped_by)

    async def _attempt(self, grades: Grades, writer: OutcomeWriter, task: Task) -> None:
        async def on_turn(turn: Turn) -> None:
            await self._tell(TurnEnded(task.key, turn))

        await self._tell(AttemptStarted(task.key))
        outcome = await grades.grade(await hold(task, on_turn), task.sample)
        await writer.put(outcome)
        await self._tell(AttemptEnded(outcome))

    def _records(self, plan: Plan, graded: Graded) -> tuple[Run, Grading]:
        now = time.time()
        if self.resumed is not None:
            run = self.resumed.model_copy(update={"status": "running", "finished_at": None})
            grading = self.store.gradings(run.id)[0]
            self._check_same(plan, graded, grading)
            self.store.update_run(run)
            return run, grading
        spec = dump_spec(self.suite.spec)
        options = {
            **self.options.model_dump(exclude_none=True),
            "suite": str(self.suite.path.resolve()),
            "dataset": hash_file(plan.path),
            "code": self._code(),
        }
        name = re.sub(r"[^a-z0-9]+", "-", self.suite.spec.name.lower()).strip("-")[:40] or "run"
        run = Run(
            id=f"{name}-{secrets.token_hex(3)}",
            suite=self.suite.spec.name,
            spec=spec,
            base=str(self.suite.base.resolve()),
            options=options,
            started_at=now,
            version=version(),
        )
        grading = Grading(id=f"{run.id}-g1", run_id=run.id, spec=spec, fingerprints=graded.fingerprints, created_at=now)
        self.store.add_run(run)
        self.store.add_grading(grading)
        return run, grading

    def _check_same(self, plan: Plan, graded: Graded, grading: Grading) -> None:
        run = self.resumed
        if run is None:
            return
        changed = [name for name, print_ in graded.fingerprints.items() if grading.fingerprints.get(name) != print_]
        if changed:
            raise UsageError(f"cannot resume {run.id}: grader '{changed[0]}' has changed since; start a new run")
        if hash_file(plan.path) != run.options["dataset"]:
            raise UsageError(f"cannot resume {run.id}: the dataset {plan.path} has changed since; start a new run")
        if self._code() != run.options["code"]:
            raise UsageError(f"cannot resume {run.id}: the code of its target has changed since; start a new run")

    def _code(self) -> str | None:
        """Return a hash of the file under test, where it is one; other targets are elsewhere."""
        spec = self.suite.spec.target
        if not isinstance(spec, FunctionTargetSpec):
            return None
        return hash_file(self.suite.base / spec.function.rpartition(":")[0])

    async def _set_up(self, targets: list[Target]) -> None:
        reference = self.suite.spec.setup_script
        if reference is None:
            return
        function = load_object(reference, self.suite.base)
        asked = check_setup(function, reference, has_client=isinstance(self.suite.spec.target, LettaTargetSpec))
        clients = [(getattr(target, "client", None), target.name) for target in targets] or [(None, RECORDED)]
        for client, name in clients if "model_handle" in asked else clients[:1]:
            await run_setup(function, asked, client, name)

    def _drivers(self, plan: Plan, targets: list[Target], budget: Budget) -> dict[str, ScriptedDriver | None]:
        spec = self.suite.spec.target
        if plan.replays or spec is None:
            return {RECORDED: None}
        state = needs_state(self.suite.spec.graders, self.suite.base)
        limit, timeout, retries = plan.concurrency, spec.timeout, spec.max_retries
        return {
            target.name: ScriptedDriver(
                open_lane(target, limit=limit, budget=budget, timeout=timeout, retries=retries), state
            )
            for target in targets
        }

    async def _finish(self, run: Run, grading: Grading, graded: Graded, stopped_by: str | None) -> RunResult:
        status: Status = "finished" if stopped_by is None else "interrupted"
        run = run.model_copy(update={"status": status, "finished_at": time.time()})
        summary = sum_up(self.store, grading, graded)
        grading = grading.model_copy(
            update={
                "finished_at": time.time(),
                "verdict": summary.verdict if stopped_by is None else "inconclusive",
                "summary": summary.model_dump(mode="json"),
            }
        )
        self.store.update_run(run)
        self.store.update_grading(grading)
        await self._tell(RunEnded(run, grading))
        return RunResult(run, grading, summary, self.suite.notes, stopped_by)

    async def _tell(self, event: Event) -> None:
        for listener in self.listeners:
            await listener.on(event)


def sum_up(store: Store, grading: Grading, graded: Graded) -> Summary:
    """Return the summary of a set of scores, read from the store."""
    attempts, failed = store.counts(grading.run_id)
    rows = store.scores(grading.id)
    return summarise(
        tally(rows),
        attempts=attempts,
        failed=failed,
        gate=graded.gate,
        pairs=graded.agreement,
        labels={grader.name: grader.label for grader in graded.graders if grader.label},
    )


def dump_spec(spec: SuiteSpec) -> dict[str, Any]:
    """Return a suite as data, keys of ours and no secrets."""
    return spec.model_dump(mode="json", exclude_none=True, exclude={"target": {"api_key"}})


def stored_suite(run: Run) -> Suite:
    """Return the suite of a run, from its own record."""
    path = Path(run.options["suite"])
    return Suite(SuiteSpec.model_validate(run.spec), Document(path, run.spec), None)


def open_run(
    path: Path | str,
    options: RunOptions | None = None,
    *,
    target: Mapping[str, Any] | None = None,
    store: Store,
    listeners: Sequence[Listener] = (),
) -> SuiteRun:
    """Return a run of a suite, ready to execute; `target` replaces the suite's own."""
    suite = load_suite(Path(path), dict(target) if target else None)
    return SuiteRun(suite, options or RunOptions(), store, listeners)


def reopen_run(
    name: str, *, store: Store, listeners: Sequence[Listener] = (), max_calls: int | None = None
) -> SuiteRun:
    """Return an interrupted run, ready to do what is left; it may make `max_calls` more calls, None for no limit.

    Raises:
        UsageError: there is no such run, or nothing is left of it.
    """
    run = store.run(name)
    if run.status == "finished":
        raise UsageError(f"run {run.id} is finished; nothing is left to resume. See it with: viva show {run.id}")
    known = RunOptions.model_fields
    kept = {key: value for key, value in run.options.items() if key in known}
    options = RunOptions.model_validate({**kept, "max_calls": max_calls})
    return SuiteRun(stored_suite(run), options, store, listeners, resumed=run)


async def arun_suite(
    path: Path | str,
    options: RunOptions | None = None,
    *,
    target: Mapping[str, Any] | None = None,
    store: str | None = None,
    listeners: Sequence[Listener] = (),
) -> RunResult:
    """Run a suite and return what came out; `store` is where records go, the workspace's own unless named.

    Raises:
        UsageError: the suite, its files or its dataset are wrong; nothing was run.
    """
    with Store.open(store or settings().store) as opened:
        return await open_run(path, options, target=target, store=opened, listeners=listeners).execute()


def run_suite(
    path: Path | str,
    options: RunOptions | None = None,
    *,
    target: Mapping[str, Any] | None = None,
    store: str | None = None,
) -> RunResult:
    """Run a suite and wait for it, also where an event loop is running already."""
    return wait_for(arun_suite(path, options, target=target, store=store))


def version() -> str:
    """Return the version of this package."""
    from importlib.metadata import version as installed

    return installed("vivavoce")
