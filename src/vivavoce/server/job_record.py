"""The public record of a job and its events: plain data for the API and its client."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError, to_jsonable_python

from vivavoce.records.run import Verdict
from vivavoce.report.text import strict_json
from vivavoce.store.browse.listing import ScoreEntry
from vivavoce.store.jobs import JobRow, JobStatus, Kind


class JobRecord(BaseModel):
    """A job: work on one run, which is stored like any other.

    Of `planned` conversations (None if unknown), `done` are stored, `errors` of them with an error. An `interrupted`
    job is not complete, and another job can resume it; for a `failed` job, `detail` says why nothing could be run.
    `suite` is the file of the served folder that it uses. Times are seconds since the epoch.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    kind: Kind
    status: JobStatus = "waiting"
    created_at: float
    suite: str | None = None
    run: str | None = None
    grading: str | None = None
    planned: int | None = None
    done: int = 0
    errors: int = 0
    verdict: Verdict | None = None
    detail: str | None = None

    @property
    def over(self) -> bool:
        """Whether the job is over."""
        return self.status not in ("waiting", "running")

    @classmethod
    def of(cls, row: JobRow) -> JobRecord:
        """Return the record of a job of the store."""
        return cls.model_validate({name: getattr(row, name) for name in cls.model_fields})


class MessageNews(BaseModel):
    """A message in an event: its role, the beginning of its text, and the tools it calls."""

    model_config = ConfigDict(frozen=True)

    role: str
    text: str
    calls: list[str] = Field(default_factory=list[str])

    @property
    def line(self) -> str:
        """Its text on a page."""
        return self.text or " ".join(f"→ {name}" for name in self.calls)


class JobEvent(BaseModel):
    """An event of a job; ids count from 1.

    `started` and `ended` are about the run, `held` means that a conversation has started, `turn` that the target has
    answered in it, and `graded` that it is over, with its scores. `done`, `errors` and `planned` are the counts of the
    job at that moment. The first and the last event have the job itself.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    kind: Literal["started", "held", "turn", "graded", "ended"]
    done: int
    errors: int
    planned: int | None = None
    sample_id: str | None = None
    target: str | None = None
    trial: int | None = None
    turn: int | None = None
    messages: list[MessageNews] = Field(default_factory=lambda: list[MessageNews]())
    scores: list[ScoreEntry] = Field(default_factory=lambda: list[ScoreEntry]())
    job: JobRecord | None = None


class EventFrame(NamedTuple):
    """An event as those who follow its job get it: a server-sent event, encoded once for all of them."""

    id: int
    kind: str
    data: bytes

    @classmethod
    def of(cls, event: JobEvent) -> Self:
        """Return the frame of an event."""
        return cls._with_json(event.id, event.kind, _json(event))

    @classmethod
    def of_stored(cls, fields: dict[str, Any]) -> Self:
        """Return the frame of an event that the store has."""
        return cls._with_json(fields["id"], fields["kind"], _json(fields))

    @classmethod
    def _with_json(cls, number: int, kind: str, text: str) -> Self:
        return cls(number, kind, f"id: {number}\r\nevent: {kind}\r\ndata: {text}\r\n\r\n".encode())


def _json(event: JobEvent | dict[str, Any]) -> str:
    try:
        return strict_json(event)
    except PydanticSerializationError:  # half a surrogate pair is inside
        return strict_json(to_jsonable_python(event, inf_nan_mode="strings", serialize_unknown=True))
