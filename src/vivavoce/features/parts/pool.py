"""Working through the parts of a job: by one process after the other, or by many at a time."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from vivavoce.features.parts.job import Job, Part
from vivavoce.features.parts.work import Allowance, Share, Worked, Worker
from vivavoce.files.places import Folder
from vivavoce.run.execution import execute
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.summary import RunResult
from vivavoce.run.workers import INTERRUPTED

TRIES = 3
"""How many workers may die over a part before it is given up."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of work on a part; without `worked` its worker died, as `died` says."""

    part: Part
    share: Share
    worked: Worked | None = None
    died: str = ""


class Pool(Protocol):
    """Workers, of which `size` work at a time."""

    @property
    def size(self) -> int:
        """How many parts are worked on at a time."""
        ...

    def begin(self, part: Part, share: Share) -> None:
        """Give a part to a worker that is free."""
        ...

    def wait(self) -> Ended:
        """Wait until a worker is done with its part.

        Raises:
            UsageError: the suite is wrong.
        """
        ...

    def close(self) -> None:
        """End the workers; what is not done goes on another time."""
        ...


@dataclass(slots=True)
class Progress:
    """How far a job is: what came of its parts, those of earlier times among them.

    All parts have `planned` conversations, as far as their files could be read. `begun` has for each unfinished part
    how many conversations of it are kept for the next time. `broken` says why a part, or a file without parts, could
    not be read, and `stopped` why the work ended early.
    """

    parts: int
    planned: int = 0
    done: dict[str, Worked] = field(default_factory=dict[str, Worked])
    begun: dict[str, int] = field(default_factory=dict[str, int])
    broken: dict[str, str] = field(default_factory=dict[str, str])
    deaths: int = 0
    calls: int = 0
    cost: float = 0.0
    stopped: str | None = None

    @property
    def conversations(self) -> int:
        """How many conversations are in the files of parts."""
        return sum(one.conversations for one in self.done.values())

    @property
    def judged(self) -> int:
        """How many conversations are judged, those of unfinished parts included."""
        return self.conversations + sum(self.begun.values())

    @property
    def errors(self) -> int:
        """How many of these have an error."""
        return sum(one.errors for one in self.done.values())

    @property
    def problems(self) -> int:
        """How many rows are not conversations."""
        return sum(one.problems for one in self.done.values())


Tell = Callable[[Progress], None]


def work_through(parts: Iterable[Part], pool: Pool, allowance: Allowance, progress: Progress, tell: Tell) -> None:
    """Work on parts until all are done, nothing more may be spent, or somebody interrupts.

    Raises:
        UsageError: the suite is wrong.
    """
    work = _Work(deque(parts), pool, allowance, progress)
    try:
        while work.begin():
            work.settle(pool.wait())
            tell(progress)
            if progress.stopped is not None:
                return
    except KeyboardInterrupt:
        progress.stopped = INTERRUPTED
    finally:
        pool.close()


@dataclass(slots=True)
class _Work:
    todo: deque[Part]
    pool: Pool
    allowance: Allowance
    progress: Progress
    running: int = 0
    stuck: str | None = None
    last: Share | None = None
    deaths: Counter[str] = field(default_factory=Counter[str])

    def begin(self) -> bool:
        """Give parts to free workers, and return whether there is anything to wait for.

        Once a share was too little for anything, all shares have to come back, and one part gets all that is left.
        """
        most = 1 if self.stuck is not None else self.pool.size
        while self.todo and self.running < most:
            share = self.allowance.share(whole=self.stuck is not None)
            if share is None:
                break
            self.last = share if self.stuck is not None else None
            self.pool.begin(self.todo.popleft(), share)
            self.running += 1
        if not self.running and self.todo:
            self.progress.stopped = self.stuck or "the limit on calls or cost is reached"
        return self.running > 0

    def settle(self, ended: Ended) -> None:
        """Take note of what came of a part."""
        self.running -= 1
        worked = ended.worked
        if worked is None:
            self._died(ended)
            return
        self.allowance.returned(ended.share, worked.calls, worked.cost)
        self.progress.calls += worked.calls
        self.progress.cost += worked.cost
        self.progress.begun.pop(worked.name, None)
        if not worked.is_done and worked.kept:
            self.progress.begun[worked.name] = worked.kept
        if worked.broken is not None:
            self.progress.broken[str(ended.part)] = worked.broken
        elif worked.is_done:
            self.progress.done[worked.name] = worked
        elif worked.is_over or worked.why == INTERRUPTED:
            self.progress.stopped = worked.why
        else:
            self._ended_early(ended, worked)

    def _ended_early(self, ended: Ended, worked: Worked) -> None:
        """Continue a part whose share was spent; where even all that is left is too little, that ends the work."""
        self.todo.append(ended.part)
        if worked.calls:
            self.stuck = None
        elif ended.share is self.last:
            self.progress.stopped = worked.why
        else:
            self.stuck = worked.why

    def _died(self, ended: Ended) -> None:
        self.allowance.lost(ended.share)
        self.progress.deaths += 1
        self.deaths[ended.part.name] += 1
        if self.deaths[ended.part.name] < TRIES:
            self.todo.appendleft(ended.part)
        else:
            self.progress.broken[str(ended.part)] = f"{TRIES} workers died over it; the last: {ended.died}"


class OneProcess:
    """Works on one part at a time, in this process."""

    size = 1

    def __init__(self, job: Job, folder: Folder, scratch: Path) -> None:
        self._worker = Worker(job, folder, scratch, _interruptible)
        self._given: tuple[Part, Share] | None = None

    def begin(self, part: Part, share: Share) -> None:
        """Take a part."""
        self._given = (part, share)

    def wait(self) -> Ended:
        """Work on it.

        Raises:
            UsageError: the suite is wrong.
        """
        assert self._given is not None
        part, share = self._given
        return Ended(part, share, self._worker.work_on(part, share))

    def close(self) -> None:
        """Close what is open."""
        self._worker.close()


def _interruptible(work: ExperimentRun) -> RunResult:
    return execute(work, partial(work.stop))


def shard_of(parts: Iterable[Part], number: int, of: int) -> list[Part]:
    """Return the parts of a shard, counted from 1, of so many."""
    return [part for at, part in enumerate(parts) if at % of == number - 1]
