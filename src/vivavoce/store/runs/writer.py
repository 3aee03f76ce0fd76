"""Writing outcomes while a run goes on: many in one commit, each of them whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Score
from vivavoce.store.database.database import Database
from vivavoce.store.database.group_commit import GroupCommit, Items
from vivavoce.store.runs.committing import Committer
from vivavoce.store.runs.encode import Encoder
from vivavoce.store.runs.ids import attempt_ids
from vivavoce.store.runs.rows import Entry

OUTCOMES = Items("outcome", "outcomes", thread="vivavoce-store", closed="this writer is closed")


class OutcomeWriter:
    """Takes outcomes on the event loop and commits them in a thread of its own, in the order of `put`.

    After an error nothing more is written, and every call raises it: what was not stored is never passed over.
    """

    def __init__(self, database: Database, encoder: Encoder, *, replaces: bool = False) -> None:
        self._encoder = encoder
        committer = Committer(database.place, encoder.run_id, attempt_ids(), replaces=replaces)
        self._entries = GroupCommit[Entry](database, committer, OUTCOMES)

    async def put(self, outcome: Outcome) -> None:
        """Queue an outcome; waits while too many are pending.

        Raises:
            StoreError: this outcome cannot be written, or an earlier one could not.
        """
        await self._entries.put(self._encoder.outcome(outcome))

    async def put_scores(self, key: AttemptKey, scores: Mapping[str, Score], reward: Score | None) -> None:
        """Queue new scores of an attempt that is in the store.

        Raises:
            StoreError: as `put`, and later when the store has no such attempt.
        """
        await self._entries.put(self._encoder.scores(key, scores, reward))

    async def drain(self) -> None:
        """Wait until everything put so far is committed.

        Raises:
            StoreError: something could not be written.
        """
        await self._entries.drain()

    async def close(self) -> None:
        """Commit what is left and end the thread; a second call changes nothing.

        Raises:
            StoreError: something could not be written.
        """
        await self._entries.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
