"""The public record of a job and its events: plain data for the API and its client."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.records.run import Verdict
from vivavoce.store.browse.listing import ScoreEntry
from vivavoce.store.jobs import JobRow

Kind = Literal["evaluation", "suite", "test", "grade", "resume", "demo"]
JobStatus = Literal["waiting", "running", "finished", "interrupted", "failed"]


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
