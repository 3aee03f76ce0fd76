"""`Watch`: judges what a spool holds, as runs of a store, until it is stopped."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from vivavoce.errors import StoreError, UsageError
from vivavoce.features.watch import beat, handing, settling
from vivavoce.features.watch.beat import AlertRules, Beat
from vivavoce.features.watch.handing import Outage, Per, Period, Talk, finish, period_at, time_text
from vivavoce.features.watch.settling import READ_SECONDS, RETENTION_SECONDS, Contents, ReadingPlan, Rules, prune
from vivavoce.features.watch.spool import END_SECONDS, Spool
from vivavoce.features.watch.state import Spending, WatchState
from vivavoce.features.watch.suite import gate_of, watching_run
from vivavoce.pacing.loops import in_thread
from vivavoce.records.run import AttemptEnded, Event, Run, RunStarted
from vivavoce.records.score import CANCELLED, Usage, total
from vivavoce.report.text import count, one_line
from vivavoce.run.experiment_run import Changed, ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.samples.conversations import given_sample
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store
from vivavoce.suites.load import Suite

TICK = 1.0
"""Seconds between two looks at what has become complete."""
FORGETS_EVERY = 60.0
"""Seconds between two times that old spans are forgotten."""
OTHERS_SECONDS = 60.0
"""Seconds after which a watch that told the store nothing is taken for one that does not run."""
SPEAKS_EVERY = 10.0
"""Seconds between two lines that say how far it is."""

_REPORTED_COUNTS = (
    *("judged", "passed", "of tests", "not sampled", "continued", "without a conversation", "repeated"),
    *("cannot be read", "refused", "refused: no room"),
)


@dataclass(frozen=True, slots=True)
class Watching:
    """How production is watched: which conversations are complete, and what one run may be and may use.

    `once` ends when everything that is there is judged, and waits for nothing to become silent. `quiet` says nothing of
    how far it is. `alert` says on which conversations the gate of the suite is decided.
    """

    rules: Rules
    options: RunOptions
    per: Per = "day"
    once: bool = False
    quiet: bool = False
    alert: AlertRules = field(default_factory=AlertRules)


@dataclass
class Watch:
    """Judges what a spool holds with the graders of a suite; `say` is called with each event in words.

    `gave_up` says that it ended because a judge did not answer; what waits is judged at the next start.
    """

    suite: Suite
    store: Store
    spool: Spool
    how: Watching
    say: Callable[[str], None]
    execution: ExperimentRun | None = field(default=None, init=False)
    gave_up: bool = field(default=False, init=False)
    _outage: Outage = field(default_factory=Outage, init=False)
    _open: Period | None = field(default=None, init=False)
    _used: Usage = field(default_factory=Usage, init=False)
    _beat: Beat = field(init=False)
    _ended: list[str] = field(default_factory=list[str], init=False)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        limit, gate = self.how.options.max_errors, gate_of(self.suite)
        self._beat = Beat(self.suite.spec.name, self.store, self.spool, gate, self.how.alert, limit)

    def stop(self) -> None:
        """Give nothing more to a judge and finish what is judged; a second time, drop that too."""
        again = self._stopping.is_set()
        self._stopping.set()
        if self.execution is not None and self.execution.workers is not None:
            at_work = self.execution.stop()
            if at_work and not again:
                self.say(f"finishing {count(at_work, 'conversation')}; press again to stop immediately")

    async def run(self) -> None:
        """Judge until it is stopped, or with `once` until nothing is left.

        Raises:
            UsageError: the suite cannot be used. StoreError: the disk failed; nothing that was taken is lost.
        """
        await self._run_of(Period("", 0.0)).check()  # a wrong judge is found now and not with the first conversation
        await self._say_others()
        await self._beat.begin(WatchState(began_at=time.time(), once=self.how.once, share=self.how.rules.share))
        judging = asyncio.create_task(self._judge_always())
        hanging = asyncio.create_task(self._hanging())
        tasks = (asyncio.create_task(self._settle_always()), asyncio.create_task(self._tell_always()), judging, hanging)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            done, _ = await asyncio.wait({judging, hanging}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self._stopping.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if hanging in done:
            self.say("the last traces are still being read; those not yet acknowledged are dropped")
            return
        await self._beat.tell(self._spending(), outage=self._outage.lasts, ended=True)

    async def _hanging(self) -> None:
        """Return once work of the spool does not end although the watch is to stop."""
        await self._stopping.wait()
        while self.spool.busy_seconds < END_SECONDS:  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    async def _say_others(self) -> None:
        """Say if another watch of the store is at work."""
        rows, now = await asyncio.to_thread(self.store.watches.all), time.time()
        others = [row.name for row in rows if row.name != self.suite.spec.name and now - row.heard_at < OTHERS_SECONDS]
        states = {row.name: WatchState.model_validate(row.state) for row in rows}
        for other in others:
            if states[other].ended_at is None:
                self.say(
                    f"the watch '{other}' also receives traces for this store: two receivers cannot combine the "
                    "turns of one conversation; send all traces of a conversation to one of them"
                )

    async def on(self, event: Event) -> None:
        """Hear of a run: which conversations are judged is known once the store has them."""
        if isinstance(event, AttemptEnded):
            attempt = event.outcome.attempt
            if attempt.failure is None or attempt.failure.kind != CANCELLED:
                self._ended.append(attempt.key.sample_id)
                if self._outage.hear(event.outcome):
                    self._tell_of_outage()
        elif isinstance(event, RunStarted) and not self.how.quiet:
            self.say(f"run {event.run.id} continues" if event.done else f"run {event.run.id} begins")

    def _tell_of_outage(self) -> None:
        """Say that a judge does not answer, or does again; with `once`, end then."""
        if not self._outage.lasts:
            self.say("the judge answers again")
        elif not self.how.once:
            self.say("the judge does not answer; incoming conversations wait until it does")
        elif not self._stopping.is_set():
            self.gave_up = True
            self.say("the judge does not answer; the remaining conversations wait for the next start")
            self.stop()

    def status(self) -> str:
        """Return in words what came in since the start, and what became of it."""
        counts = self.spool.counts
        words = [count(counts["spans"], "span"), count(counts["conversations"], "conversation")]
        return " · ".join([*words, *(f"{counts[what]:,} {what}" for what in _REPORTED_COUNTS if counts[what])])

    async def _settle_always(self) -> None:
        forgot = 0.0
        last_counts: Counter[str] = Counter()
        spoke = time.monotonic()
        while not self._stopping.is_set():
            await self._settle()
            if self.spool.counts != last_counts and time.monotonic() - spoke > SPEAKS_EVERY and not self.how.quiet:
                spoke, last_counts = time.monotonic(), self.spool.counts.copy()
                self.say(self.status())
            if time.monotonic() - forgot > FORGETS_EVERY:
                forgot = time.monotonic()
                await self.spool.work(lambda database, _: prune(database, time.time(), self._retention_seconds))
            await self._pause()

    async def _tell_always(self) -> None:
        """Tell the store how it goes, for as long as it goes on."""
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), beat.INTERVAL_SECONDS)
            await self._beat.tell(self._spending(), outage=self._outage.lasts)

    def _spending(self) -> Spending | None:
        """Return what the run that was opened last used of what it may use, None if there is none."""
        period, spending, options = self._open, self._beat.state.spending, self.how.options
        if period is None:
            return spending
        used = self._used
        if self.execution is not None:
            budget = self.execution.budget
            used += Usage(calls=budget.calls, cost=budget.cost)
        return Spending(
            run=period.run,
            ends=period.ends,
            spent=period.spent,
            calls=used.calls,
            max_calls=options.max_calls,
            cost=used.cost or 0.0,
            max_cost=options.max_cost,
        )

    @property
    def _retention_seconds(self) -> float:
        """For how many seconds the spans of conversations are kept that are judged: none where room is short."""
        return RETENTION_SECONDS if self.spool.used < self.spool.most / 2 else 0.0

    async def _settle(self) -> None:
        """Make conversations of what is complete, a few at a time so that what comes in is kept meanwhile."""
        rules = self.how.rules
        if self.how.once:
            rules = Rules(idle=-TICK, longest=rules.longest, share=rules.share, tests=rules.tests)
        while not self._stopping.is_set():
            plan = await self.spool.work(lambda database, counts: settling.begin(database, counts, rules, time.time()))
            try:
                contents = await self._contents(plan)
                if contents is None:
                    continue
                await self.spool.work(partial(_finish, rules=rules, plan=plan, contents=contents))
            except (StoreError, UsageError):  # a disk that fails says nothing against what is read
                with suppress(StoreError):
                    await self.spool.work(lambda database, _, plan=plan: settling.give_back(database, plan))
                raise
            await self._confirm()
            for why in (*plan.left_out, *contents.broken):
                self.say(one_line(why, 300))
            if not plan.due:
                return

    async def _contents(self, plan: ReadingPlan) -> Contents | None:
        """Read bundles in a thread that nobody waits for at the end; return None where that does not end in time.

        Of several, each is then begun by itself.
        """
        if not plan.spans:
            return Contents({}, [])
        reading = asyncio.ensure_future(in_thread(partial(settling.read, plan)))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({reading, stopping}, timeout=READ_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                await asyncio.wait({reading}, timeout=END_SECONDS)
            if reading.done():
                return reading.result()
        finally:
            stopping.cancel()
            reading.cancel()
        if len(plan.due) > 1 or self._stopping.is_set():
            return None
        return Contents({}, await self.spool.work(lambda database, _: settling.too_long(database, plan)))

    async def _judge_always(self) -> None:
        while not self._stopping.is_set():
            period = await self._period()
            if period is None:
                return
            self._note_open(period)
            if period.spent:
                await self._pass_over(period)
            else:
                await self._judge(period)

    def _note_open(self, period: Period) -> None:
        """Take note of the run that is open, and of its stored use before this start."""
        if self._open is None or self._open.run != period.run:
            spending = self._beat.state.spending
            same = spending is not None and spending.run == period.run
            self._used = Usage(calls=spending.calls, cost=spending.cost) if spending is not None and same else Usage()
        self._open = period

    async def _period(self) -> Period | None:
        """Return the period whose run is to go on, a new one when there is something for it; None at the end."""
        opened = await self.spool.work(lambda database, _: handing.period(database))
        while opened is None:
            if await self.spool.work(lambda database, _: handing.waiting(database)):
                opened = period_at(time.time(), self.how.per, self.suite.spec.name, self.store)
                await self.spool.work(lambda database, _, new=opened: handing.open_period(database, new))
                return opened
            if self._stopping.is_set() or await self._is_empty():
                return None
            await self._pause()
        return opened

    async def _judge(self, period: Period) -> None:
        """Give conversations to the run of a period until it ends, or its budget is spent."""
        graded = next(iter(self.store.series.graded_runs([period.run])), None)
        run = None if graded is None else graded.run
        if run is not None:
            await self._check(period)
        try:
            stopped_by = await self._execute(period, run)
        except Changed as error:
            self.say(f"{error}: the remaining conversations go to a new run")
            await self.spool.work(lambda database, _: handing.give_back(database, period.run))
            await self._close(period)
            return
        if self._stopping.is_set():
            return
        if stopped_by is None:
            await self._close(period)
            return
        what = (
            "the remaining conversations"
            if self.how.once
            else f"conversations completed until {time_text(period.ends)}"
        )
        self.say(f"run {period.run} stopped: {stopped_by}; {what} are not judged")
        await self.spool.work(lambda database, _: handing.open_period(database, period._replace(spent=True)))

    async def _execute(self, period: Period, run: Run | None) -> str | None:
        """Hold the run of a period; return why it stopped early, None if it came to its end."""
        self.execution = self._run_of(period, run)
        try:
            result = await self.execution.execute()
        finally:
            budget, self.execution = self.execution.budget, None
            self._used += Usage(calls=budget.calls, cost=budget.cost)
        await self._check(period)
        self.say(one_line(str(result), 300))
        return result.stopped_by

    def _run_of(self, period: Period, run: Run | None = None) -> ExperimentRun:
        """Return the run of a period, ready to execute; `run` is its record where it goes on."""
        return watching_run(
            self.suite,
            partial(self._feed, period),
            self._options(run),
            store=self.store,
            run_id=period.run,
            listeners=[self],
            resumed=run,
        )

    async def _feed(self, period: Period) -> AsyncIterator[Sample]:
        """Yield what was given to the run before it was interrupted, and then what becomes complete in its time."""
        for talk in await self.spool.work(lambda database, _: handing.load_given(database, period.run)):
            async for sample in self._sample(period, talk):
                yield sample
        while not self._stopping.is_set() and time.time() < period.ends:
            talks = await self.spool.work(lambda database, _: handing.hand_out(database, period.run))
            for talk in talks:
                async for sample in self._sample(period, talk):
                    yield sample
            if not talks:
                if await self._is_empty():
                    return
                await self._pause()

    async def _sample(self, period: Period, talk: Talk) -> AsyncIterator[Sample]:
        """Yield the sample of a conversation, if it can be read as one."""
        try:
            sample = given_sample(talk.row)
        except UsageError as error:
            self.say(one_line(f"conversation '{talk.sample}' cannot be judged: {error}", 300))
            passed = partial(handing.pass_over, run=period.run, sample=talk.sample)
            await self.spool.work(lambda database, counts: passed(database, counts))
            return
        while not self._outage.lets_one_through():
            if self._stopping.is_set():
                return
            await self._pause()
        yield sample

    async def _pass_over(self, period: Period) -> None:
        """Judge nothing until a period is over whose budget is spent."""
        passed = 0
        while not self._stopping.is_set() and time.time() < period.ends:
            passed += await self.spool.work(lambda database, counts: handing.pass_over(database, counts, period.run))
            if await self._is_empty():
                break
            await self._pause()
        if passed:
            self.say(f"{count(passed, 'conversation')} of run {period.run} not judged: its budget was spent")
        if not self._stopping.is_set():
            await self._close(period)

    async def _check(self, period: Period) -> None:
        """Find out which of the conversations that were given to a run the store has."""
        talks = await self.spool.work(lambda database, _: handing.load_given(database, period.run))
        cancelled = {key.sample_id for key in self.store.cancelled(period.run)}
        self._ended = [talk.sample for talk in talks if talk.sample not in cancelled]
        await self._confirm(period)

    async def _confirm(self, period: Period | None = None) -> None:
        """Strike off the conversations whose scores the store has; only then is it certain that they are judged."""
        ended, self._ended = self._ended, []
        period = period or await self.spool.work(lambda database, _: handing.period(database))
        if not ended or period is None:
            return
        stored = await asyncio.to_thread(self.store.stored, period.run, ended)
        await self._look_for_split(stored)
        if period.run and self.execution is not None:
            self._ended += [sample for sample in ended if sample not in stored]
        await self.spool.work(lambda database, counts: handing.mark_judged(database, counts, period.run, stored))

    async def _look_for_split(self, stored: set[str]) -> None:
        """Say if another watch of the store has judged the same conversations: each has a part of their turns."""
        if not stored:
            return
        name = self.suite.spec.name
        elsewhere = await asyncio.to_thread(self.store.watches.judged_elsewhere, name, sorted(stored), time.time())
        if not elsewhere:
            return
        sample, other = next(iter(sorted(elsewhere.items())))
        if not self._beat.state.split:
            self.say(
                f"conversation '{sample}' was also judged by the watch '{other}': two receivers of a store "
                "cannot combine the turns of one conversation; send all traces of a conversation to one of them"
            )
        self._beat.note_split(len(elsewhere), other)

    async def _close(self, period: Period) -> None:
        await asyncio.to_thread(finish, self.store, period.run)
        await self.spool.work(lambda database, _: handing.close_period(database, period.run))

    async def _is_empty(self) -> bool:
        """Return whether everything that was there is judged, and nothing is waited for."""
        if not self.how.once:
            return False
        return not await self.spool.work(lambda database, _: handing.is_open(database) or handing.waiting(database))

    async def _pause(self) -> None:
        pause = min(TICK, max(0.05, self.how.rules.idle / 4)) if not self.how.once else 0.05
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), pause)

    def _options(self, run: Run | None) -> RunOptions:
        """Return what a run may use: of one that goes on, what is left of it."""
        options = self.how.options
        if run is None or (options.max_calls is None and options.max_cost is None):
            return options
        self._used = used = total(self.store.details.usage(self.store.grading(run.id)).values()) or Usage()
        left = {
            "max_calls": None if options.max_calls is None else max(0, options.max_calls - used.calls),
            "max_cost": None if options.max_cost is None else max(0.0, options.max_cost - (used.cost or 0.0)),
        }
        return options.model_copy(update=left)


def _finish(
    database: sqlite3.Connection, counts: Counter[str], *, rules: Rules, plan: ReadingPlan, contents: Contents
) -> None:
    settling.finish(database, counts, rules, plan, contents, time.time())
