"""The answers of judges in a cassette that is committed with the tests: used alone, or recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from vivavoce.errors import UsageError
from vivavoce.models.cache import read_replies
from vivavoce.records.replies import StoredReply
from vivavoce.store.replies import ReplyStore


@dataclass
class ReplayedReplies:
    """The replies of a cassette and no others: a question that is not in it has no reply."""

    path: Path

    @property
    def next_step(self) -> str:
        """How to record."""
        path = Path(os.path.relpath(self.path))
        where = f"{path} does not have it" if self.path.exists() else f"there is no file {path}"
        return f"{where}: record it with pytest --viva-record, and commit the file"

    @property
    def of_any_model(self) -> bool:
        """Yes: nobody is asked, whoever it is."""
        return True

    def get(self, key: str) -> str | None:
        """Return the reply of a key, None where there is none.

        Raises:
            UsageError: the file cannot be read.
        """
        return self._replies.get(key)

    async def put(self, reply: StoredReply) -> None:
        """Refuse: what is replayed is never asked.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{self.path} is being replayed, not recorded; the reply of {reply.model} cannot be added")

    def reject(self, key: str) -> None:
        """Do nothing: the file stays as it is until somebody records it again."""

    @cached_property
    def _replies(self) -> dict[str, str]:
        return {reply.key: reply.reply for reply in read_replies(self.path)} if self.path.exists() else {}


@dataclass
class RecordedReplies:
    """The replies of a cassette, then those of the store, and each new one.

    `store` has every new reply; `used` has the keys that the cassette lacks.
    """

    path: Path
    store: ReplyStore
    used: set[str] = field(default_factory=set[str])
    rejected: set[str] = field(default_factory=set[str])

    @property
    def next_step(self) -> str:
        """Nothing: who records asks."""
        return ""

    @property
    def of_any_model(self) -> bool:
        """Yes: a replay has to have all."""
        return True

    def get(self, key: str) -> str | None:
        """Return the reply of a key, None where there is none."""
        if key in self._recorded and key not in self.rejected:
            return self._recorded[key].reply
        self.used.add(key)
        return self.store.get(key)

    async def put(self, reply: StoredReply) -> None:
        """Keep a reply."""
        self.used.add(reply.key)
        await self.store.put(reply)

    def reject(self, key: str) -> None:
        """Take note that a reply cannot be used, so that the next one replaces it."""
        self.rejected.add(key)
        self.store.reject(key)

    @cached_property
    def _recorded(self) -> dict[str, StoredReply]:
        return _read_recorded(self.path)


@dataclass(frozen=True, slots=True)
class NewCassette:
    """What a cassette is to have: what it has, and the replies of the store that were `used`, which it lacks."""

    path: Path
    store: ReplyStore
    used: frozenset[str]

    def all(self, models: Sequence[str] = ()) -> Iterator[StoredReply]:
        """Yield the replies sorted by key, so that a diff shows what changed; of some models where they are named."""
        replies = _read_recorded(self.path)
        replies |= {reply.key: reply for reply in self.store.all() if reply.key in self.used}
        for key in sorted(replies):
            if not models or replies[key].model in models:
                yield replies[key]


def _read_recorded(path: Path) -> dict[str, StoredReply]:
    return {reply.key: reply for reply in read_replies(path)} if path.exists() else {}
