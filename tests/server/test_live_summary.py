from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from vivavoce.errors import StoreError
from vivavoce.report.graded_run import GradedRun
from vivavoce.run.summary import Summary
from vivavoce.server import live_summary as module
from vivavoce.server.live_summary import LiveSummary
from vivavoce.store.store import Store


@pytest.fixture
def over(store: Store) -> GradedRun:
    run = store.run("latest")
    return GradedRun(store, run, store.grading(run.id))


@pytest.fixture
def running(over: GradedRun) -> GradedRun:
    return replace(over, run=over.run.model_copy(update={"status": "running"}))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gradings that were counted, in order."""
    found: list[str] = []
    count: Callable[[GradedRun], Summary] = GradedRun.summary

    def noted(graded: GradedRun) -> Summary:
        found.append(graded.grading.id)
        return count(graded)

    monkeypatch.setattr(GradedRun, "summary", noted)
    return found


def test_all_who_look_at_a_moment_share_what_one_counted(running: GradedRun, counted: list[str]) -> None:
    live = LiveSummary()
    found = {id(live.summary(running)) for _ in range(50)}
    assert (len(found), len(counted)) == (1, 1)


def test_it_is_counted_again_when_it_is_old(
    running: GradedRun, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGE", 0.0)
    monkeypatch.setattr(module, "REST", 0.0)
    monkeypatch.setattr(module, "GRACE", 0.0)
    live = LiveSummary()
    live.summary(running)
    live.summary(running)
    assert len(counted) == 2


def wait_for_threads() -> None:
    for one in threading.enumerate():
        if one.name == "vivavoce-summary":
            one.join()


def test_who_comes_right_after_that_does_not_wait_for_it(
    running: GradedRun, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("AGE", 0.0), ("REST", 0.0), ("GRACE", 3600.0)):
        monkeypatch.setattr(module, name, seconds)
    live = LiveSummary()
    first = live.summary(running)
    assert live.summary(running) is first
    wait_for_threads()
    assert len(counted) == 2
    assert live.summary(running) is not first
    wait_for_threads()


def test_what_a_thread_could_not_count_is_told_to_who_asks_next(
    running: GradedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("AGE", 0.0), ("REST", 0.0), ("GRACE", 3600.0)):
        monkeypatch.setattr(module, name, seconds)
    live = LiveSummary()
    live.summary(running)

    def broken(graded: GradedRun) -> Summary:
        raise StoreError(f"{graded.store.place}: the disk refused to read")

    monkeypatch.setattr(GradedRun, "summary", broken)
    live.summary(running)
    wait_for_threads()
    monkeypatch.setattr(module, "GRACE", 0.0)
    with pytest.raises(StoreError, match="the disk refused to read"):
        live.summary(running)


def test_a_run_that_is_over_has_its_own(over: GradedRun, running: GradedRun) -> None:
    live = LiveSummary()
    assert live.summary(running).stopped is not None
    assert live.summary(over).stopped is None


def test_what_was_looked_at_long_ago_is_forgotten(
    running: GradedRun, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT", 1)
    again = running.grading.model_copy(update={"id": "again"})
    running.store.add_grading(again)
    live = LiveSummary()
    for graded in (running, replace(running, grading=again), running):
        live.summary(graded)
    assert counted == [running.grading.id, "again", running.grading.id]
