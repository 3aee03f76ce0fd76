"""Working through parts: deaths, limits, interruptions; the workers are made up, the order of things is real."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vivavoce.features.parts.job import Part
from vivavoce.features.parts.pool import TRIES, Ended, Progress, shard_of, work_through
from vivavoce.features.parts.work import Allowance, Share, Worked
from vivavoce.files.places import Folder
from vivavoce.run.workers import INTERRUPTED

from .cases import begun, write_jsonl

Work = Callable[[Part, Share, int], Worked | str]


class Made:
    """Workers that do what a function says: of a part, its share, and how often it was begun."""

    def __init__(self, work: Work, size: int = 2) -> None:
        self.size, self._work = size, work
        self.given: list[tuple[Part, Share]] = []
        self.begun: dict[str, int] = {}
        self.most = 0
        self.closed = False

    def begin(self, part: Part, share: Share) -> None:
        self.given.append((part, share))
        self.begun[part.name] = self.begun.get(part.name, 0) + 1
        self.most = max(self.most, len(self.given))

    def wait(self) -> Ended:
        part, share = self.given.pop(0)
        came = self._work(part, share, self.begun[part.name])
        return Ended(part, share, died=came) if isinstance(came, str) else Ended(part, share, came)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def parts(tmp_path: Path) -> list[Part]:
    write_jsonl(tmp_path / "a.jsonl", range(10))
    return begun(Folder(str(tmp_path / "out")), [str(tmp_path / "a.jsonl")], rows=2).parts


def through(parts: list[Part], pool: Made, allowance: Allowance | None = None) -> Progress:
    progress = Progress(len(parts))
    work_through(parts, pool, allowance or Allowance(pool.size), progress, lambda _: None)
    assert pool.closed
    return progress


def done(part: Part, share: Share, number: int) -> Worked:
    del share, number
    return Worked(part.name, is_done=True, conversations=part.piece.rows, calls=part.piece.rows, cost=0.25)


def test_all_parts_are_done_by_as_many_workers_as_there_are(parts: list[Part]) -> None:
    pool = Made(done, size=3)
    progress = through(parts, pool)
    assert set(progress.done) == {part.name for part in parts}
    assert (progress.conversations, progress.calls, progress.cost) == (10, 10, 1.25)
    assert pool.most == 3
    assert progress.stopped is None


def test_a_part_whose_worker_died_is_worked_on_again(parts: list[Part]) -> None:
    def work(part: Part, share: Share, number: int) -> Worked | str:
        return "killed" if part is parts[1] and number == 1 else done(part, share, number)

    progress = through(parts, Made(work))
    assert len(progress.done) == len(parts)
    assert (progress.deaths, progress.broken) == (1, {})


def test_a_part_that_kills_its_workers_is_given_up_and_named(parts: list[Part]) -> None:
    def work(part: Part, share: Share, number: int) -> Worked | str:
        return "out of memory" if part is parts[1] else done(part, share, number)

    progress = through(parts, Made(work))
    assert len(progress.done) == len(parts) - 1
    assert progress.deaths == TRIES
    assert progress.broken == {str(parts[1]): f"{TRIES} workers died over it; the last: out of memory"}


def test_a_broken_file_is_named_and_the_rest_is_done(parts: list[Part]) -> None:
    def work(part: Part, share: Share, number: int) -> Worked:
        broken = Worked(part.name, is_done=False, broken="cannot be read")
        return broken if part is parts[0] else done(part, share, number)

    progress = through(parts, Made(work))
    assert progress.broken == {str(parts[0]): "cannot be read"}
    assert len(progress.done) == len(parts) - 1


class Spending:
    """Every row takes a call, as far as the share goes; what a part has had is kept for the next time."""

    def __init__(self) -> None:
        self.had: dict[str, int] = {}
        self.least = 1

    def work(self, part: Part, share: Share, number: int) -> Worked:
        del number
        before = self.had.get(part.name, 0)
        wanted = part.piece.rows - before
        calls = min(wanted, share.max_calls if share.max_calls is not None else wanted)
        calls -= calls % self.least
        self.had[part.name] = before + calls
        finished = self.had[part.name] == part.piece.rows
        return Worked(
            part.name, is_done=finished, conversations=part.piece.rows, calls=calls, why="the limit is reached"
        )


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("limit", [0, 1, 5, 9, 10, 50])
def test_a_limit_is_used_up_and_never_exceeded(limit: int, size: int, parts: list[Part]) -> None:
    spending = Spending()
    progress = through(parts, Made(spending.work, size), Allowance(size, max_calls=limit))
    assert progress.calls == min(limit, 10)
    assert (progress.stopped is None) == (limit >= 10)


def test_what_is_left_goes_to_one_part_where_a_share_is_too_small_for_anything(parts: list[Part]) -> None:
    spending = Spending()
    spending.least = 2
    progress = through(parts, Made(spending.work, 2), Allowance(2, max_calls=3))
    assert progress.calls == 2
    assert len(progress.done) == 1
    assert progress.stopped == "the limit is reached"


def test_an_interruption_ends_the_work_and_keeps_what_is_done(parts: list[Part]) -> None:
    def work(part: Part, share: Share, number: int) -> Worked:
        if part is parts[2]:
            raise KeyboardInterrupt
        return done(part, share, number)

    progress = through(parts, Made(work))
    assert progress.stopped == INTERRUPTED
    assert len(progress.done) == 2


def test_a_run_that_was_told_to_stop_stops_all(parts: list[Part]) -> None:
    def work(part: Part, share: Share, number: int) -> Worked:
        stopped = Worked(part.name, is_done=False, calls=1, why=INTERRUPTED)
        return stopped if part is parts[0] else done(part, share, number)

    progress = through(parts, Made(work, size=1))
    assert (progress.stopped, len(progress.done)) == (INTERRUPTED, 0)


def test_shards_have_every_part_once(parts: list[Part]) -> None:
    shards = [shard_of(parts, number, 3) for number in (1, 2, 3)]
    assert sorted(part.name for shard in shards for part in shard) == [part.name for part in parts]
