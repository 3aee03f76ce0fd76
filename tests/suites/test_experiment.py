"""Grading again: which truth each attempt gets, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce import run_suite
from vivavoce.errors import UsageError
from vivavoce.records.run import Event
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.settings import settings
from vivavoce.store.runs.claim import Claimed
from vivavoce.store.store import Store
from vivavoce.suites.experiment import open_regrading
from vivavoce.suites.load import load_suite

TALK = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
REPLAY: dict[str, Any] = {
    "name": "r",
    "driver": "replay",
    "dataset": {"path": "d.jsonl", "fields": {"id": "metadata.task", "trial": "metadata.trial"}},
    "graders": {"reward_said": {"kind": "tool", "function": "recorded", "config": {"path": "labels.reward"}}},
}


def write(suite: dict[str, Any], rows: list[dict[str, Any]]) -> Path:
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("suite.yaml").write_text(json.dumps(suite))
    return Path("suite.yaml")


async def again(run: RunResult, suite: Path | None) -> RunResult:
    with Store.open(settings().store) as store:
        return await open_regrading(run.run.id, suite and load_suite(suite), store=store).execute()


@pytest.mark.parametrize("with_suite", [True, False])
async def test_each_recorded_trial_keeps_its_own_truth(with_suite: bool) -> None:
    rows = [
        {"messages": TALK, "labels": {"reward": reward}, "metadata": {"task": 7, "trial": trial}}
        for trial, reward in enumerate((1, 0, 1))
    ]
    suite = write(REPLAY, rows)
    first = run_suite(suite)
    assert first.summary.grader("reward_said").mean == pytest.approx(2 / 3)
    second = await again(first, suite if with_suite else None)
    assert second.summary.grader("reward_said").mean == pytest.approx(2 / 3)


async def test_a_run_that_is_graded_again_is_worked_on_and_not_deleted() -> None:
    first = run_suite(write(REPLAY, [{"messages": TALK, "labels": {"reward": 1}, "metadata": {"task": 1, "trial": 0}}]))
    refused: list[Event] = []

    class Deleting:
        async def on(self, event: Event) -> None:
            with pytest.raises(Claimed):
                store.maintenance.delete_run(first.run.id, "Ida")
            refused.append(event)

    with Store.open(settings().store) as store:
        await open_regrading(first.run.id, store=store, listeners=[Deleting()]).execute()
        store.maintenance.delete_run(first.run.id, "Ida")
    assert len(refused) == 3


async def test_a_judge_that_is_refused_is_not_replaced_by_another_grader() -> None:
    rows = [{"messages": TALK, "labels": {"reward": 1}, "metadata": {"task": 1, "trial": 0}}]
    first = run_suite(write(REPLAY, rows))
    refused = {**REPLAY, "graders": {"helpful": {"kind": "letta_judge", "prompt": "p", "agent_id": "a"}}}
    with pytest.raises(UsageError, match="the model of a judge on a server is not known here"):
        await again(first, write(refused, rows))


async def test_an_unfinished_run_is_finished_first() -> None:
    suite = {
        "name": "f",
        "dataset": "d.jsonl",
        "target": {"kind": "function", "function": "bot.py:answer"},
        "graders": {"right": {"kind": "tool", "function": "contains"}},
    }
    Path("bot.py").write_text("def answer(message):\n    return 'ok'\n")
    rows = [{"id": str(i), "input": "x", "ground_truth": "ok"} for i in range(4)]
    stopped = run_suite(write(suite, rows), RunOptions(max_calls=2, max_concurrent=1))
    assert stopped.exit_code == 3
    with pytest.raises(UsageError, match="is not finished; first continue it with: viva run --resume"):
        await again(stopped, None)


async def test_a_truth_that_no_longer_fits_is_one_line() -> None:
    rows = [{"messages": TALK, "ground_truth": ["a"], "metadata": {"task": 1, "trial": 0}}]
    graders = {"right": {"kind": "tool", "function": "contains"}}
    first = run_suite(write({**REPLAY, "graders": graders}, rows))
    longer = [*TALK, *TALK]
    suite = write({**REPLAY, "graders": graders}, [{**rows[0], "messages": longer, "ground_truth": ["a", "a"]}])
    with pytest.raises(UsageError, match=r"sample '1': .*1 turn"):
        await again(first, suite)


def test_what_stands_before_the_first_user_message_is_seen() -> None:
    greeting = [{"role": "system", "content": "s"}, {"role": "assistant", "content": "welcome"}]
    graders = {"greets": {"kind": "tool", "function": "contains", "extractor": "first_assistant"}}
    rows = [
        {"messages": [*greeting, *TALK], "ground_truth": "welcome", "metadata": {"task": 1, "trial": 0}},
        {"messages": greeting, "ground_truth": "welcome", "metadata": {"task": 2, "trial": 0}},
    ]
    assert run_suite(write({**REPLAY, "graders": graders}, rows)).summary.grader("greets").mean == 1.0


def test_calls_listed_by_turn_are_graded_as_one_list_over_the_whole_conversation() -> None:
    call = {"id": "1", "name": "find", "arguments": {"n": 1}}
    talk = [{"role": "user", "content": "q"}, {"role": "assistant", "content": None, "tool_calls": [call]}, *TALK]
    row = {"messages": talk, "reference_tool_calls": [[call], []], "metadata": {"task": 1, "trial": 0}}
    graders = {
        "by_turn": {"kind": "tool", "function": "trajectory_match"},
        "whole": {"kind": "tool", "function": "trajectory_match", "scope": "conversation"},
        "plain": {"kind": "tool", "function": "ascii_printable_only", "scope": "turn", "extractor": "transcript"},
    }
    result = run_suite(write({**REPLAY, "graders": graders}, [row]))
    assert [result.summary.grader(name).mean for name in graders] == [1.0, 1.0, 0.5]
    grades = next(result.outcomes()).scores
    assert grades["whole"].turns is None
    assert len(grades["plain"].turns or ()) == 2
