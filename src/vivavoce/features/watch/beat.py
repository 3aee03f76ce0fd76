"""`Beat`: tells the store every few seconds how a watch is doing, what it saw, and whether its gate holds."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from vivavoce.features.watch import handing
from vivavoce.features.watch.spool import HOUR, RETENTION_SECONDS, Spool, hour_of, tallies
from vivavoce.features.watch.state import STATES, Alert, GraderCount, HourFigures, Spending, WatchState
from vivavoce.grading.gates import Gate
from vivavoce.grading.scores import ErrorLimit
from vivavoce.run.corrected import correcting
from vivavoce.run.summary import summarise
from vivavoce.run.tallies import tally
from vivavoce.run.verdict import Rules
from vivavoce.store.store import Store
from vivavoce.store.watches import ScoreCount, WatchRow

INTERVAL_SECONDS = 10.0
"""Seconds between two times that a watch tells how it is doing."""
SHARE = 0.05
"""Part of the time that may go into deciding the gate, so that many conversations do not keep others waiting."""
WINDOW = 24 * 3600.0
MIN_CONVERSATIONS = 30


@dataclass(frozen=True, slots=True)
class AlertRules:
    """On which conversations a gate is decided: those of the last `window` seconds, if they are at least `least`."""

    window: float = WINDOW
    least: int = MIN_CONVERSATIONS


@dataclass
class Beat:
    """How one watch is doing, as written to the store; `state` is what was written last.

    `gate` is that of the suite, None if it has none.
    """

    name: str
    store: Store
    spool: Spool
    gate: Gate | None
    rules: AlertRules
    limit: str | None = None
    state: WatchState = field(default_factory=lambda: WatchState(began_at=time.time()))
    _since: int = 0
    _alert_due: float = 0.0

    async def begin(self, state: WatchState) -> None:
        """Continue from the stored state, and store that the watch has begun."""
        rows = await asyncio.to_thread(self.store.watches.all)
        before = next((row for row in rows if row.name == self.name), None)
        self.state, self._since = state, hour_of(time.time())
        if before is not None:
            stored_state = WatchState.model_validate(before.state)
            self._since = hour_of(max(before.heard_at, time.time() - RETENTION_SECONDS))
            fields = {"alert": None if self.gate is None else stored_state.alert, "spending": stored_state.spending}
            self.state = state.model_copy(update=fields)
        await self.tell(self.state.spending)

    def note_split(self, count: int, other: str) -> None:
        """Record that conversations were judged by another watch, too."""
        self.state = self.state.model_copy(update={"split": self.state.split + count, "split_with": other})

    async def tell(self, spending: Spending | None, *, outage: bool = False, ended: bool = False) -> None:
        """Tell the store how the watch is doing; `ended` is for the last time.

        Raises:
            StoreError: the store or the disk failed.
        """
        now = time.time()
        waiting, counts = await self.spool.work(partial(_come_in, since=self._since))
        if self.gate is not None and (ended or time.monotonic() >= self._alert_due):
            await self._decide(self.gate, now)
        changed = {"waiting": waiting, "spending": spending, "outage": outage, "ended_at": now if ended else None}
        self.state = self.state.model_copy(update=changed)
        await asyncio.to_thread(self._put, now, counts)
        self._since = hour_of(now)

    def _put(self, now: float, counts: Mapping[int, dict[str, int]]) -> None:
        hours = range(self._since, int(now) + 1, HOUR)
        figures = {hour: self._figures(hour, counts.get(hour, {})).model_dump(mode="json") for hour in hours}
        self.store.watches.put(WatchRow(self.name, now, self.state.model_dump(mode="json")), figures)

    def _figures(self, hour: int, counts: dict[str, int]) -> HourFigures:
        watches, until = self.store.watches, hour + HOUR
        mine = [run.grading for run in watches.runs(self.name, hour, until)]
        statuses = watches.status_counts(mine, hour, until)
        return HourFigures(
            counts=counts,
            judged=sum(statuses.values()),
            broken=statuses.get("error", 0),
            graders=_by_grader(watches.score_counts(mine, hour, until)),
        )

    async def _decide(self, gate: Gate, now: float) -> None:
        began = time.monotonic()
        alert = await asyncio.to_thread(self._alert, gate, now)
        ended = time.monotonic()
        self._alert_due = ended + max(INTERVAL_SECONDS, (ended - began) / SHARE)
        before = self.state.alert
        if before is not None and before.state == alert.state:
            alert = alert.model_copy(update={"since": before.since})
        self.state = self.state.model_copy(update={"alert": alert})

    def _alert(self, gate: Gate, now: float) -> Alert:
        watches, since = self.store.watches, now - self.rules.window
        runs = watches.runs(self.name, since, now)
        mine = [run.grading for run in runs]
        statuses = watches.status_counts(mine, since, now + 1)
        judged = sum(statuses.values())
        known = Alert(
            state="undecided", since=now, at=now, window=self.rules.window, least=self.rules.least, conversations=judged
        )
        if judged < self.rules.least:
            return known
        newest = self.store.grading(runs[-1].run, runs[-1].grading)
        summary = summarise(
            tally(watches.scores(mine, since, now + 1)),
            attempts=judged,
            failed=0,
            rules=Rules(
                gate=gate,
                limit=None if self.limit is None else ErrorLimit(self.limit),
                correct=correcting(self.store, newest.run_id, newest.fingerprints),
            ),
            errors=statuses.get("error", 0),
        )
        state = STATES[summary.verdict or "inconclusive"]
        return known.model_copy(update={"state": state, "reasons": summary.reasons, "graders": summary.graders})


def _come_in(database: sqlite3.Connection, _: Counter[str], *, since: int) -> tuple[int, dict[int, dict[str, int]]]:
    return handing.waiting(database), tallies(database, since)


def _by_grader(counts: list[ScoreCount]) -> dict[str, GraderCount]:
    by_name: dict[str, dict[str, int]] = {}
    for count in counts:
        what = "passed" if count.passed else "failed"
        if count.state == "error":
            what = "errors"
        elif count.state == "skipped":
            what = "skipped"
        elif count.passed is None:
            what = "measured"
        numbers = by_name.setdefault(count.name, {})
        numbers[what] = numbers.get(what, 0) + count.number
    return {name: GraderCount(**numbers) for name, numbers in by_name.items()}
