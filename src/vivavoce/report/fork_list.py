"""The forks that were made of the conversations of a run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from vivavoce.records.fork import Fork
from vivavoce.records.run import AttemptKey, Status
from vivavoce.store.store import Store


class ListedFork(BaseModel):
    """A run that goes on from a conversation of another one; `words` say from which and where."""

    model_config = ConfigDict(frozen=True)

    run: str
    status: Status
    started_at: float
    fork: Fork
    words: str


def forks_of(store: Store, run_id: str, key: AttemptKey | None = None) -> list[ListedFork]:
    """Return the forks of the conversations of a run, or of one of them, the oldest first."""
    found: list[ListedFork] = []
    for run in store.browse.parts_of(run_id):
        fork = run.fork
        if fork is None or (key is not None and key != (fork.sample, fork.target, fork.trial)):
            continue
        listed = {"run": run.id, "status": run.status, "started_at": run.started_at, "fork": fork, "words": fork.words}
        found.append(ListedFork.model_validate(listed))
    return found


def fork_lines(store: Store, run_id: str, key: AttemptKey, options: Sequence[str] = ()) -> Iterator[str]:
    """Yield a line for each fork of a conversation, with the command that shows it."""
    for one in forks_of(store, run_id, key):
        yield f"{one.words}: {shlex.join(['viva', 'show', one.run, *options])}"
