"""What a run needs of judges that are asked in batches; the feature `batches` has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from vivavoce.models.model import Model
    from vivavoce.records.run import Event
    from vivavoce.store.store import Store


class BatchesStopped(Exception):
    """Nothing more can be asked now; the text says why. Pending batches stay at their service."""


@dataclass(frozen=True, slots=True)
class Export:
    """What a file for a batch service has: the number of `questions`, and the `files` that have them.

    `answered_count` verdicts needed no request, because their answers are cached or no judge is needed. `broken` has a
    line for each verdict that no answer can provide, and why.
    """

    questions: int
    files: tuple[Path, ...]
    answered_count: int
    broken: tuple[str, ...]


class BatchedJudges(Protocol):
    """Judges that are asked in batches: they defer what they are asked, until a batch has the answers."""

    def open(self, model: Model) -> Model:
        """Return a model that is asked in batches.

        Raises:
            UsageError: it has no batch service, or the cost is limited and what a batch of it costs is unknown.
        """
        ...

    def rounds(self, store: Store, run_id: str, tell: Callable[[Event], Awaitable[None]]) -> BatchRounds:
        """Return the rounds of a run; `tell` gives events to its listeners."""
        ...

    def begin_pass(self) -> None:
        """Begin to ask."""
        ...

    def conversation(self) -> AbstractContextManager[None]:
        """Count what the answers used in the scores of one conversation, unless one of its questions is deferred."""
        ...

    def keep_paid(self) -> None:
        """Keep that what answers used is in scores."""
        ...


class BatchRounds(Protocol):
    """The rounds of a run: what a pass over its conversations asked is sent, and the answers are taken."""

    @property
    def questions(self) -> BatchedJudges:
        """The judges of the run."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """The requests that are pending when the run ends, in words."""
        ...

    async def begin(self, *, fresh: bool) -> None:
        """Find out which batches are pending already; `fresh` lets questions that failed in this run be asked again.

        Raises:
            BatchesStopped: a service cannot be reached.
        """
        ...

    async def next(self) -> None:
        """Send what the last pass asked for, wait for all that it needs, and take the answers.

        Raises:
            BatchesStopped: a limit is reached, a service refuses, or the run is stopped.
        """
        ...

    def stop(self) -> None:
        """Wait no longer; pending batches stay at their service. Any thread may say so."""
        ...

    def finish(self) -> None:
        """Keep that the run is complete, so that what its questions used is counted in no other one."""
        ...

    async def close(self) -> None:
        """Close the connections to the services."""
        ...
