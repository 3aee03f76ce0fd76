"""Suites whose conversations a tester leads."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vivavoce import run_suite
from vivavoce.errors import UsageError
from vivavoce.messages import ToolCall
from vivavoce.penelope.result import read_test
from vivavoce.records.run import AttemptEnded, Event, Outcome
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.experiment import open_run, reopen_run
from vivavoce.testing import LoopbackServer

BOT = """\
def reply(message):
    if "crash" in message:
        raise OSError("down")
    return f"You said: {message}"
"""
HANGING = """\
import asyncio
from pathlib import Path

async def hang_once(message):
    if message == "hard 2" and not Path("hung").exists():
        Path("hung").touch()
        await asyncio.Event().wait()
    return f"You said: {message}"
"""
PEOPLE = """\
from vivavoce.messages import ToolCall
from vivavoce.testing import ScriptedModel

def speak(request):
    goal = request.messages[0].text.partition('You want: "')[2].partition('"')[0]
    said = f"{goal} {1 + sum(message.role == 'tool' for message in request.messages)}"
    return [ToolCall(name="send_message_to_target", args={"message": said, "reasoning": "because"})]

def examine(request):
    if "faults" in request.schema.model_fields:
        found = {"faults": [], "obstacle": "none", "obstacle_evidence": []}
        return found | {"reasoning": "It played its part.", "confidence": 0.9}
    met = '"easy 2"' in request.messages[-1].text
    level = "fully_achieved" if met else "not_achieved"
    return {"achievement_level": level, "confidence": 0.9, "reasoning": "as read", "evidence": []}

customer, examiner = ScriptedModel(speak, "customer"), ScriptedModel(examine, "examiner")
"""
SUITE: dict[str, Any] = {
    "name": "led",
    "driver": "penelope",
    "dataset": "d.jsonl",
    "target": {"kind": "function", "function": "bot.py:reply", "max_retries": 0},
    "tester": {"model": "people.py:customer", "judge": "people.py:examiner", "max_turns": 3},
    "graders": {
        "goal": {"kind": "tool", "function": "goal_achieved"},
        "target": {"kind": "tool", "function": "target_passed"},
        "polite": {"kind": "tool", "function": "contains", "scope": "turn"},
    },
    "gate": {"kind": "simple", "metric_key": "goal", "value": 0.5},
}
ROWS = [
    {"id": "e", "goal": "easy", "ground_truth": "You said: easy"},
    {"id": "h", "goal": "hard", "ground_truth": "You said: hard"},
]


@pytest.fixture(autouse=True)
def _files() -> None:  # pyright: ignore[reportUnusedFunction]
    Path("bot.py").write_text(BOT)
    Path("people.py").write_text(PEOPLE)
    write()


def write(rows: list[dict[str, Any]] = ROWS, **changes: Any) -> Path:
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("suite.yaml").write_text(json.dumps({**SUITE, **changes}))
    return Path("suite.yaml")


def outcomes() -> dict[str, Outcome]:
    with Store.open(settings().store) as store:
        grading = store.grading(store.runs()[0].id)
        found = list(store.outcomes(grading.id))
    return {f"{one.attempt.key.sample_id}/{one.attempt.key.trial}": one for one in found}


def test_a_tester_leads_each_conversation_and_the_gate_decides() -> None:
    result = run_suite("suite.yaml")
    easy, hard = outcomes()["e/0"], outcomes()["h/0"]
    assert [turn.messages[0].text for turn in easy.attempt.trajectory.turns] == ["easy 1", "easy 2"]
    assert (easy.scores["goal"].value, hard.scores["goal"].value) == (1.0, 0.0)
    assert len(hard.attempt.trajectory.turns) == 3
    assert (result.summary.verdict, result.exit_code) == ("pass", 0)
    assert hard.scores["goal"].extra["blame"] == "target"


def test_the_whole_test_is_stored_and_comes_back() -> None:
    run_suite("suite.yaml")
    talk = outcomes()["e/0"].attempt.trajectory
    assert talk.test is not None
    test = read_test(talk.test, talk)
    assert (test.status.name, test.target_passed, test.context.goal) == ("SUCCESS", True, "easy")
    assert [turn.reasoning for turn in test.history] == ["because", "because"]
    assert [turn.reply for turn in test.history] == ["You said: easy 1", "You said: easy 2"]


def test_graders_of_turns_see_what_was_said() -> None:
    run_suite("suite.yaml")
    polite = outcomes()["h/0"].scores["polite"]
    assert [turn.submission for turn in polite.turns or ()] == [f"You said: hard {n}" for n in (1, 2, 3)]
    assert polite.value == 1.0


def test_trials_are_tests_of_their_own() -> None:
    result = run_suite("suite.yaml", RunOptions(trials=3))
    assert set(outcomes()) == {f"{sample}/{trial}" for sample in "eh" for trial in range(3)}
    assert result.summary.grader("goal").pass_hat == pytest.approx({1: 0.5, 2: 0.5, 3: 0.5})
    assert [test.context["trial"] for n in range(3) if (test := outcomes()[f"e/{n}"].attempt.trajectory.test)] == [
        0,
        1,
        2,
    ]


class StopAfterTwo:
    def __init__(self) -> None:
        self.ended = 0
        self.stop: Callable[[], object] = lambda: None

    async def on(self, event: Event) -> None:
        self.ended += isinstance(event, AttemptEnded)
        if self.ended == 2:
            self.stop()


async def test_an_interrupted_run_goes_on_where_it_stopped() -> None:
    write([{"id": f"s{n}", "goal": goal} for n, goal in enumerate(["easy", "hard"] * 3)])
    run_suite("suite.yaml")
    undisturbed = {name: one.scores for name, one in outcomes().items()}
    with Store.open(settings().store) as store:
        stopper = StopAfterTwo()
        first = open_run("suite.yaml", RunOptions(max_concurrent=1), store=store, listeners=[stopper])
        stopper.stop = first.stop
        interrupted = await first.execute()
        assert interrupted.exit_code == 130
        assert 2 <= len(store.done(interrupted.run.id)) < 6
        resumed = await reopen_run(interrupted.run.id, store=store).execute()
        found = {f"{one.attempt.key.sample_id}/0": one.scores for one in store.outcomes(resumed.grading.id)}
    assert found == undisturbed


async def test_a_test_that_is_dropped_keeps_its_transcript_and_is_held_again() -> None:
    Path("bot.py").write_text(HANGING)
    write([ROWS[1]], target={"kind": "function", "function": "bot.py:hang_once"})
    with Store.open(settings().store) as store:
        run = open_run("suite.yaml", RunOptions(max_concurrent=1), store=store)
        _stop_twice_when_it_hangs(run)
        interrupted = await run.execute()
        (held,) = store.outcomes(interrupted.grading.id)
        talk = held.attempt.trajectory
        assert talk.test is not None
        assert (talk.test.status, talk.test.stopped_by) == ("aborted", "cancelled")
        assert [turn.messages[-1].text for turn in talk.turns] == ["You said: hard 1", "hard 2"]
        assert {name: score.state for name, score in held.scores.items()} == dict.fromkeys(SUITE["graders"], "error")
        assert (interrupted.exit_code, store.run(interrupted.run.id).status) == (130, "interrupted")
        resumed = await reopen_run(interrupted.run.id, store=store).execute()
        (again,) = store.outcomes(resumed.grading.id)
        assert (len(again.attempt.trajectory.turns), again.scores["goal"].value) == (3, 0.0)
        assert [one.key for one in store.replaced(resumed.run.id)] == [held.attempt.key]


def _stop_twice_when_it_hangs(run: ExperimentRun) -> None:
    if not Path("hung").exists():
        asyncio.get_running_loop().call_later(0.005, _stop_twice_when_it_hangs, run)
        return
    run.stop()
    run.stop()


def test_a_target_that_crashes_is_its_own_failure_and_no_zero_of_the_goal() -> None:
    write([{"id": "c", "goal": "crash"}])
    result = run_suite("suite.yaml")
    outcome = outcomes()["c/0"]
    failure = outcome.attempt.failure
    assert failure is not None
    assert (failure.blame, len(outcome.attempt.trajectory.turns)) == ("target", 3)
    assert (outcome.scores["goal"].state, result.summary.verdict) == ("error", "inconclusive")


def test_every_row_of_which_no_test_can_be_made_is_told_before_anything_is_held() -> None:
    write([{**ROWS[0], "persona": "impatiend"}, ROWS[1], {"id": "x", "goal": " "}])
    with pytest.raises(UsageError) as caught:
        run_suite("suite.yaml")
    first, second = (problem.message for problem in caught.value.problems)
    assert first.startswith("sample 'e': no persona 'impatiend'; did you mean 'impatient'?")
    assert second == "sample 'x': the goal is empty"


def test_what_a_row_says_first_is_said_before_the_tester_speaks() -> None:
    write([{**ROWS[1], "input": ["Good day"], "max_turns": 2}])
    run_suite("suite.yaml")
    turns = outcomes()["h/0"].attempt.trajectory.turns
    assert [turn.messages[0].text for turn in turns] == ["Good day", "hard 2"]


def test_rows_may_stand_in_the_suite() -> None:
    write(dataset={"rows": ROWS})
    Path("d.jsonl").unlink()
    run_suite("suite.yaml")
    assert set(outcomes()) == {"e/0", "h/0"}


def test_a_tester_over_http_is_asked_with_its_settings_and_its_answers_are_kept() -> None:
    def answer(body: dict[str, Any]) -> Any:
        if body.get("tools"):
            return [ToolCall(id="1", name="send_message_to_target", args={"message": "easy 2"})]
        words = re.findall(r'^assistant: "(.*)"$', body["messages"][1]["content"], re.MULTILINE)
        criterion: dict[str, Any] = {"outcome": "x", "kind": "fact", "evidence": words, "met": True}
        return {"criteria": [criterion], "breaches": [], "reasoning": "r", "confidence": 1.0}

    with LoopbackServer(answer) as server:
        tester = {"model": f"{server.base_url}#tester", "temperature": 0.7, "max_turns": 2}
        write([ROWS[0]], tester=tester)
        assert run_suite("suite.yaml").exit_code == 0
        asked = len(server.requests)
        assert server.requests[0].body["temperature"] == 0.7
        assert run_suite("suite.yaml").exit_code == 0
        assert len(server.requests) == asked, "the same questions are answered from what was kept"


@pytest.mark.parametrize(
    ("rows", "changes", "complaint"),
    [
        ([{"id": "x", "goal": "g"}], {"driver": "scripted", "tester": None}, "1 rows have nothing to ask"),
        ([{"id": "x", "input": "Hi"}], {}, "1 rows have no 'goal' for the tester"),
        ([{"id": "x", "messages": [{"role": "user", "content": "Hi"}], "goal": "g"}], {}, "use driver: replay"),
    ],
)
def test_rows_that_do_not_suit_the_driver_are_told_before_anything_is_held(
    rows: list[dict[str, Any]], changes: dict[str, Any], complaint: str
) -> None:
    graders = {"r": {"kind": "tool", "function": "ascii_printable_only"}}
    given = {**SUITE, "graders": graders, "gate": {"kind": "simple", "metric_key": "r", "value": 1}, **changes}
    write(rows)
    Path("suite.yaml").write_text(json.dumps({name: value for name, value in given.items() if value is not None}))
    with pytest.raises(UsageError, match=complaint) as caught:
        run_suite("suite.yaml")
    assert str(caught.value).startswith("suite.yaml:1:")


HANDLERS = """\
def refund(order: str, state: dict):
    state["orders"][order] = "refunded"
    return "done"
"""


def test_the_tools_of_a_target_answer_a_tester_too_and_what_they_left_is_kept() -> None:
    def answer(body: dict[str, Any]) -> Any:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return last["content"]
        return [ToolCall(id="c", name="refund", args={"order": "A-17"})] if last["content"].endswith("2") else "Yes?"

    Path("handlers.py").write_text(HANDLERS)
    with LoopbackServer(answer) as server:
        target = {"kind": "openai", "base_url": server.base_url, "model_handles": ["m"]}
        handlers = {"refund": "handlers.py:refund"}
        row = {**ROWS[0], "state": {"orders": {"A-17": "sent"}}, "expect": {"state": {"orders.A-17": "refunded"}}}
        write([row, {**ROWS[1], "max_turns": 1}], target={**target, "handlers": handlers})
        run_suite("suite.yaml")
    found = outcomes()
    trajectory = found["e/0"].attempt.trajectory
    assert trajectory.state == {"orders": {"A-17": "refunded"}}
    assert found["e/0"].scores["expect"].passed is True
    assert [message.role for message in trajectory.turns[1].messages] == ["user", "assistant", "tool", "assistant"]
    assert trajectory.test is not None
    assert "state" not in trajectory.test.model_dump()
    assert read_test(trajectory.test, trajectory).state == trajectory.state
    assert found["h/0"].attempt.trajectory.state is None
