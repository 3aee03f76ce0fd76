"""What models were asked and answered, as the store keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.messages import AnyMessage, StoredMessages, ToolCall
from vivavoce.records.score import Failure, Usage


class StoredReply(NamedTuple):
    """One reply as it is kept: `reply` is JSON text, `created_at` in seconds since the epoch."""

    key: str
    model: str
    reply: str
    created_at: float


Then = Literal["give up", "ask again", "repair"]
"""What can be done about a question that failed: nothing; ask it again, as it was never answered; or ask for a better
answer than the one that came."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests that are submitted together, for a run that asks a model in batches.

    `model` is its name, `identity` sets it apart from every other. `file` is what the service calls the uploaded
    requests, `service_id` the batch; None as long as that is not known. `strangers` are batches at the service that
    were taken for this one and are not. `cause` says why it was refused. Times are seconds since the epoch.
    """

    id: str
    run_id: str
    model: str
    identity: str
    requests: int
    created_at: float
    file: str | None = None
    service_id: str | None = None
    strangers: tuple[str, ...] = ()
    ended_at: float | None = None
    cause: str | None = None


class AskedQuestion(NamedTuple):
    """A question in the batch that it was last asked in, by the key of its reply.

    `state` is `asked` until the batch has ended, and then `answered` or `failed`; `failure` is that of a failed one,
    `then` what can be done about it. `tries` counts how often the run has asked it, `answers` how often it was
    answered. `usage` is what that used and is in no score yet.
    """

    key: str
    batch_id: str
    run_id: str
    state: str
    tries: int
    answers: int
    failure: Failure | None = None
    then: Then = "give up"
    usage: Usage | None = None


class JudgeCall(BaseModel):
    """One question to a judge, with the reply that is kept.

    The turns that it is about are indexes from 0, both None where that is not known. `messages` is the request as it
    was sent, `answer_schema` the JSON schema of the answer, and `settings` what went with it. `trial` counts
    repetitions of the same question from 0.

    `text` is the reply as it came, None where none is kept; `parsed` what was read in it, and `applied` how it was
    asked for and read. `usage` is what the reply used when the model was asked, at `asked_at` (seconds since the
    epoch); `cached` means that this was earlier, for another score, and cost nothing here. `repair` are the first
    answer, which missed the schema, and the request for a better one.
    """

    model_config = ConfigDict(frozen=True)

    model: str
    first_turn: int | None = None
    last_turn: int | None = None
    trial: int = 0
    messages: StoredMessages
    answer_schema: dict[str, Any] | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    text: str | None = None
    parsed: dict[str, Any] | None = None
    tool_calls: list[ToolCall] = Field(default_factory=lambda: list[ToolCall]())
    usage: Usage | None = None
    applied: dict[str, Any] = Field(default_factory=dict)
    asked_at: float | None = None
    cached: bool = False
    repair: StoredMessages = Field(default_factory=lambda: list[AnyMessage]())


class JudgeExchange(BaseModel):
    """What a judge was asked for the score of a grader, one call after the other.

    It is put together again from the conversation and from the grader, and given only where it is proven: each reply
    was kept under the hash of just this request, and together they give just this score. Otherwise there are no calls,
    and `missing` says why.
    """

    model_config = ConfigDict(frozen=True)

    grader: str
    calls: list[JudgeCall] = Field(default_factory=lambda: list[JudgeCall]())
    missing: str = ""

    def about(self, turn: int) -> JudgeExchange:
        """Return the calls about a turn, counted from 0."""
        calls = [
            call
            for call in self.calls
            if (call.first_turn or 0) <= turn <= (turn if call.last_turn is None else call.last_turn)
        ]
        return self.model_copy(update={"calls": calls})
