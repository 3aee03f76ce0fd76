"""The store in both databases: writing, copying from one to the other, and searching 100,000 scored samples."""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from replay import WORDS

from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.records.run import Attempt, AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.store import Store

sys.path.append(str(Path(__file__).parents[1] / "tests" / "store"))
from postgresql import server

RUNS = 100
EACH = 1000
RARE = 500
"""One conversation in so many has the word that is rare."""


def outcomes(run: int) -> Iterator[Outcome]:
    """Yield conversations of three turns with two grades each."""
    draw = random.Random(run)
    for number in range(EACH):
        turns = [
            Turn(
                index=index,
                messages=[
                    HumanMessage(content=" ".join(draw.choices(WORDS, k=25))),
                    AIMessage(content=" ".join(draw.choices(WORDS, k=40)) + (" zebra" if number % RARE == 0 else "")),
                ],
                seconds=0.5,
            )
            for index in range(3)
        ]
        attempt = Attempt(
            key=AttemptKey(f"sample-{number}", "bot", 0),
            scenario="hash",
            sample='{"id": "x", "tags": ["rare"]}' if number % RARE == 0 else '{"id": "x"}',
            trajectory=Trajectory(turns=turns),
            started_at=1.0,
            position=number,
        )
        reason = " ".join(draw.choices(WORDS, k=20))
        scores = {"goal": Score(value=draw.random(), reason=reason), "exact": Score(value=1)}
        yield Outcome(attempt=attempt, scores=scores)


async def write(store: Store, runs: range) -> float:
    """Write runs; return attempts a second, what it takes to make them left out."""
    seconds = 0.0
    for run in runs:
        store.add_run(Run(id=f"run-{run:03}", suite=f"bench-{run % 10}", spec={}, base="/", started_at=float(run)))
        store.add_grading(Grading(id=f"run-{run:03}.g1", run_id=f"run-{run:03}", spec={}, created_at=float(run)))
        outcome_list = list(outcomes(run))
        started = time.perf_counter()
        async with store.writer(f"run-{run:03}", f"run-{run:03}.g1", {}) as writer:
            for outcome in outcome_list:
                await writer.put(outcome)
        seconds += time.perf_counter() - started
    return len(runs) * EACH / seconds


def copy(source: Store, target: Store) -> float:
    """Copy a store; return attempts a second."""
    started = time.perf_counter()
    copied = source.maintenance.copy_to(target, lambda _run, _done, _count: None)
    return copied.attempts / (time.perf_counter() - started)


def search(store: Store) -> None:
    """Print how long it takes to read everything, and then to find something."""
    started = time.perf_counter()
    number = store.index_pending()
    seconds = time.perf_counter() - started
    print(f"  read for the first search: {number:,} texts in {seconds:.1f} s = {number / seconds:,.0f}/s")
    for words, run, what in (
        ("zebra", None, "a rare word"),
        ("refund delivery", None, "two words that are everywhere"),
        ("zebra refund", "run-050", "in one run"),
        ("nowhere", None, "a word that is not there"),
        ("refund suite:bench-3 before:1970-01-02", None, "in the runs of a suite"),
        ("refund state:fail grader:goal", None, "conversations and reasons that a grader failed"),
        ("refund role:assistant", None, "a word of one speaker"),
        ("zebra role:user", None, "a word that this speaker never says"),
        ("refund tag:rare", None, "conversations with a rare tag"),
        ("refund -delivery", None, "without a word"),
        ("state:fail", None, "an operator alone"),
    ):
        times: list[float] = []
        for _ in range(20):
            started = time.perf_counter()
            hits = store.searcher.find(words, run_id=run).hits
            times.append(time.perf_counter() - started)
        median, worst = statistics.median(times) * 1000, max(times) * 1000
        print(f"  {what}: {len(hits)} shown, {median:.1f} ms, at worst {worst:.1f} ms (asked: ≤ 100)")


def main() -> None:
    """Measure one database after the other."""
    with (
        tempfile.TemporaryDirectory() as folder,
        server(durable=True) as running,
        running.database() as address,
        Store.open(f"{folder}/x.db") as file,
        Store.open(address) as database,
        Store.open(f"{folder}/y.db") as again,
    ):
        print(f"SQLite: written {asyncio.run(write(file, range(RUNS))):,.0f} attempts/s")
        search(file)
        print(f"PostgreSQL: written {asyncio.run(write(database, range(10))):,.0f} attempts/s")
        print(f"  copied from SQLite: {copy(file, database):,.0f} attempts/s")
        search(database)
        print(f"SQLite: copied from PostgreSQL: {copy(database, again):,.0f} attempts/s")


if __name__ == "__main__":
    main()
