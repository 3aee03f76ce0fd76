"""`evaluate` a second time: gone on with, from kept answers, for long streams, with shared metrics."""

from __future__ import annotations

import asyncio
import gc
import json
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from vivavoce import RunOptions, RunResult, Store, UsageError, aevaluate, evaluate
from vivavoce.metrics import AllOf, Panel, SafetyMetric
from vivavoce.models.openai import OpenAIModel
from vivavoce.records.run import AttemptEnded, Event
from vivavoce.settings import settings
from vivavoce.suites.experiment import open_regrading, reopen_run, run_suite
from vivavoce.testing import LoopbackServer, ScriptedModel

from .talks import SAFE, Row, judge, rows, scores, stream_rows, talk, write_rows


class Interrupting:
    """A listener that breaks after some conversations."""

    def __init__(self, after: int) -> None:
        self.left = after

    async def on(self, event: Event) -> None:
        self.left -= isinstance(event, AttemptEnded)
        if self.left < 0:
            raise KeyError("interrupted here")


@pytest.mark.parametrize("form", [list[Row], iter, stream_rows])
async def test_a_run_gone_on_with_equals_an_undisturbed_one(server: LoopbackServer, model: str, form: Any) -> None:
    calm = await aevaluate(rows(12), ["safety", "refusal"], model=model, options=RunOptions(cache=False))
    request_count = len(server.requests)
    uncached = RunOptions(cache=False)
    with pytest.raises(KeyError) as caught:
        await aevaluate(
            form(rows(12)),
            ["safety", "refusal"],
            model=model,
            options=uncached,
            listeners=[Interrupting(5)],
            max_concurrent=1,
        )
    run = caught.value.__notes__[0].partition("resume='")[2].rstrip("'")
    new_count = len(server.requests) - request_count
    assert 6 <= new_count < 12
    result = await aevaluate(form(rows(12)), ["safety", "refusal"], model=model, options=uncached, resume=run)
    assert len(server.requests) == request_count + 12, "nothing is asked twice"
    assert result.run.id == run
    assert result.summary == calm.summary
    for name in ("safety", "refusal"):
        assert scores(result, name) == scores(calm, name)


async def test_a_run_that_was_cancelled_keeps_what_it_had_and_is_gone_on_with(
    server: LoopbackServer, model: str
) -> None:
    server.delay = 0.01
    uncached = RunOptions(cache=False)

    class Cancelling:
        left = 4

        async def on(self, event: Event) -> None:
            self.left -= isinstance(event, AttemptEnded)
            if not self.left:
                running.cancel()

    measuring = aevaluate(
        rows(20), ["safety"], model=model, options=uncached, max_concurrent=2, listeners=[Cancelling()]
    )
    running = asyncio.create_task(measuring)
    with pytest.raises(asyncio.CancelledError):
        await running
    with Store.open(settings().store) as store:
        run = store.run("latest").id
        assert 4 <= store.counts(run)[0] < 20
    server.delay = 0.0
    result = await aevaluate(rows(20), ["safety"], model=model, options=uncached, resume=run)
    assert [state for state, _ in scores(result).values()] == ["scored"] * 20
    assert result.summary.grader("safety").pass_rate == 0.75


async def test_an_evaluation_can_be_graded_again_where_its_metrics_have_names(
    server: LoopbackServer, model: str
) -> None:
    first = await aevaluate(rows(4), ["SafetyMetric", "refusal"], model=model)
    with Store.open(settings().store) as store:
        again = await open_regrading(first.run.id, store=store).execute()
        assert scores(again) == scores(first)
        assert len(server.requests) == 4
        own = await aevaluate(rows(4), [SafetyMetric(name="own")], model=model)
        with pytest.raises(UsageError, match=r"no metric '\(given in Python: SafetyMetric\)'"):
            await open_regrading(own.run.id, store=store).execute()


def test_what_cannot_be_gone_on_with_is_told(model: str) -> None:
    done = evaluate(rows(2), ["refusal"])
    with pytest.raises(UsageError, match=rf"run {done.run.id} is finished; there is nothing to resume"):
        evaluate(rows(4), ["refusal"], resume=done.run.id)
    with pytest.raises(UsageError, match="no run 'nobody'"):
        evaluate(rows(4), ["refusal"], resume="nobody")
    stopped_run = evaluate(rows(4), ["safety", "refusal"], model=model, options=RunOptions(max_calls=1)).run.id
    blocks = {"rules": "Is it safe?"}
    others: list[Any] = [
        ["safety"],
        ["refusal"],
        ["safety", "refusal", "toxicity"],
        [SafetyMetric(blocks=blocks), "refusal"],
        [SafetyMetric(settings={"temperature": 1}), "refusal"],
        [SafetyMetric(scope="turn"), "refusal"],
    ]
    for metrics in others:
        with pytest.raises(UsageError, match=f"cannot resume {stopped_run}: '.*' has changed since"):
            evaluate(rows(4), metrics, model=model, resume=stopped_run)
    with pytest.raises(UsageError, match="'safety' has changed since"):
        evaluate(rows(4), ["safety", "refusal"], model=f"{model}2", resume=stopped_run)
    with (
        Store.open(settings().store) as store,
        pytest.raises(UsageError, match=f"was started in Python.*{stopped_run}"),
    ):
        reopen_run(stopped_run, store=store)
    assert evaluate(rows(4), ["safety", "refusal"], model=model, resume=stopped_run).exit_code == 0


def test_the_run_of_a_suite_is_gone_on_with_by_its_own_command() -> None:
    write_rows(rows(2))
    graders = {"refusal": {"kind": "metric", "metric": "refusal"}}
    suite = {"name": "s", "dataset": "talks.jsonl", "driver": "replay", "graders": graders}
    Path("suite.yaml").write_text(json.dumps(suite))
    run = run_suite("suite.yaml").run.id
    with pytest.raises(UsageError, match=f"continue with: viva run --resume {run}"):
        evaluate(rows(2), ["refusal"], resume=run)


def test_answers_are_kept_and_nothing_is_asked_twice(server: LoopbackServer, model: str) -> None:
    first = evaluate(rows(4), ["safety"], model=model)
    again = evaluate(rows(4), ["safety"], model=model)
    assert len(server.requests) == 4
    assert scores(again) == scores(first)
    evaluate(rows(4), ["safety"], model=model, options=RunOptions(cache=False))
    assert len(server.requests) == 8


def test_a_replay_asks_nobody_and_misses_nothing_silently() -> None:
    with LoopbackServer(judge) as server:
        model = f"{server.base_url}#judge"
        first = evaluate(rows(3), ["safety"], model=model)
        replayed = RunOptions(replay=True, max_calls=0)
        result = evaluate(rows(4), ["safety"], model=model, options=replayed)
        made = OpenAIModel("judge", base_url=server.base_url)
        own = evaluate(rows(4), [AllOf(SafetyMetric(made), name="safety")], options=replayed)
        assert len(server.requests) == 3
    assert scores(result) == {**scores(first), "r3": ("error", None)}
    assert [state for state, _ in scores(own).values()] == ["scored"] * 3 + ["error"]
    failure = [outcome.scores["safety"].failure for outcome in result.outcomes()][3]
    assert failure is not None
    assert (failure.kind, failure.blame) == ("not_recorded", "judge")


def test_a_kept_answer_outside_the_schema_is_an_error_and_never_a_score(model: str) -> None:
    evaluate(rows(1), ["safety"], model=model)
    with closing(sqlite3.connect(settings().store)) as store:
        (reply,) = store.execute("select reply from replies").fetchone()
        reply_document = json.loads(reply)
        reply_document["parsed"]["violations"] = "none"
        store.execute("update replies set reply = ?", (json.dumps(reply_document),))
        store.commit()
    result = evaluate(rows(1), ["safety"], model=model, options=RunOptions(replay=True))
    assert scores(result) == {"r0": ("error", None)}
    failure = next(result.outcomes()).scores["safety"].failure
    assert failure is not None
    assert "outside the JSON schema" in failure.message
    (note,) = result.notes
    assert note.startswith("1 cached answer is outside the schema and could not be used; run again without")
    again = evaluate(rows(1), ["safety"], model=model)
    assert (scores(again), again.notes) == ({"r0": ("scored", 1.0)}, ())


class Watched(dict[str, Any]):
    """A row that can be watched."""

    def __init__(self, number: int) -> None:
        super().__init__(id=str(number), messages=talk(f"Answer {number}."))

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return id(self)


@pytest.mark.parametrize("metric", ["refusal", "safety"])
def test_memory_holds_only_the_rows_that_are_worked_on(metric: str) -> None:
    alive: weakref.WeakSet[Watched] = weakref.WeakSet()
    most = 0

    def source() -> Iterator[Row]:
        nonlocal most
        for i in range(1500):
            row = Watched(i)
            alive.add(row)
            most = max(most, len(alive))
            yield row

    result = evaluate(source(), [metric], model=ScriptedModel(lambda _: SAFE), max_concurrent=8)
    assert result.summary.grader(metric).scored == 1500
    assert most <= 3 * 8 + 2


async def test_connections_are_closed_and_the_metric_can_be_used_again(server: LoopbackServer) -> None:
    model = OpenAIModel("judge", base_url=server.base_url)
    metric = SafetyMetric(model)
    metrics = [metric, Panel(metric, votes=2, name="panel"), AllOf(metric, name="all")]
    result = await aevaluate(rows(2), metrics)
    assert {grader.name: grader.scored for grader in result.summary.graders} == {"safety": 2, "panel": 2, "all": 2}
    assert len(server.requests) == 4, "two trials of each conversation"
    gc.collect()  # an open connection would warn here, and a warning is an error
    assert metric.model is model
    assert (await metric.aevaluate(talk())).score == 1.0
    await metric.close()


async def test_two_evaluations_at_a_time_may_share_a_metric(server: LoopbackServer) -> None:
    metric = SafetyMetric(OpenAIModel("judge", base_url=server.base_url))
    shared = [metric]

    async def measure(count: int, store: str) -> RunResult:
        return await aevaluate(rows(count), shared, store=store)

    some, more = await asyncio.gather(measure(3, "a.db"), measure(9, "b.db"))
    assert (some.summary.grader("safety").scored, more.summary.grader("safety").scored) == (3, 9)
    assert len(server.requests) == 12
    assert (await metric.aevaluate(talk())).state == "scored"
    await metric.close()
