"""The port to batch services: what one must do so that questions to a model can be asked there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from vivavoce.errors import ModelFault
from vivavoce.models.model import ModelReply, Request
from vivavoce.records.batch import Batch, Then
from vivavoce.wire.http import Limits

LIMITS = Limits(concurrency=4, timeout=600.0, size=1_000_000_000)
"""Files of many answers are large, and take their time."""
MOST_BYTES = 64_000_000
"""Bytes of requests in one batch: less than any service takes, since they are in memory while they are sent."""


class State(NamedTuple):
    """How far a batch is: what its service says of it.

    `settled` requests have ended, `broken` of them without an answer. `outputs` are files of the service with what came
    of them. Of a batch that was refused as a whole `cause` says why, and `too_much` whether it, or part of it, may be
    sent again when others have ended.
    """

    id: str
    stage: Literal["going", "ended", "refused"]
    settled: int = 0
    broken: int = 0
    outputs: tuple[str, ...] = ()
    cause: str = ""
    too_much: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of one question: a `reply`, or a `fault`, and what can then be done about it.

    `custom_id` is what the service calls the question.
    """

    custom_id: str
    reply: ModelReply | None = None
    fault: ModelFault | None = None
    then: Then = "give up"


class Prepared(NamedTuple):
    """A question as one line of a batch; `most_output` is the tokens that its answer may have, None for unbounded."""

    line: bytes
    most_output: int | None


class BatchService(Protocol):
    """A service that answers many questions to one model within a day.

    Every call may raise a `ModelFault` or `RateLimited`; those that change something there are made once, and whoever
    calls finds out with `find` whether one that broke has taken effect. `takes_files` is whether the requests have to
    be uploaded before a batch is made of them.
    """

    @property
    def most_requests(self) -> int:
        """How many requests one batch takes at most."""
        ...

    @property
    def takes_files(self) -> bool:
        """Whether the requests have to be uploaded first."""
        ...

    async def prepare(self, custom_id: str, request: Request) -> Prepared:
        """Return a question as one line of a batch, without sending it.

        Raises:
            ModelFault: it cannot be asked in a batch (kind `unsupported`).
        """
        ...

    async def upload(self, lines: Sequence[bytes], name: str) -> str:
        """Send requests as a file of this name, and return what the service calls it."""
        ...

    async def create(self, lines: Sequence[bytes], file: str | None) -> State:
        """Make a batch of an uploaded file, or of the requests themselves where the service takes no files."""
        ...

    async def find(self, batch: Batch, known: Collection[str]) -> str | None:
        """Return the service's own id of a batch that may have been made, None where it was not.

        `known` are the ids of other batches.
        """
        ...

    async def look(self, service_id: str) -> State:
        """Return how far a batch is."""
        ...

    async def cancel(self, service_id: str) -> None:
        """Ask the service to answer no more of a batch; what it has answered stays, and is charged."""
        ...

    def results(self, state: State) -> AsyncIterator[Settled]:
        """Yield what came of each question of a batch that has ended."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
