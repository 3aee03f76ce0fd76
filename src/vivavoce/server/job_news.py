"""What the process of a job says of its run: plain data, small enough for every event of every conversation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from vivavoce.errors import VivavoceError
from vivavoce.models.modes import CAPABILITIES, KnownCapabilities
from vivavoce.records.run import (
    AttemptEnded,
    AttemptKey,
    AttemptStarted,
    BatchesAsked,
    Event,
    Outcome,
    RunEnded,
    RunStarted,
    TurnEnded,
    Verdict,
)
from vivavoce.records.score import shorten
from vivavoce.records.trajectory import Turn, tool_calls
from vivavoce.server.job_record import MessageNews
from vivavoce.store.browse.listing import ScoreEntry

SHOWN = 4000
"""Maximum characters of a message, or of a reason, in an event."""


@dataclass(frozen=True, slots=True)
class JobNews:
    """One event of a run: the kind of the event of its job, the fields, and new values of the record of the job.

    `is_done` means that a conversation has ended, and `is_broken` that it has an error.
    """

    kind: Literal["started", "held", "turn", "graded"] | None = None
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    is_done: bool = False
    is_broken: bool = False


@dataclass(frozen=True, slots=True)
class Pulse:
    """The process of a job still works: the calls that it has made, and what they cost in US dollars."""

    calls: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Obeyed:
    """The process of a job has done what the server told it."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a run: what stopped it, its verdict, or the error that ended it, or that it was cancelled."""

    stopped_by: str | None = None
    verdict: Verdict | None = None
    error: VivavoceError | None = None
    is_cancelled: bool = False
    known: KnownCapabilities = field(default_factory=CAPABILITIES.snapshot)


def news_of(event: Event) -> JobNews | None:
    """Return an event of a run as news of its job; None for one that says nothing of it."""
    match event:
        case RunStarted():
            named = {"run": event.run.id, "grading": event.grading.id, "planned": event.planned}
            return JobNews("started", values={"status": "running", "done": event.done, **named})
        case AttemptStarted():
            return JobNews("held", _of(event.key))
        case TurnEnded():
            turn = {"turn": event.turn.index, "messages": _message_news(event.turn)}
            return JobNews("turn", {**_of(event.key), **turn})
        case AttemptEnded():
            scores = _scores(event.outcome)
            broken = any(score.state == "error" for score in scores)
            key = _of(event.outcome.attempt.key)
            return JobNews("graded", {**key, "scores": scores}, is_done=True, is_broken=broken)
        case BatchesAsked():
            return None  # a job counts conversations, and waiting ends none
        case RunEnded():
            return JobNews(values={"verdict": event.grading.verdict})


def _of(key: AttemptKey) -> dict[str, Any]:
    return key._asdict()


def _message_news(turn: Turn) -> list[MessageNews]:
    return [
        MessageNews(
            role=message.role,
            text=shorten(message.text, SHOWN) or "",
            calls=[call.name for call in tool_calls([message])],
        )
        for message in turn.messages
    ]


def _scores(outcome: Outcome) -> list[ScoreEntry]:
    scored = [("grade", name, score) for name, score in outcome.scores.items()]
    rewards = [] if outcome.reward is None else [("reward", "reward", outcome.reward)]
    return [
        ScoreEntry.model_validate(
            {
                "kind": kind,
                "name": name,
                "state": score.state,
                "value": score.value,
                "measured": score.measured,
                "passed": score.passed,
                "reason": shorten(score.reason, SHOWN),
                "failure": score.failure,
            }
        )
        for kind, name, score in (*scored, *rewards)
    ]
