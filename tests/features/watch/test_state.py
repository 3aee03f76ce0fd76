"""What a watch of production saw, as pages, the API and the command line ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.features.watch.state import SILENT, alert_line, budget_lines, read_watch, watches
from vivavoce.records.run import Condition, Reason
from vivavoce.run.summary import GraderSummary
from vivavoce.stats.intervals import wilson
from vivavoce.store.store import Store
from watch_cases import HOUR, alert, bad, figures, good, judge, spending, told

NOW = 1_800_000_000.0
HERE = int(NOW // HOUR) * HOUR
RULE = Condition(aggregation="accuracy", op="gte", value=90.0)
RATED = GraderSummary(
    name="polite", target="r", scored=60, errors=0, skipped=0, samples=60, pass_rate=0.8, pass_low=0.7, pass_high=0.9
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "kept.db") as opened:
        yield opened


def test_hours_are_added_up_to_days_with_one_interval(store: Store) -> None:
    hours = {HERE: figures(8, 2, arrived=40), HERE - HOUR: figures(1, 0, errors=3), HERE - 60 * HOUR: figures(5, 5)}
    told(store, "live", NOW, hours)
    report = read_watch(store, "live", now=NOW)
    assert (len(report.periods), report.periods[-1].start, report.span) == (48, HERE, "48 hours")
    newest = report.periods[-1]
    assert (newest.arrived, newest.sampled, newest.judged) == (40, 10, 10)
    assert newest.rates["polite"].share == 0.8
    assert (newest.rates["polite"].low, newest.rates["polite"].high) == wilson(8, 10)
    assert (report.total.judged, report.total.broken, report.total.rates["polite"].scored) == (14, 3, 11)
    assert report.periods[0].rates == {}
    days = read_watch(store, "live", "day", now=NOW)
    assert (len(days.periods), days.total.judged, days.total.rates["polite"].scored) == (30, 24, 21)
    assert sum(period.judged for period in days.periods) == 24
    assert all(period.start % 86_400 == 0 for period in days.periods)


def test_without_a_score_there_is_no_rate(store: Store) -> None:
    told(store, "live", NOW, {HERE: figures(0, 0, errors=2)})
    rate = read_watch(store, now=NOW).total.rates["polite"]
    assert (rate.share, rate.low, rate.errors) == (None, None, 2)


def test_a_watch_that_says_nothing_any_more_is_silent_and_its_gate_says_nothing(store: Store) -> None:
    told(store, "live", NOW, alert=alert("ok"))
    assert [read_watch(store, now=NOW + after).condition for after in (0, SILENT, SILENT + 1)] == [
        "watching",
        "watching",
        "silent",
    ]
    assert read_watch(store, now=NOW).verdict == "pass"
    late = read_watch(store, now=NOW + 660)
    assert late.verdict == "inconclusive"
    assert late.note == "no report for 11 minutes: start viva watch again; data below is older"
    told(store, "live", NOW, alert=alert("firing"), ended_at=NOW)
    ended = read_watch(store, now=NOW + 3 * HOUR)
    assert (ended.condition, ended.verdict, ended.note) == (
        "ended",
        "fail",
        "stopped 3 hours ago; data below is older",
    )


def test_the_watch_that_was_heard_of_last_is_shown_unless_one_is_named(store: Store) -> None:
    with pytest.raises(UsageError, match="no production data"):
        read_watch(store)
    told(store, "one", NOW)
    told(store, "two", NOW + 1, alert=alert("firing"))
    assert [(watch.name, watch.verdict) for watch in watches(store, NOW)] == [("two", "fail"), ("one", None)]
    assert read_watch(store, now=NOW).name == "two"
    with pytest.raises(UsageError, match="no watch 'on'; did you mean 'one'"):
        read_watch(store, "on")


def test_conversations_that_failed_are_listed_newest_first(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    told(store, "live", NOW)
    judge(store, monkeypatch, [("a", NOW - 90_000, bad("old"))], run="live-0")
    judge(store, monkeypatch, [("a", NOW - 60, bad("one")), ("b", NOW - 50, good()), ("c", NOW - 40, bad("two"))])
    failures = read_watch(store, now=NOW).failing
    assert [(failure.run, failure.sample_id, failure.grader, failure.reason) for failure in failures] == [
        ("live-1", "c", "polite", "two"),
        ("live-1", "a", "polite", "one"),
        ("live-0", "a", "polite", "old"),
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (80.0, "polite: pass rate must be ≥ 90%; it is 80%, 95% interval 70.0% to 90.0%"),
        (60.0, "polite: pass rate must be ≥ 90%; it is 60%"),
    ],
)
def test_an_alert_is_said_with_the_interval_of_what_it_compares(value: float, words: str) -> None:
    reason = Reason(verdict="fail", code="threshold", graders={"polite": 1.0}, condition=RULE, found=value)
    state_alert = alert("firing", reasons=[reason], graders=[RATED])
    assert alert_line(state_alert) == f"{words} (60 conversations judged in the last 24 hours)"


def test_too_few_conversations_are_said_with_how_many_are_needed() -> None:
    state_alert = alert("undecided", conversations=7, window=5400.0)
    assert alert_line(state_alert) == "7 conversations judged in the last 90 minutes; the gate needs at least 30"


def test_a_budget_is_a_part_of_its_limit() -> None:
    lines = budget_lines(spending(calls=5, max_calls=20, cost=1.5))
    assert lines == [("calls", 0.25, "5 of 20"), ("cost", None, "$1.50")]
    assert budget_lines(spending(calls=3, max_calls=0, cost=9.0, max_cost=3.0)) == [
        ("calls", 1.0, "3 of 0"),
        ("cost", 1.0, "$9.00 of $3.00"),
    ]
