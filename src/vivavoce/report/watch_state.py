"""`WatchState`: how a watch of production is doing, as it tells the store every few seconds."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.records.run import Reason, Verdict
from vivavoce.run.summary import GraderSummary

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
    """What the open run may use and what it has used; `cost` is in US dollars, and a limit of None is no limit.

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
