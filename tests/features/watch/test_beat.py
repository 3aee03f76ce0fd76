"""A watch tells the store how it is doing, and decides the gate of its suite on what was judged last."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from vivavoce.features.watch import beat
from vivavoce.features.watch.beat import AlertRules
from vivavoce.features.watch.receiver import Receiver
from vivavoce.features.watch.settling import Rules
from vivavoce.features.watch.spool import Spool
from vivavoce.features.watch.state import Watched, read_watch
from vivavoce.features.watch.suite import watching_metrics, watching_suite
from vivavoce.features.watch.watch import Watch, Watching
from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.suites.load import Suite, load_suite
from vivavoce.testing import LoopbackServer

from .traffic import export, post, turn

ONCE = Watching(Rules(), RunOptions(), once=True, alert=AlertRules(least=4))
SUITE = """
name: shop
dataset: none.jsonl
target: {kind: function, function: 'bot.py:answer'}
graders:
  polite: {kind: rule, never: {assistant_says: sorry}}
gate: {kind: simple, metric_key: polite, aggregation: accuracy, op: gte, value: 60}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    (tmp_path / "suite.yaml").write_text(SUITE)
    return watching_suite("live", load_suite(tmp_path / "suite.yaml"), 4)


async def judge(
    receiver: Receiver, spool: Spool, store: Store, suite: Suite, *replies: str, how: Watching = ONCE
) -> Watched:
    """Judge conversations with one answer each, and return what is known of the watch."""
    spans = [turn(f"c{time.monotonic_ns()}-{at}", 0, answer) for at, answer in enumerate(replies)]
    if spans:
        assert (await post(receiver, export(*spans))).status == 200
    await Watch(suite, store, spool, how, lambda _: None).run()
    return read_watch(store, suite.spec.name)


async def test_the_gate_is_decided_on_what_was_judged_last_and_keeps_since_when(
    receiver: Receiver, spool: Spool, store: Store, suite: Suite
) -> None:
    few = await judge(receiver, spool, store, suite, "yes", "sorry")
    assert few.state.alert is not None
    assert (few.state.alert.state, few.state.alert.conversations, few.verdict) == ("undecided", 2, "inconclusive")
    fails = await judge(receiver, spool, store, suite, "sorry", "yes")
    assert fails.state.alert is not None
    (reason,) = fails.state.alert.reasons
    assert (fails.state.alert.state, fails.verdict, reason.found) == ("firing", "fail", 50.0)
    still = await judge(receiver, spool, store, suite, "sorry")
    assert still.state.alert is not None
    assert (still.state.alert.state, still.state.alert.conversations) == ("firing", 5)
    assert still.state.alert.since == fails.state.alert.since < still.state.alert.at
    holds = await judge(receiver, spool, store, suite, "yes", "yes", "yes")
    assert holds.state.alert is not None
    assert (holds.state.alert.state, holds.verdict) == ("ok", "pass")
    assert holds.state.alert.since == holds.state.alert.at


async def test_what_came_in_and_what_was_judged_is_known_by_hours_over_several_starts(
    receiver: Receiver, spool: Spool, store: Store, suite: Suite
) -> None:
    first = await judge(receiver, spool, store, suite, "yes", "sorry", "yes")
    assert (first.total.arrived, first.total.sampled, first.total.judged) == (3, 3, 3)
    assert [(rate.passed, rate.scored) for rate in first.total.rates.values()] == [(2, 3)]
    half = replace(ONCE, rules=Rules(share=0.0))
    second = await judge(receiver, spool, store, suite, *["yes"] * 5, how=half)
    assert (second.total.arrived, second.total.sampled, second.total.judged) == (8, 3, 3)
    assert second.state.share == 0.0
    assert (second.condition, second.state.once) == ("ended", True)
    assert len(second.failing) == 1


async def test_an_hour_whose_end_was_missed_is_counted_at_the_next_start(
    receiver: Receiver, spool: Spool, store: Store, suite: Suite
) -> None:
    await judge(receiver, spool, store, suite, "yes")
    row = store.watches.all()[0]
    store.watches.put(row, {hour: {} for hour in store.watches.hours("live", 0, 1e10)})
    assert read_watch(store, "live").total.judged == 0
    assert (await judge(receiver, spool, store, suite)).total.judged == 1


async def test_a_watch_tells_while_it_goes_on_and_says_when_it_stops(
    receiver: Receiver, spool: Spool, store: Store, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beat, "INTERVAL_SECONDS", 0.05)
    watching = Watch(suite, store, spool, Watching(Rules(idle=0.05), RunOptions()), lambda _: None)
    task = asyncio.create_task(watching.run())
    assert (await post(receiver, export(turn("a", 0)))).status == 200
    async with asyncio.timeout(20):
        while not (store.watches.all() and read_watch(store).total.judged):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert (read_watch(store).condition, read_watch(store).note) == ("watching", None)
    watching.stop()
    await asyncio.wait_for(task, 10)
    assert read_watch(store).condition == "ended"


async def test_what_a_run_used_of_its_limit_is_told(receiver: Receiver, spool: Spool, store: Store) -> None:
    with LoopbackServer() as server:
        suite = watching_metrics("live", ["safety"], f"{server.url}/v1#judge", None, 1)
        how = replace(ONCE, options=RunOptions(max_calls=2, max_errors="100%", cache=False))
        result = await judge(receiver, spool, store, suite, *["yes"] * 5, how=how)
        assert result.state.spending is not None
        assert result.state.spending.calls == len(server.requests)
        assert (result.state.spending.max_calls, result.state.spending.max_cost) == (2, None)
    assert result.state.spending.spent
    assert result.total.passed_over == 5 - result.total.judged
    assert (result.state.alert, result.verdict) == (None, None)
