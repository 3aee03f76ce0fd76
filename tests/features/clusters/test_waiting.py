"""Searches for clusters: what each costs, and who waits for whom."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi import Request
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.features.clusters import cache
from vivavoce.features.clusters.finding import ClusterResult, _Shares  # pyright: ignore[reportPrivateUsage]
from vivavoce.features.clusters.records import Clusters
from vivavoce.records.run import AttemptKey
from vivavoce.server.access import Access
from vivavoce.server.app import create_app
from vivavoce.server.users import User
from vivavoce.stats.intervals import mean_interval
from vivavoce.store.store import Store

NOTHING = Clusters(
    run="r", grading="g", grader=None, conversations=0, failed=0, failures=0, method="words", clusters=()
)
KEYS = st.sets(st.builds(AttemptKey, st.sampled_from("abcde"), st.just("bot"), st.integers(0, 4)), min_size=1)


class RunOf(NamedTuple):
    """What the search reads of a run."""

    id: str


class Sized:
    """Conversations that may be counted and not be looked at."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size


@given(KEYS, st.data())
def test_a_share_has_the_interval_of_all_conversations_without_a_look_at_them(
    everyone: set[AttemptKey], data: st.DataObject
) -> None:
    ordered = sorted(everyone)
    keys = data.draw(st.lists(st.sampled_from(ordered), unique=True))
    shares = _Shares(ordered, None)
    shares._everyone = Sized(len(ordered))  # pyright: ignore
    expected = mean_interval([float(key in keys) for key in ordered], [key.sample_id for key in ordered])
    assert expected is not None
    assert shares.of(keys) == pytest.approx((expected.mean, expected.low, expected.high))


def key(store: Store, grading: str, grader: str | None) -> tuple[str, int, str | None]:
    del store
    return grading, 0, grader


def run(store: Store, name: str) -> RunOf:
    del store
    return RunOf(name)


def grading(store: Store, run: str, name: str) -> str:
    del store, run
    return name


async def test_nobody_waits_for_the_clusters_of_another_run_or_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(str(tmp_path / "store.db")) as store:
        app = create_app(store, Access.of({"127.0.0.1:80"}))
    gate, started = threading.Event(), threading.Semaphore(0)

    def find(_: Any, grading: str, *, grader: str | None) -> ClusterResult:
        del grader
        started.release()
        assert grading != "long" or gate.wait(60)
        return ClusterResult(NOTHING.model_copy(update={"grading": grading}), {})

    monkeypatch.setattr(cache, "find_clusters", find)
    monkeypatch.setattr(cache, "_key", key)
    monkeypatch.setattr(Store, "run", run)
    monkeypatch.setattr(Store, "grading", grading)

    def search(user: str, grading: str, grader: str | None = None) -> asyncio.Task[ClusterResult]:
        request = Request({"type": "http", "app": app, "headers": [], "state": {"user": User(user, "read")}})
        return asyncio.create_task(cache.cluster_cache(request).find_in_turn(request, "r", grading, grader))

    greedy = [search("greedy", "long", name) for name in ("a", "b", "c")]
    assert await asyncio.to_thread(started.acquire, timeout=60)
    assert (await search("modest", "short")).report.grading == "short"
    assert started.acquire(timeout=60)
    assert not started.acquire(blocking=False)
    assert (await search("greedy", "short")).report.grading == "short"  # it is known
    gate.set()
    assert [search.report.grading for search in await asyncio.gather(*greedy)] == ["long"] * 3
