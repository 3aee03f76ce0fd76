from __future__ import annotations

import pytest

from store.cases import BROKEN
from vivavoce.records.score import failed
from vivavoce.store.store import Store
from vivavoce.store.watches import WatchedRun, WatchRow
from watch_cases import HOUR, bad, good, judge

NOON = 1_800_000_000 // HOUR * HOUR


def test_what_a_watch_tells_replaces_what_it_told(store: Store) -> None:
    store.watches.put(WatchRow("a", 1.0, {"waiting": 1}), {0: {"judged": 1}, HOUR: {"judged": 2}})
    store.watches.put(WatchRow("b\ud800'", 3.0, {}), {})
    store.watches.put(WatchRow("a", 2.0, {"waiting": 4}), {HOUR: {"judged": 3}})
    assert [(one.name, one.heard_at, one.state) for one in store.watches.all()] == [
        ("b\\ud800'", 3.0, {}),
        ("a", 2.0, {"waiting": 4}),
    ]
    assert store.watches.hours("a", 0, 2 * HOUR) == {0: {"judged": 1}, HOUR: {"judged": 3}}
    assert store.watches.hours("a", HOUR, 2 * HOUR) == {HOUR: {"judged": 3}}
    assert store.watches.hours("b", 0, 2 * HOUR) == {}


def test_scores_belong_to_the_time_at_which_they_were_stored(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = failed(BROKEN, name="polite", fingerprint="p")
    scores = [
        ("early", NOON - 1.0, good()),
        ("first", NOON + 0.0, good()),
        ("rude", NOON + 30.0, bad()),
        ("broken", NOON + 60.0, broken),
        ("late", NOON + HOUR, good()),
    ]
    mine = [judge(store, monkeypatch, scores)]
    found = store.watches.score_counts(mine, NOON, NOON + HOUR)
    assert sorted((one.name, one.state, one.passed, one.number) for one in found if one.state == "scored") == [
        ("polite", "scored", False, 1),
        ("polite", "scored", True, 1),
    ]
    assert [(one.state, one.passed, one.number) for one in found if one.state != "scored"] == [("error", None, 1)]
    assert store.watches.status_counts(mine, NOON, NOON + HOUR) == {"pass": 1, "fail": 1, "error": 1}
    rows = store.watches.scores(mine, NOON, NOON + HOUR)
    assert [(one.key.sample_id, one.passed) for one in rows] == [("first", True), ("rude", False), ("broken", None)]
    assert store.watches.score_counts([], NOON, NOON + HOUR) == []


def test_only_the_runs_of_the_watch_in_that_time_count(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    day = 24 * HOUR
    for at, run, known in (
        (NOON, "today", {}),
        (NOON - day, "yesterday", {}),
        (NOON - 3 * day, "before", {}),
        (NOON, "other", {"name": "other"}),
        (NOON, "tested", {"dataset": "rows.jsonl"}),
    ):
        judge(store, monkeypatch, [("a", float(at), good())], run=run, **known)
    assert store.watches.runs("live", NOON, NOON + HOUR) == [
        WatchedRun("yesterday", "yesterday-g1"),
        WatchedRun("today", "today-g1"),
    ]


def quiet(*progress: object) -> None:
    """Take what is said of the progress."""


def test_a_copy_has_the_watches_and_their_hours(store: Store, other_address: str) -> None:
    store.watches.put(WatchRow("a", 1.0, {"waiting": 1}), {0: {"judged": 1}})
    with Store.open(other_address) as other:
        other.watches.put(WatchRow("b", 2.0, {}), {0: {"judged": 7}})
        for _ in range(2):
            store.maintenance.copy_to(other, quiet)
        assert [one.name for one in other.watches.all()] == ["b", "a"]
        assert other.watches.hours("a", 0, HOUR) == {0: {"judged": 1}}
        assert other.watches.hours("b", 0, HOUR) == {0: {"judged": 7}}
