"""What a watch of production saw, and how it stands."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.errors import NotFound, UsageError
from vivavoce.records.run import Reason, Verdict
from vivavoce.report.text import count
from vivavoce.report.verdict import reason_text
from vivavoce.run.summary import GraderSummary
from vivavoce.stats.intervals import share_interval
from vivavoce.store.browse.listing import SampleEntry
from vivavoce.store.store import Store
from vivavoce.store.watches import WatchRow

AlertState = Literal["ok", "firing", "undecided"]
"""What the gate says of the last conversations: it passes, it fails, or nothing can be said."""

STATES: dict[Verdict, AlertState] = {"pass": "ok", "fail": "firing", "inconclusive": "undecided"}


class Frozen(BaseModel):
    """Immutable."""

    model_config = ConfigDict(frozen=True)


class Alert(Frozen):
    """The gate of the suite on the conversations judged in the last `window` seconds before `at`.

    `since` is when it came into this state, in seconds since 1970. It is `undecided` with fewer than `least`
    conversations, and then there are no reasons of the gate. `graders` are the results that it rests on.
    """

    state: AlertState
    since: float
    at: float
    window: float
    least: int
    conversations: int
    reasons: list[Reason] = Field(default_factory=list[Reason])
    graders: list[GraderSummary] = Field(default_factory=list[GraderSummary])


class Spending(Frozen):
    """What the open run may use and what it has used; `cost` is in US dollars, and a limit of None is not a limit.

    `spent` says that nothing more is judged until the run `ends`, in seconds since 1970.
    """

    run: str
    ends: float
    spent: bool = False
    calls: int = 0
    max_calls: int | None = None
    cost: float = 0.0
    max_cost: float | None = None


class WatchState(Frozen):
    """How a watch is doing.

    `ended_at` is when it was stopped, None while it goes on, and with `once` when it last came to its end. `share` is
    the part of all conversations that is judged, `waiting` how many conversations wait for a judge. `split` counts the
    conversations that the watch `split_with` has judged, too, because each of the two received a part of them. `alert`
    is None where the suite has no gate, `spending` where no run was opened yet.
    """

    began_at: float
    ended_at: float | None = None
    once: bool = False
    share: float = 1.0
    waiting: int = 0
    outage: bool = False
    split: int = 0
    split_with: str | None = None
    spending: Spending | None = None
    alert: Alert | None = None


class GraderCount(Frozen):
    """How many scores of a grader were stored in an hour, by what they say."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    measured: int = 0


class HourFigures(Frozen):
    """What a watch saw in an hour.

    `counts` is what came in, by the words that the command counts with; `judged` conversations have scores, and
    `broken` ones of them an error in place of one.
    """

    counts: dict[str, int] = Field(default_factory=dict[str, int])
    judged: int = 0
    broken: int = 0
    graders: dict[str, GraderCount] = Field(default_factory=dict[str, GraderCount])


Bucket = Literal["hour", "day"]
Condition = Literal["watching", "silent", "ended"]

SILENT = 300.0
"""Seconds without a word of a watch that goes on, after which it is taken to have stopped."""
LENGTHS: dict[Bucket, int] = {"hour": 3600, "day": 86_400}
PERIOD_COUNTS: dict[Bucket, int] = {"hour": 48, "day": 30}
"""How many hours or days are shown."""
FAILING = 10
"""Conversations that failed last, at most."""
_RUNS = 2
"""Newest runs in which these are looked for."""

_NEAR = 1e-9
"""What rounding may make of an aggregate at the end of its interval."""

VERDICTS: dict[AlertState, Verdict] = {state: verdict for verdict, state in STATES.items()}


class Rate(BaseModel):
    """The share of the scores of a grader that pass, with its 95% interval; None where nothing was scored.

    `measured` counts the measurements, which neither pass nor fail.
    """

    model_config = ConfigDict(frozen=True)

    passed: int = 0
    scored: int = 0
    errors: int = 0
    skipped: int = 0
    measured: int = 0
    share: float | None = None
    low: float | None = None
    high: float | None = None


class Period(BaseModel):
    """What was seen from `start` on, in seconds since 1970.

    `arrived` is how many conversations were complete, `sampled` how many of these were to be judged, `judged` how many
    were, `broken` how many of the judged lack a score because of an error, and `passed_over` how many were sampled and
    not judged, because a budget was spent or they cannot be read. `rates` are of the judged ones, by grader.
    """

    model_config = ConfigDict(frozen=True)

    start: float
    arrived: int
    sampled: int
    judged: int
    broken: int
    passed_over: int
    rates: dict[str, Rate]


class FailedTalk(BaseModel):
    """A conversation that failed: its place, when it was judged, and why in a line, as far as a grader says so."""

    model_config = ConfigDict(frozen=True)

    run: str
    sample_id: str
    target: str
    trial: int
    at: float
    grader: str
    reason: str


class Watched(BaseModel):
    """What a watch saw in the last hours or days, oldest first; all rates are of the judged part of what came in.

    `condition` is `silent` where a watch that was not stopped has not been heard of for some minutes, and `ended` where
    it was stopped or came to its end. `verdict` is that of its gate for a program: inconclusive where it is silent, and
    None without a gate.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    condition: Condition
    heard_at: float
    at: float
    per: Bucket
    periods: list[Period]
    total: Period
    state: WatchState
    verdict: Verdict | None
    failing: list[FailedTalk]

    @property
    def graders(self) -> list[str]:
        """The graders with a score in these periods."""
        return list(self.total.rates)

    @property
    def span(self) -> str:
        """The time that is shown, in words."""
        return f"{len(self.periods)} {self.per}s"

    @property
    def note(self) -> str | None:
        """What is to be said where nobody watches, None while somebody does."""
        if self.condition == "watching":
            return None
        ago = _ago(self.at - self.heard_at)
        if self.condition == "silent":
            return f"no report for {ago}: start viva watch again; data below is older"
        return f"{'last run' if self.state.once else 'stopped'} {ago} ago; data below is older"


class WatchEntry(BaseModel):
    """A watch in a list: whether somebody watches, and what its gate says, None without one."""

    model_config = ConfigDict(frozen=True)

    name: str
    condition: Condition
    heard_at: float
    alert: AlertState | None
    verdict: Verdict | None


def watches(store: Store, now: float | None = None) -> list[WatchEntry]:
    """Return what watches production, the one that was heard of last first."""
    at = time.time() if now is None else now
    return [_entry(row, at) for row in store.watches.all()]


def read_watch(store: Store, name: str | None = None, per: Bucket = "hour", now: float | None = None) -> Watched:
    """Return what a watch saw, of the one that was heard of last unless it is named.

    Raises:
        UsageError: nothing watches production in this store, or nothing of that name does.
    """
    known = store.watches.all()
    if not known:
        raise UsageError("this store has no production data yet; start viva watch")
    row = next((watch_row for watch_row in known if name in (None, watch_row.name)), None)
    if row is None:
        raise NotFound("watch", name or "", known={watch_row.name for watch_row in known})
    state = WatchState.model_validate(row.state)
    at = time.time() if now is None else now
    condition = _condition(state, at - row.heard_at)
    length = LENGTHS[per]
    last = int(at // length + 1) * length
    first = last - PERIOD_COUNTS[per] * length
    hours = {
        hour: HourFigures.model_validate(figures)
        for hour, figures in store.watches.hours(row.name, first, last).items()
    }
    starts = range(first, last, length)
    return Watched(
        name=row.name,
        condition=condition,
        heard_at=row.heard_at,
        at=at,
        per=per,
        periods=[
            _period(start, [hours[h] for h in range(start, start + length, 3600) if h in hours]) for start in starts
        ],
        total=_period(first, hours.values()),
        state=state,
        verdict=_verdict(state.alert, condition),
        failing=list(_failing(store, row.name, at)),
    )


def alert_line(alert: Alert) -> str:
    """Return in words what the gate says of the last conversations."""
    window = f"the last {_ago(alert.window)}"
    if alert.conversations < alert.least:
        few = f"{count(alert.conversations, 'conversation')} judged in {window}"
        return f"{few}; the gate needs at least {alert.least:,}"
    reasons = "; ".join(_reason(alert, at) for at in range(len(alert.reasons)))
    return f"{reasons} ({count(alert.conversations, 'conversation')} judged in {window})"


def budget_lines(spending: Spending) -> list[tuple[str, float | None, str]]:
    """Return what was used of what is allowed: its name, the part of the limit from 0 to 1, and both in words."""
    calls = f"{spending.calls:,}" if spending.max_calls is None else f"{spending.calls:,} of {spending.max_calls:,}"
    cost = f"${spending.cost:,.2f}" + ("" if spending.max_cost is None else f" of ${spending.max_cost:,.2f}")
    return [
        ("calls", _part(spending.calls, spending.max_calls), calls),
        ("cost", _part(spending.cost, spending.max_cost), cost),
    ]


def _part(used: float, most: float | None) -> float | None:
    if most is None:
        return None
    return min(1.0, used / most) if most else 1.0


def _reason(alert: Alert, at: int) -> str:
    """Return a reason of the gate in words, with the 95% interval of what it compares, where it has one."""
    reason = alert.reasons[at]
    condition, text = reason.condition, reason_text(reason)
    if condition is None or len(reason.graders) != 1:
        return text
    (grader,) = reason.graders
    summary = next((each for each in alert.graders if each.name == grader), None)
    ends = None if summary is None else _ends(summary, condition.aggregation, reason.found)
    return text if ends is None else f"{text}, 95% interval {ends}"


def _ends(grader: GraderSummary, aggregation: str, value: float | None) -> str | None:
    """Return the interval of an aggregate, None where it is not that of the scores as the grader decided them."""
    low, high, scale = grader.low, grader.high, 1.0
    if aggregation == "accuracy":
        low, high, scale = grader.pass_low, grader.pass_high, 100.0
    elif aggregation != "avg_score":
        return None
    if low is None or high is None or value is None or not low - _NEAR <= value / scale <= high + _NEAR:
        return None
    return f"{low:.3f} to {high:.3f}" if scale == 1 else f"{low:.1%} to {high:.1%}"


def _condition(state: WatchState, silence: float) -> Condition:
    if state.ended_at is not None:
        return "ended"
    return "silent" if silence > SILENT else "watching"


def _entry(row: WatchRow, at: float) -> WatchEntry:
    state = WatchState.model_validate(row.state)
    condition = _condition(state, at - row.heard_at)
    alert = None if state.alert is None else state.alert.state
    return WatchEntry(
        name=row.name,
        condition=condition,
        heard_at=row.heard_at,
        alert=alert,
        verdict=_verdict(state.alert, condition),
    )


def _verdict(alert: Alert | None, condition: Condition) -> Verdict | None:
    if alert is None:
        return None
    return "inconclusive" if condition == "silent" else VERDICTS[alert.state]


def _period(start: float, hours: Iterable[HourFigures]) -> Period:
    graders: dict[str, list[GraderCount]] = {}
    counts = {"conversations": 0, "not sampled": 0, "passed": 0}
    judged = broken = 0
    for hour in hours:
        judged, broken = judged + hour.judged, broken + hour.broken
        for what in counts:
            counts[what] += hour.counts.get(what, 0)
        for name, grader in hour.graders.items():
            graders.setdefault(name, []).append(grader)
    return Period(
        start=start,
        arrived=counts["conversations"] + counts["not sampled"],
        sampled=counts["conversations"],
        judged=judged,
        broken=broken,
        passed_over=counts["passed"],
        rates={name: _rate(counts_of_grader) for name, counts_of_grader in sorted(graders.items())},
    )


def _rate(counts: list[GraderCount]) -> Rate:
    passed, failed = sum(count.passed for count in counts), sum(count.failed for count in counts)
    scored = passed + failed
    known = {"passed": passed, "scored": scored, "errors": sum(count.errors for count in counts)}
    known |= {"skipped": sum(count.skipped for count in counts), "measured": sum(count.measured for count in counts)}
    rate = share_interval({(1, 1): passed, (0, 1): failed})
    return Rate(**known, share=rate and rate.mean, low=rate and rate.low, high=rate and rate.high)


def _failing(store: Store, name: str, now: float) -> Iterable[FailedTalk]:
    """Yield the conversations that failed last, newest first."""
    talks: list[FailedTalk] = []
    newest = store.watches.runs(name, now - PERIOD_COUNTS["hour"] * 3600, now + 1)[::-1]
    for run in newest[:_RUNS]:
        page = store.browse.samples(run.grading, "state:fail", sort="-position", limit=FAILING)
        talks += [_failed_talk(run.run, entry) for entry in page.samples]
    return talks[:FAILING]


def _failed_talk(run: str, entry: SampleEntry) -> FailedTalk:
    score = next((each for each in entry.scores if each.passed is False), None)
    return FailedTalk(
        run=run,
        sample_id=entry.sample_id,
        target=entry.target,
        trial=entry.trial,
        at=entry.started_at,
        grader="" if score is None else score.name,
        reason="" if score is None else score.reason or "",
    )


def _ago(seconds: float) -> str:
    """Return a length of time in words, in its largest unit."""
    for size, word in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return count(round(seconds / size), word)
    return count(round(seconds), "second")
