"""Traces become conversations, and each of them is judged once, in a run of its day."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from vivavoce.conversations.format import Loss, Member, Place, Row
from vivavoce.errors import StoreError, UsageError
from vivavoce.features.trends.trends import trend
from vivavoce.features.watch import handing, settling, watch
from vivavoce.features.watch.handing import Period
from vivavoce.features.watch.intake import span_pieces
from vivavoce.features.watch.receiver import Receiver
from vivavoce.features.watch.report import print_status
from vivavoce.features.watch.settling import Rules, is_sampled
from vivavoce.features.watch.spool import Spool
from vivavoce.features.watch.state import WatchState
from vivavoce.features.watch.suite import watching_metrics, watching_suite
from vivavoce.features.watch.watch import Watch, Watching
from vivavoce.pacing import limits
from vivavoce.records.run import Run
from vivavoce.report.graded_run import GradedRun
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.server.access import Access
from vivavoce.store.store import Store
from vivavoce.store.watches import WatchRow
from vivavoce.suites.experiment import open_regrading
from vivavoce.suites.load import Suite, load_suite
from vivavoce.testing import LoopbackServer

from .traffic import Json, attribute, export, post, turn

ONCE = Watching(Rules(), RunOptions(), once=True)


def refusal(name: str = "production") -> Suite:
    return watching_metrics(name, ["refusal"], None, None, 4)


def watch_of(spool: Spool, store: Store, how: Watching = ONCE, suite: Suite | None = None) -> Watch:
    return Watch(suite or refusal(), store, spool, how, lines.append)


lines: list[str] = []


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    lines.clear()
    monkeypatch.setattr(watch, "TICK", 0.05)


async def until(store: Store, *samples: str) -> None:
    """Wait until the store has these conversations."""
    async with asyncio.timeout(20):
        while not set(samples) <= set(judged_rows(store)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def judged_rows(store: Store, run: Run | None = None) -> dict[str, list[str]]:
    """Return the texts of every judged conversation by the id of its sample."""
    runs = [run] if run is not None else store.runs()
    return {
        outcome.attempt.key.sample_id: [message.text for message in outcome.attempt.trajectory.messages]
        for run in runs
        for outcome in store.outcomes(store.grading(run.id).id)
    }


async def take(receiver: Receiver, *spans: Json, **resource: str) -> None:
    assert (await post(receiver, export(*spans, **resource))).status == 200


async def test_turns_in_traces_of_their_own_become_one_conversation_in_the_run_of_the_day(
    receiver: Receiver, spool: Spool, store: Store
) -> None:
    await take(receiver, turn("a", 1), turn("b", 0, "I'm sorry, I can't help with that"))
    await take(receiver, turn("a", 0))
    await watch_of(spool, store).run()
    assert judged_rows(store) == {
        "a": ["question 0", "yes", "question 1", "yes"],
        "b": ["question 0", "I'm sorry, I can't help with that"],
    }
    (run,) = store.runs()
    assert run.id == f"production-{datetime.now(UTC):%Y-%m-%d}"
    assert (run.status, run.suite) == ("finished", "production")
    points = trend(store, "production").points
    assert [(point.run, point.mean, point.scored) for point in points] == [(run.id, 0.5, 2)]


async def test_what_is_silent_is_judged_and_what_goes_on_is_waited_for(
    receiver: Receiver, spool: Spool, store: Store
) -> None:
    watching = watch_of(spool, store, Watching(Rules(idle=1), RunOptions()))
    task = asyncio.create_task(watching.run())
    await take(receiver, turn("short", 0))
    turns = 0
    while "short" not in judged_rows(store):
        await take(receiver, turn("long", turns))
        turns += 1
        await asyncio.sleep(0.1)
    assert "long" not in judged_rows(store)
    await until(store, "long")
    watching.stop()
    await asyncio.wait_for(task, 5)
    assert len(judged_rows(store)["long"]) == 2 * turns
    assert store.runs()[0].status == "interrupted"


async def test_what_never_ends_is_judged_when_it_is_too_old_and_the_rest_by_itself(
    receiver: Receiver, spool: Spool, store: Store
) -> None:
    watching = watch_of(spool, store, Watching(Rules(idle=30, longest=0.3), RunOptions()))
    task = asyncio.create_task(watching.run())
    for number in range(10):
        await take(receiver, turn("endless", number))
        await asyncio.sleep(0.1)
    await until(store, "endless", "endless~2")
    watching.stop()
    await asyncio.wait_for(task, 5)
    assert {"endless", "endless~2"} <= set(judged_rows(store))


async def test_a_conversation_that_goes_on_after_it_was_judged_is_judged_again_as_a_new_version(
    receiver: Receiver, spool: Spool, store: Store
) -> None:
    await take(receiver, turn("a", 0))
    await watch_of(spool, store).run()
    await take(receiver, turn("a", 0))  # sent again
    await take(receiver, {**turn("a", 0), "spanId": "0" * 15 + "1", "attributes": []})  # says nothing new
    await watch_of(spool, store).run()
    assert set(judged_rows(store)) == {"a"}
    await take(receiver, turn("a", 1))
    await watch_of(spool, store).run()
    assert judged_rows(store) == {"a": ["question 0", "yes"], "a~2": ["question 0", "yes", "question 1", "yes"]}
    assert spool.counts["continued"] == 1


async def test_traffic_of_tests_is_kept_apart_unless_it_is_wanted(
    receiver: Receiver, spool: Spool, store: Store
) -> None:
    ours = b"viva".hex() + "0" * 24
    marked = turn("by attribute", 0)
    marked["attributes"].append(attribute("vivavoce.run", "nightly-1"))
    copied = turn("by baggage", 0)
    copied["attributes"].append(attribute("baggage.vivavoce.run", "nightly-1"))
    await take(receiver, turn("a", 0), turn("by trace", 0, trace=ours), marked, copied)
    await take(receiver, turn("by resource", 0), **{"vivavoce.run": "nightly-1"})
    await watch_of(spool, store).run()
    assert set(judged_rows(store)) == {"a"}
    assert spool.counts["of tests"] == 4


async def test_traffic_of_tests_is_judged_where_that_is_asked_for(
    receiver: Receiver, spool: Spool, store: Store
) -> None:
    await take(receiver, turn("a", 0, trace=b"viva".hex() + "0" * 24))
    await watch_of(spool, store, Watching(Rules(tests=True), RunOptions(), once=True)).run()
    assert set(judged_rows(store)) == {"a"}


async def test_a_sample_is_decided_by_the_id_alone(receiver: Receiver, spool: Spool, store: Store) -> None:
    ids = [f"c{number}" for number in range(200)]
    sampled_ids = {name for name in ids if is_sampled(name, 0.1)}
    assert 8 <= len(sampled_ids) <= 35
    assert sampled_ids <= {name for name in ids if is_sampled(name, 0.3)}
    await take(receiver, *(turn(name, 0) for name in ids))
    await watch_of(spool, store, replace(ONCE, rules=Rules(share=0.1))).run()
    assert set(judged_rows(store)) == sampled_ids
    assert spool.counts["not sampled"] == 200 - len(sampled_ids)


async def test_nothing_is_judged_twice_or_forgotten_when_it_is_stopped_in_the_middle(
    receiver: Receiver, spool: Spool, store: Store
) -> None:
    ids = [f"c{number}" for number in range(300)]
    await take(receiver, *(turn(name, 0) for name in ids))
    for seconds in (0.3, 0.4, 0.5, 60):
        watching = watch_of(spool, store, Watching(Rules(idle=0.1), RunOptions()))
        task = asyncio.create_task(watching.run())
        for _ in range(int(seconds / 0.02)):
            if len(judged_rows(store)) == len(ids):
                break
            await asyncio.sleep(0.02)
        watching.stop()
        await asyncio.wait_for(task, 10)
    (run,) = store.runs()
    keys = [attempt.key.sample_id for attempt in store.attempts(run.id)]
    assert sorted(keys) == sorted(ids)


async def test_a_budget_ends_judging_until_the_next_period_and_says_so(
    receiver: Receiver, spool: Spool, store: Store
) -> None:
    with LoopbackServer() as server:
        judge = f"{server.url}/v1#judge"
        suite = watching_metrics("production", ["safety"], judge, None, 1)
        await take(receiver, *(turn(f"c{number}", 0) for number in range(5)))
        options = RunOptions(max_calls=2, max_errors="100%")
        await watch_of(spool, store, Watching(Rules(), options, once=True), suite).run()
        assert server.requests
        assert len(server.requests) <= 2
    assert any("2 calls is reached" in line and "not judged" in line for line in lines)
    assert spool.counts["passed"] + spool.counts["judged"] == 5
    assert spool.counts["passed"] >= 3
    (run,) = store.runs()
    graded = GradedRun(store, run, store.grading(run.id))
    assert (run.status, graded.summary().verdict) == ("finished", "inconclusive")
    assert "2 calls is reached" in (graded.summary().stopped or "")
    result = await open_regrading(run.id, store=store).execute()  # with the metrics of the suite, and no limit
    assert result.stopped_by is None


async def test_while_a_judge_is_down_what_comes_in_waits_for_it(
    receiver: Receiver, spool: Spool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handing, "LOOKS_EVERY", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    suite = watching_metrics("production", ["safety"], f"http://127.0.0.1:{port}/v1#judge", None, 1)
    monkeypatch.setattr(limits, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(limits.Breaker.__init__, "__defaults__", (5, 0.1))
    await take(receiver, *(turn(f"c{number}", 0) for number in range(40)))
    options = RunOptions(max_errors="100%")
    await watch_of(spool, store, Watching(Rules(), options, once=True), suite).run()
    assert "the judge does not answer; the remaining conversations wait for the next start" in lines
    assert 5 <= len(judged_rows(store)) < 12
    watching = watch_of(spool, store, Watching(Rules(idle=0.05), options), suite)
    task = asyncio.create_task(watching.run())
    while "the judge does not answer; incoming conversations wait until it does" not in lines:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    with LoopbackServer(port=port):
        await until(store, *(f"c{number}" for number in range(40)))
        watching.stop()
        await asyncio.wait_for(task, 10)
    assert "the judge answers again" in lines
    (run,) = store.runs()
    failures = [outcome.scores["safety"].failure for outcome in store.outcomes(store.grading(run.id).id)]
    kinds = Counter(failure.kind for failure in failures if failure is not None)
    assert 10 <= kinds["connection"] < 25
    assert sum(kinds.values()) == 40  # an echo is not a verdict


async def test_a_run_that_goes_on_has_what_is_left_of_its_budget(
    receiver: Receiver, spool: Spool, store: Store
) -> None:
    with LoopbackServer() as server:
        suite = watching_metrics("production", ["safety"], f"{server.url}/v1#judge", None, 1)
        how = Watching(Rules(idle=0.05), RunOptions(max_calls=100, max_errors="100%"))
        await take(receiver, turn("a", 0))
        first = watch_of(spool, store, how, suite)
        task = asyncio.create_task(first.run())
        await until(store, "a")
        first.stop()
        await asyncio.wait_for(task, 10)
        used = len(server.requests)
    (run,) = store.runs()
    assert watch_of(spool, store, how, suite)._options(run).max_calls == 100 - used  # pyright: ignore[reportPrivateUsage]


async def test_other_metrics_begin_another_run_of_the_same_day(receiver: Receiver, spool: Spool, store: Store) -> None:
    await take(receiver, turn("a", 0))
    how = Watching(Rules(idle=0.05), RunOptions())
    first = watch_of(spool, store, how)
    task = asyncio.create_task(first.run())
    await until(store, "a")
    first.stop()
    await asyncio.wait_for(task, 5)
    await take(receiver, turn("b", 0))
    other = watching_metrics("production", [{"metric": "response_length", "threshold": 1}], None, None, 4)
    await watch_of(spool, store, ONCE, other).run()
    assert sorted(run.id[-2:] for run in store.runs()) == sorted(["-2", store.runs()[-1].id[-2:]])
    assert set(judged_rows(store)) == {"a", "b"}
    assert any("has changed since" in line for line in lines)
    assert {run.status for run in store.runs()} == {"finished"}


async def test_the_run_of_a_process_that_was_killed_is_finished_where_it_cannot_go_on(
    receiver: Receiver, spool: Spool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: object) -> None:
        raise asyncio.CancelledError

    await take(receiver, turn("a", 0))
    with monkeypatch.context() as patch:
        patch.setattr(ExperimentRun, "_finish", die)
        with pytest.raises(asyncio.CancelledError):
            await watch_of(spool, store, Watching(Rules(idle=0.05), RunOptions(), once=True)).run()
    (run,) = store.runs()
    assert (run.status, run.finished_at) == ("interrupted", None)
    await take(receiver, turn("b", 0))
    other = watching_metrics("production", [{"metric": "response_length", "threshold": 1}], None, None, 4)
    await watch_of(spool, store, ONCE, other).run()
    first = store.run(run.id)
    assert first.status == "finished"
    summary = GradedRun(store, first, store.grading(first.id)).summary()
    assert (summary.verdict, summary.attempts) == ("inconclusive", 1)
    assert set(judged_rows(store)) == {"a", "b"}


async def test_a_run_that_is_not_over_says_how_it_is_graded(receiver: Receiver, spool: Spool, store: Store) -> None:
    await take(receiver, turn("a", 0))
    watching = watch_of(spool, store, Watching(Rules(idle=0.05), RunOptions()))
    task = asyncio.create_task(watching.run())
    await until(store, "a")
    watching.stop()
    await asyncio.wait_for(task, 5)
    with pytest.raises(UsageError, match="viva watch --once, with its options, ends it now"):
        open_regrading(store.runs()[0].id, store=store)
    await watch_of(spool, store).run()
    assert (await open_regrading(store.runs()[0].id, store=store).execute()).summary.attempts == 1


async def test_hours_are_runs_of_their_own(receiver: Receiver, spool: Spool, store: Store) -> None:
    await take(receiver, turn("a", 0))
    await watch_of(spool, store, replace(ONCE, per="hour")).run()
    assert store.runs()[0].id == f"production-{datetime.now(UTC):%Y-%m-%dt%H}"
    day = handing.period_at(0.0, "day", "production", store)
    assert (day.run, day.ends) == ("production-1970-01-01", 86_400.0)


async def test_the_run_of_a_period_that_is_over_is_finished_and_the_rest_goes_to_the_next(
    receiver: Receiver, spool: Spool, store: Store
) -> None:
    opened = Period("production-yesterday", time.time() + 1)
    await spool.work(lambda database, _: handing.open_period(database, opened))
    await take(receiver, turn("a", 0))
    watching = watch_of(spool, store, Watching(Rules(idle=0.05), RunOptions()))
    task = asyncio.create_task(watching.run())
    await until(store, "a")
    await asyncio.sleep(1)
    await take(receiver, turn("b", 0))
    await until(store, "b")
    watching.stop()
    await asyncio.wait_for(task, 5)
    second, first = store.runs()
    assert (first.id, first.status) == ("production-yesterday", "finished")
    assert second.id.startswith("production-20")
    assert (set(judged_rows(store, first)), set(judged_rows(store, second))) == ({"a"}, {"b"})


async def test_graders_of_a_suite_judge_with_its_gate(
    receiver: Receiver, spool: Spool, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "suite.yaml").write_text(
        "name: shop\ndataset: none.jsonl\ntarget: {kind: function, function: 'bot.py:answer'}\n"
        "graders:\n  polite: {kind: rule, never: {assistant_says: sorry}}\n"
    )
    suite = watching_suite("live", load_suite(tmp_path / "suite.yaml"), 4)
    await take(receiver, turn("a", 0), turn("b", 0, "sorry"))
    await watch_of(spool, store, ONCE, suite).run()
    (run,) = store.runs()
    grading = store.grading(run.id)
    assert (run.suite, grading.verdict) == ("live", "fail")
    assert set(grading.fingerprints) == {"polite"}


HOSTILE: Sequence[Json] = [
    turn("a", 0, startTimeUnixNano="9" * 30, endTimeUnixNano="-5"),
    turn("b", 0, startTimeUnixNano={"x": 1}, endTimeUnixNano=None),
    turn("c", 0, endTimeUnixNano="1", startTimeUnixNano="99999999999999999999"),
    {**turn("d", 0), "parentSpanId": turn("d", 0)["spanId"]},
    turn("e\ud800\0" + "x" * 1000, 0),
    {**turn("f", 0), "attributes": [{"key": "gen_ai.input.messages", "value": {"stringValue": "[{"}}]},
    {**turn("g", 0), "attributes": "none"},
    {**turn("h", 0), "events": [{"attributes": 3}], "status": 7},
    *({**turn("i", number), "spanId": name} for number, name in enumerate(("", None, 3, "log of a bot", "\xff"))),
]


async def test_spans_that_lie_are_judged_by_what_was_said(receiver: Receiver, spool: Spool, store: Store) -> None:
    for span in HOSTILE:
        await take(receiver, span)
    await watch_of(spool, store).run()
    by_sample = judged_rows(store)
    assert {"a", "b", "c", "d", "i"} <= set(by_sample)
    assert by_sample.pop("i") == [text for number in range(5) for text in (f"question {number}", "yes")]
    assert all(texts == ["question 0", "yes"] for texts in by_sample.values())
    assert any(line.startswith("e?�xxx") and len(line) < 220 for line in by_sample)
    await watch_of(spool, store).run()
    assert len(store.runs()) == 1


async def test_spans_that_no_reader_was_made_for_do_not_keep_others_waiting(
    receiver: Receiver, spool: Spool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(spans: Iterable[Member], loss: Loss) -> Iterator[tuple[Place, Row]]:
        for place, row in span_pieces().conversations(spans, loss):
            if row["id"] == "c7":
                raise KeyError("unheard of")
            yield place, row

    monkeypatch.setattr(settling, "span_pieces", lambda: span_pieces()._replace(conversations=read))
    await take(receiver, *(turn(f"c{number}", 0) for number in range(20)))
    await watch_of(spool, store).run()
    assert set(judged_rows(store)) == {f"c{number}" for number in range(20)} - {"c7"}
    trace = turn("c7", 0)["traceId"]
    assert f"trace '{trace}' cannot be read: KeyError: 'unheard of'" in lines
    assert spool.counts["cannot be read"] == 1
    await watch_of(spool, store).run()
    assert spool.counts["cannot be read"] == 1


async def test_a_span_names_no_file_and_sets_no_field_of_a_suite(
    receiver: Receiver, spool: Spool, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("a secret")
    row: Any = {"rubric": "secret.txt", "policy": "secret.txt", "expect": [{"contains": "x"}], "state": {}}
    span = turn("a", 0)
    span["attributes"].append(attribute("vivavoce.row", json.dumps(row)))
    await take(receiver, span)
    await watch_of(spool, store).run()
    (run,) = store.runs()
    (attempt,) = store.attempts(run.id)
    assert set(json.loads(attempt.sample)) <= {"id", "metadata"}


async def test_a_judge_that_cannot_be_opened_is_found_before_anything_comes(spool: Spool, store: Store) -> None:
    suite = watching_metrics("production", ["safety"], "openai:gpt-none", None, 1)
    with pytest.raises(UsageError, match="key"):
        await asyncio.wait_for(watch_of(spool, store, Watching(Rules(), RunOptions()), suite).run(), 10)


async def test_a_disk_that_fails_ends_the_watch_and_what_was_taken_is_judged_by_the_next(
    receiver: Receiver, spool: Spool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise sqlite3.OperationalError("disk I/O error")

    await take(receiver, turn("a", 0))
    with monkeypatch.context() as patch:
        patch.setattr(settling, "begin", fail)
        with pytest.raises(StoreError, match="disk I/O error"):
            await asyncio.wait_for(watch_of(spool, store, Watching(Rules(), RunOptions())).run(), 10)
    assert len(asyncio.all_tasks()) == 1
    await watch_of(spool, store).run()
    assert set(judged_rows(store)) == {"a"}


async def test_a_second_watch_of_the_same_name_is_refused(spool: Spool) -> None:
    with pytest.raises(Exception, match="another viva watch uses"):
        await asyncio.to_thread(Spool, spool.path, 10**9)


async def test_what_was_acknowledged_is_there_after_the_file_is_opened_again(tmp_path: Path, store: Store) -> None:
    first = Spool(tmp_path / "x.traces", 10**9)
    await take(Receiver(first, Access.of(["127.0.0.1:4318"])), turn("a", 0))
    first.close()
    second = Spool(tmp_path / "x.traces", 10**9)
    await watch_of(second, store).run()
    assert set(judged_rows(store)) == {"a"}
    second.close()


async def test_two_receivers_of_a_store_say_that_they_do_not_join_turns(store: Store, tmp_path: Path) -> None:
    for name in ("ra", "rb"):
        spool = Spool(tmp_path / f"{name}.traces", 10**9)
        try:
            receiver = Receiver(spool, Access.of(["127.0.0.1:4318"]))
            await take(receiver, turn("a", 0 if name == "ra" else 1))
            await take(receiver, turn(f"only {name}", 0))
            await watch_of(spool, store, ONCE, refusal(name)).run()
        finally:
            spool.close()
        if name == "ra":
            assert not [line for line in lines if "cannot combine" in line]
    assert [line.partition(":")[0] for line in lines if "cannot combine" in line] == [
        "conversation 'a' was also judged by the watch 'ra'"
    ]
    states = {row.name: (row.state["split"], row.state["split_with"]) for row in store.watches.all()}
    assert states == {"ra": (0, None), "rb": (1, "ra")}
    assert print_status(str(store.place), "rb", check=False, as_json=False) == 0


async def test_a_receiver_is_told_of_another_that_runs(spool: Spool, store: Store) -> None:
    for name, ended_at, heard_at in (("runs", None, time.time()), ("ended", 1.0, time.time()), ("gone", None, 1.0)):
        state = WatchState(began_at=1.0, ended_at=ended_at).model_dump(mode="json")
        store.watches.put(WatchRow(name, heard_at, state), {})
    await watch_of(spool, store).run()
    assert [line.partition(":")[0] for line in lines] == ["the watch 'runs' also receives traces for this store"]


def chain(size: int) -> list[Json]:
    """Return a trace of spans, each below the one before; the last is a turn."""
    spans = [
        {"traceId": "c" * 32, "spanId": f"{n:016x}", "parentSpanId": f"{n - 1:016x}", "name": "x"}
        for n in range(1, size)
    ]
    return [*spans, turn("long", 0, trace="c" * 32, spanId=f"{size:016x}", parentSpanId=f"{size - 1:016x}")]


def hanging(bundles: set[int], groups: list[list[int]]) -> Callable[[settling.ReadingPlan], settling.Contents]:
    """Return how bundles are read in a process that is killed over some of them."""
    read = settling.read

    def kill(these: settling.ReadingPlan) -> settling.Contents:
        groups.append([due.bundle for due in these.due])
        if bundles.intersection(groups[-1]):
            raise asyncio.CancelledError
        return read(these)

    return kill


async def step(spool: Spool, read: Callable[[settling.ReadingPlan], settling.Contents]) -> list[str]:
    """Settle what is complete until nothing is left, or the process is killed."""
    rules, lines = Rules(idle=-1), list[str]()
    while True:
        plan = await spool.work(lambda database, counts: settling.begin(database, counts, rules, time.time()))
        lines += plan.left_out
        if not plan.due:
            return lines
        try:
            contents = read(plan)
        except asyncio.CancelledError:
            return lines
        finish = partial(settling.finish, rules=rules, plan=plan, contents=contents, now=time.time())
        await spool.work(lambda database, counts, finish=finish: finish(database, counts))


async def test_a_bundle_whose_reading_ended_the_process_twice_is_set_aside_and_the_others_are_judged(
    receiver: Receiver, spool: Spool
) -> None:
    await take(receiver, *(turn(name, 0) for name in "abcd"))
    groups: list[list[int]] = []
    read = hanging({2}, groups)
    assert await step(spool, read) == []
    assert await step(spool, read) == []
    (why,) = await step(spool, read)
    assert "is skipped: reading it failed 2 times" in why
    assert [group for group in groups if 2 in group] == [[1, 2, 3, 4], [2]]
    ids = await spool.work(lambda database, _: [row[0] for row in database.execute("SELECT id FROM talk ORDER BY id")])
    assert ids == ["a", "c", "d"]
    assert spool.counts["cannot be read"] == 1
    await take(receiver, turn("b", 1))
    assert len(await step(spool, read)) == 1  # what it becomes later is not read either


async def test_a_long_chain_is_judged_and_what_is_left_out_is_said(
    receiver: Receiver, spool: Spool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "MOST_SPANS", 50)
    await take(receiver, *reversed(chain(80)))
    await watch_of(spool, store).run()
    assert set(judged_rows(store)) == {"long"}
    assert any("30 of 80 spans are left out; a conversation is made of at most 50 spans" in line for line in lines)


async def test_bundles_are_read_together_as_far_as_their_spans_go(
    receiver: Receiver, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "MOST_SPANS", 2)
    await take(receiver, *(turn(name, 0) for name in "abcde"))
    groups: list[list[int]] = []
    await step(spool, hanging(set(), groups))
    assert groups == [[1, 2], [3, 4], [5]]


async def test_a_bundle_that_grows_while_it_is_read_is_read_again(receiver: Receiver, spool: Spool) -> None:
    await take(receiver, turn("a", 0))
    rules = Rules(idle=-1)
    plan = await spool.work(lambda database, counts: settling.begin(database, counts, rules, time.time()))
    contents = settling.read(plan)
    await take(receiver, turn("a", 1))
    finish = partial(settling.finish, rules=rules, plan=plan, contents=contents, now=time.time())
    await spool.work(lambda database, counts: finish(database, counts))
    assert await spool.work(lambda database, _: handing.waiting(database)) == 0
    await step(spool, settling.read)
    (row,) = await spool.work(
        lambda database, _: [json.loads(row[0]) for row in database.execute("SELECT row FROM talk")]
    )
    assert len(row["messages"]) == 4


async def test_reading_that_does_not_end_holds_up_neither_senders_nor_the_end(
    receiver: Receiver, spool: Spool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, go = threading.Event(), threading.Event()

    def hang(_: settling.ReadingPlan) -> settling.Contents:
        started.set()
        go.wait()
        raise AssertionError

    monkeypatch.setattr(settling, "read", hang)
    monkeypatch.setattr(watch, "END_SECONDS", 0.1)
    watching = watch_of(spool, store, Watching(Rules(idle=0.01), RunOptions()))
    task = asyncio.create_task(watching.run())
    await take(receiver, turn("a", 0))
    await asyncio.to_thread(started.wait)
    await take(receiver, turn("b", 0))
    watching.stop()
    await task
    go.set()


async def test_reading_that_takes_too_long_is_given_up_bundle_by_bundle(
    receiver: Receiver, spool: Spool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, read = threading.Event(), settling.read

    def hang(plan: settling.ReadingPlan) -> settling.Contents:
        if any(due.bundle == 1 for due in plan.due):
            go.wait()
        return read(plan)

    monkeypatch.setattr(settling, "read", hang)
    monkeypatch.setattr(watch, "READ_SECONDS", 0.1)
    await take(receiver, turn("a", 0), turn("b", 0))
    await watch_of(spool, store).run()
    go.set()
    assert set(judged_rows(store)) == {"b"}
    assert any("cannot be read: it takes more than" in line for line in lines)


async def test_work_of_the_spool_that_hangs_does_not_keep_the_watch_from_ending(
    spool: Spool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "END_SECONDS", 0.1)
    watching = watch_of(spool, store, Watching(Rules(idle=0.01), RunOptions()))
    task = asyncio.create_task(watching.run())
    while not store.watches.all():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    started, go = threading.Event(), threading.Event()
    busy = asyncio.create_task(spool.work(lambda _, __: (started.set(), go.wait())))
    await asyncio.to_thread(started.wait)
    watching.stop()
    await task
    assert any("still being read" in line for line in lines)
    go.set()
    await busy
