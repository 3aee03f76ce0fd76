"""What is kept of requests that were given to a batch service, so that nothing is asked or paid twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from vivavoce.records.failure import Failure
from vivavoce.records.usage import Usage

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
