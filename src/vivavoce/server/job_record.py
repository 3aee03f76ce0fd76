"""What is told of a job, and of what happens in it: plain data, for the API and for its client."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.records.run import Verdict
from vivavoce.store.browse.listing import ScoreEntry

Kind = Literal["evaluation", "suite", "test", "grade", "resume"]
JobStatus = Literal["waiting", "running", "finished", "interrupted", "failed"]


class JobRecord(BaseModel):
    """A job: work on one run, which the store keeps like any other.

    Of `planned` conversations, None where nobody knows how many, `done` are kept, `errors` of them with a score that
    broke. An `interrupted` job has left something, which another job can resume; `failed` says in `detail` why nothing
    could be run. `suite` is the file of the served folder that it uses. Times are seconds since the epoch.
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
        """Whether nothing more comes of it."""
        return self.status not in ("waiting", "running")


class Said(BaseModel):
    """A message as news have it: who said it, how it begins, and which tools it calls."""

    model_config = ConfigDict(frozen=True)

    role: str
    text: str
    calls: list[str] = Field(default_factory=list[str])

    @property
    def line(self) -> str:
        """What a page shows of it."""
        return self.text or " ".join(f"→ {name}" for name in self.calls)


class JobEvent(BaseModel):
    """Something that happened in a job; ids count from 1.

    `started` and `ended` say so of the run, `held` that a conversation has begun, `turn` that the target has answered
    in one, `graded` that it is over, with its scores. `done`, `errors` and `planned` are those of the job at that
    moment. The job itself is told at the start and at the end.
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
    messages: list[Said] = Field(default_factory=lambda: list[Said]())
    scores: list[ScoreEntry] = Field(default_factory=lambda: list[ScoreEntry]())
    job: JobRecord | None = None
