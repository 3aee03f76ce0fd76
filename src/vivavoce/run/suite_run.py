"""One execution of a suite: check it, make what it names, hold the conversations, keep and sum up what came out."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.pacing.budget import Budget
from vivavoce.penelope.agent import PenelopeAgent
from vivavoce.plugins import load_object
from vivavoce.records.events import AttemptEnded, AttemptStarted, Event, Listener, RunEnded, RunStarted, TurnEnded
from vivavoce.records.redaction import without_keys
from vivavoce.records.run import Attempt, AttemptKey, Grading, Run, Status
from vivavoce.records.trajectory import Turn
from vivavoce.run.attempt import Grades, Task, hold
from vivavoce.run.check import prepare
from vivavoce.run.drivers import Driver, PenelopeDriver, ScriptedDriver
from vivavoce.run.heap import tuned_gc
from vivavoce.run.plan import RECORDED, GivenPlan, Plan, RunOptions, plan_of
from vivavoce.run.result import RunResult
from vivavoce.run.summary import ErrorLimit, Summary, summarise, tally
from vivavoce.run.workers import WorkerPool
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store
from vivavoce.store.writer import OutcomeWriter
from vivavoce.suites.build import Scoring, needs_state
from vivavoce.suites.hooks import check_setup, run_setup
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite
from vivavoce.suites.spec import FunctionTargetSpec, LettaTargetSpec, SuiteSpec, TesterSpec
from vivavoce.suites.targets import build_targets
from vivavoce.suites.testers import build_tester, check_tests
from vivavoce.targets.channel import open_channel
from vivavoce.targets.target import Target
from vivavoce.user_code import hash_code

AnyPlan = Plan | GivenPlan

REQUEST = ("url", "headers", "body")
"""The parts of a target that make a request, where somebody may have written a key."""


@dataclass
class SuiteRun:
    """One execution of a suite, step by step; `stop` ends it early.

    A resumed one that `retries_errors` also tries the attempts again that had an error: a conversation that went
    through is only graded again. What it replaces stays in the store.
    """

    suite: Suite
    options: RunOptions
    store: Store
    listeners: Sequence[Listener] = ()
    resumed: Run | None = None
    targets: list[Target] | None = None
    workers: WorkerPool | None = None
    retries_errors: bool = False
    _tester: str = field(default="", init=False)

    def stop(self) -> int:
        """Begin nothing more and finish what is in flight; a second time, drop that too.

        Returns how many conversations are still in flight.
        """
        if self.workers is None:
            raise KeyboardInterrupt
        self.workers.stop()
        return self.workers.at_work

    async def execute(self) -> RunResult:
        """Run it, and return what came out.

        Raises:
            UsageError: the suite, its files or its dataset are wrong; nothing was run.
        """
        plan = plan_of(self.suite, self.options)
        async with kept_answers(self.store, cache=self.options.cache or self.options.replay) as answers:
            judges = JudgeOpener(self.budget, answers, self.options.replay, plan.concurrency)
            agent = build_tester(self.suite, judges)
            self._tester = agent.fingerprint if agent else ""
            scoring, dataset = prepare(self.suite, plan, judges, self._tester)
            if agent is not None:
                check_tests(self.suite, agent)
            samples = plan.count(dataset.samples)
            targets = [] if plan.replays else self.targets or build_targets(self.suite, plan.concurrency)
            try:
                await self._set_up(targets)
                drivers = self._drivers(plan, targets, agent)
                planned = samples * len(drivers) * (1 if plan.replays else plan.trials)
                with self.store.claimed(self._run_id):
                    return noting(await self._hold_all(plan, scoring, drivers, planned), answers)
            finally:
                for closing in (*targets, *scoring.opened, *([agent] if agent else ())):
                    await closing.close()

    async def _hold_all(
        self, plan: AnyPlan, scoring: Scoring, drivers: dict[str, Driver | None], planned: int | None
    ) -> RunResult:
        run, grading = self._records(plan, scoring)
        done = self.store.done(run.id) if self.resumed else set[AttemptKey]()
        if self.retries_errors:
            done -= {row.key for row in self.store.errors(grading.id)}
        await self._tell(RunStarted(run, grading, planned, len(done)))
        grades = Grades(scoring.graders, scoring.composer)
        self.workers = workers = WorkerPool(_workers(plan, grades))
        fingerprints, replaces = scoring.fingerprints, self.retries_errors
        async with self.store.writer(run.id, grading.id, fingerprints, replaces=replaces) as writer:
            with tuned_gc():
                await workers.run(plan.tasks(drivers, done), partial(self._attempt, workers, grades, writer))
        return await self._finish(run, grading, scoring, planned)

    async def _attempt(self, workers: WorkerPool, grades: Grades, writer: OutcomeWriter, task: Task) -> None:
        with ExitStack() as kept:
            attempt = await self._hold(workers, grades, task, kept)
            if attempt is None:
                return
            led = attempt.trajectory.test is not None
            outcome = await grades.grade(attempt, task.sample.held(attempt.trajectory.messages) if led else task.sample)
        await writer.put(outcome)
        await self._tell(AttemptEnded(outcome))

    async def _hold(self, workers: WorkerPool, grades: Grades, task: Task, kept_calls: ExitStack) -> Attempt | None:
        """Hold a conversation, with the calls of it and of its judges set aside; None when the run was stopped."""

        async def on_turn(turn: Turn) -> None:
            await self._tell(TurnEnded(task.key, turn))

        verdicts = 0 if self.options.replay else grades.verdicts(task.sample)
        if self.retries_errors and (kept := self._kept(task.key)) is not None:
            kept_calls.enter_context(self.budget.set_aside(verdicts))
            return kept
        if task.driver is None:
            kept_calls.enter_context(self.budget.set_aside(verdicts))
            return await hold(task, on_turn)
        async with task.driver.channel.conversations:
            if workers.stopped_by is not None:
                return None
            kept_calls.enter_context(self.budget.set_aside(task.driver.calls(task.sample) + verdicts))
            await self._tell(AttemptStarted(task.key))
            return await hold(task, on_turn)

    def _kept(self, key: AttemptKey) -> Attempt | None:
        """Return the conversation of an attempt of which only a grader broke, so that it need not be held again."""
        assert self.resumed is not None
        stored = self.store.attempts(self.resumed.id, sample_id=key.sample_id)
        return next((one for one in stored if one.key == key and one.failure is None), None)

    @cached_property
    def budget(self) -> Budget:
        """The calls that this run may make, and what they may cost."""
        return Budget(max_calls=self.options.max_calls, max_cost=self.options.max_cost)

    @cached_property
    def _run_id(self) -> str:
        if self.resumed is not None:
            return self.resumed.id
        name = re.sub(r"[^a-z0-9]+", "-", self.suite.spec.name.lower()).strip("-")[:40] or "run"
        return f"{name}-{secrets.token_hex(3)}"

    def _records(self, plan: AnyPlan, scoring: Scoring) -> tuple[Run, Grading]:
        if self.resumed is not None:
            return self._records_again(self.resumed, plan, scoring)
        now, spec = time.time(), dump_spec(self.suite.spec)
        run = Run(
            id=self._run_id,
            suite=self.suite.spec.name,
            spec=spec,
            base=str(self.suite.base.absolute()),
            options={
                **self.options.model_dump(exclude_none=True),
                "suite": self.suite.path.name,
                "dataset": plan.dataset,
                "code": self._code(),
                **({"tester": self._tester} if self._tester else {}),
            },
            started_at=now,
            version=version("vivavoce"),
        )
        grading = Grading(
            id=f"{run.id}-g1", run_id=run.id, spec=spec, fingerprints=scoring.fingerprints, created_at=now
        )
        self.store.add_run(run)
        self.store.add_grading(grading)
        return run, grading

    def _records_again(self, run: Run, plan: AnyPlan, scoring: Scoring) -> tuple[Run, Grading]:
        """Return the records of a run that goes on.

        Raises:
            UsageError: what decides its outcome has changed since it began.
        """
        grading = self.store.gradings(run.id)[0]
        then, prints = grading.fingerprints, scoring.fingerprints
        changed = [name for name in {**then, **prints} if then.get(name) != prints.get(name)]
        what = f"'{changed[0]}' has" if changed else None
        if plan.dataset != run.options["dataset"]:
            what = f"the dataset {self.suite.spec.dataset.place} has"
        if self._tester != run.options.get("tester", ""):
            what = "its tester has"
        if self._code() != run.options["code"]:
            what = "the code of its target has"
        if what is not None:
            raise UsageError(f"cannot resume {run.id}: {what} changed since; start a new run")
        run = run.model_copy(update={"status": "running", "finished_at": None})
        self.store.update_run(run)
        return run, grading

    def _code(self) -> str | None:
        """Return a hash of the code under test, where it is in a file; other targets are elsewhere."""
        spec = self.suite.spec.target
        if not isinstance(spec, FunctionTargetSpec) or self.targets is not None:
            return None
        return hash_code((self.suite.base / spec.function.rpartition(":")[0]).resolve())

    async def _set_up(self, targets: list[Target]) -> None:
        reference = self.suite.spec.setup_script
        if reference is None:
            return
        function = load_object(reference, self.suite.base)
        asked = check_setup(function, reference, has_client=isinstance(self.suite.spec.target, LettaTargetSpec))
        clients = [(getattr(target, "client", None), target.name) for target in targets] or [(None, RECORDED)]
        for client, name in clients if "model_handle" in asked else clients[:1]:
            await run_setup(function, asked, client, name)

    def _drivers(self, plan: Plan, targets: list[Target], agent: PenelopeAgent | None) -> dict[str, Driver | None]:
        spec = self.suite.spec.target
        if plan.replays or spec is None:
            return {RECORDED: None}
        limit, timeout, retries = plan.concurrency, spec.timeout, spec.max_retries
        channels = [
            open_channel(target, limit=limit, budget=self.budget, timeout=timeout, retries=retries)
            for target in targets
        ]
        if agent is not None:
            tester = self.suite.spec.tester or TesterSpec()
            return {channel.target.name: PenelopeDriver(channel, agent, tester) for channel in channels}
        state = needs_state(self.suite.spec.graders, self.suite.base)
        return {channel.target.name: ScriptedDriver(channel, state) for channel in channels}

    async def _finish(self, run: Run, grading: Grading, scoring: Scoring, planned: int | None) -> RunResult:
        summary = sum_up(self.store, grading, scoring, self.options.max_errors)
        stopped_by = self.workers.stopped_by if self.workers else None
        if stopped_by is None and planned is not None and summary.attempts < planned:
            stopped_by = f"{planned - summary.attempts} of {planned} conversations were not held"
        status: Status = "finished" if stopped_by is None else "interrupted"
        if stopped_by is not None:
            summary = summary.stopped_by(stopped_by, planned)
        now = time.time()
        grading = ended(grading, summary, now)
        run = run.model_copy(update={"status": status, "finished_at": now})
        self.store.update_grading(grading)
        self.store.update_run(run)
        await self._tell(RunEnded(run, grading))
        return RunResult(run, grading, summary, self.store.place, stopped_by, self.suite.notes)

    async def _tell(self, event: Event) -> None:
        for listener in self.listeners:
            await listener.on(event)


def _workers(plan: AnyPlan, grades: Grades) -> int:
    """Return how many conversations are in work: enough to keep the slots of targets and judges busy."""
    if not plan.replays:
        return 3 * plan.concurrency
    return 1 if grades.at_once else plan.concurrency + plan.concurrency // 2


@asynccontextmanager
async def kept_answers(store: Store, *, cache: bool) -> AsyncGenerator[ReplyStore | None]:
    """Give the place where answers of judges are kept, None where they are not to be."""
    answers = store.replies() if cache else None
    try:
        yield answers
    finally:
        if answers is not None:
            await answers.close()


def noting(result: RunResult, answers: ReplyStore | None) -> RunResult:
    """Return a result that says how many kept answers could not be used."""
    count = answers.rejected if answers is not None else 0
    if not count:
        return result
    said = f"{count} kept answer{'s are' if count > 1 else ' is'} outside the schema and could not be used"
    return replace(result, notes=(*result.notes, f"{said}; run again without --replay, or export the questions again"))


def sum_up(store: Store, grading: Grading, scoring: Scoring, max_errors: str | None = None) -> Summary:
    """Return the summary of a set of scores, read from the store."""
    attempts, failed = store.counts(grading.run_id)
    return summarise(
        tally(store.scores(grading.id)),
        attempts=attempts,
        failed=failed,
        gate=scoring.gate,
        pairs=scoring.agreement,
        graders=scoring.graders,
        errors=sum(1 for _ in store.errors(grading.id)),
        limit=None if max_errors is None else ErrorLimit(max_errors),
    )


def ended(grading: Grading, summary: Summary, now: float) -> Grading:
    """Return a set of scores that is complete."""
    told = {"finished_at": now, "verdict": summary.verdict, "summary": summary.model_dump(mode="json")}
    return grading.model_copy(update=told)


def dump_spec(spec: SuiteSpec) -> dict[str, Any]:
    """Return a suite as data, keys of ours and no secrets: what has the shape of one is cut out of a request."""
    told = spec.model_dump(mode="json", exclude_none=True, exclude={"target": {"api_key"}})
    target: dict[str, Any] = told.get("target", {})
    target |= {part: json.loads(without_keys(json.dumps(target[part]))) for part in REQUEST if part in target}
    return told
