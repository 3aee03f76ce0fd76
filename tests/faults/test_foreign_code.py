"""Every kind of foreign code, and everything that it may raise: an error of one sample, and never the end of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from exams import agent
from stage import judge, player
from vivavoce import run_suite
from vivavoce.errors import UsageError
from vivavoce.penelope import PenelopeAgent, StoppingCondition, TestState
from vivavoce.penelope.strategies.strategy import Move
from vivavoce.penelope.tools.tool import Tool
from vivavoce.run.summary import RunResult

HEAD = """
import asyncio, functools, sys, pytest
class Own(BaseException): pass
class Done(Own): pass
def broken(): {raises}
"""
RAISES = {
    "fail": "pytest.fail('no such helper')",
    "exit": "sys.exit(3)",
    "own": "raise Own('enough')",
    "cancelled": "raise asyncio.CancelledError",
    "generator": "raise GeneratorExit",
    "stop": "raise StopIteration",
    "error": "raise ValueError('odd')",
}
"""What foreign code does, by the name of the case."""
ALL = pytest.mark.parametrize("raises", RAISES.values(), ids=RAISES)
GRADERS = {
    "function": "def grade(sample, submission): return broken() if sample.id == 'a' else 1\n",
    "async function": "async def grade(sample, submission): return broken() if sample.id == 'a' else 1\n",
    "object": "class G:\n def __call__(self, sample, submission): return broken() if sample.id == 'a' else 1\n"
    "grade = G()\n",
    "async object": "class G:\n async def __call__(self, sample, submission):\n"
    "  return broken() if sample.id == 'a' else 1\ngrade = G()\n",
    "bound method": "class G:\n def m(self, sample, submission): return broken() if sample.id == 'a' else 1\n"
    "grade = G().m\n",
    "partial": "def f(top, sample, submission): return broken() if sample.id == 'a' else top\n"
    "grade = functools.partial(f, 1)\n",
    "async partial": "async def f(top, sample, submission): return broken() if sample.id == 'a' else top\n"
    "grade = functools.partial(f, 1)\n",
    "lambda": "grade = lambda sample, submission: broken() if sample.id == 'a' else 1\n",
}
METRIC = """
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.metric import BaseMultiTurnMetric
class Mine(BaseMultiTurnMetric):
    def __init__(self, name=''):
        super().__init__(MetricConfig(name=name, class_name='Mine', score_type='binary'))
    {method}(self, evaluation_input):
        return broken() if evaluation_input.messages[0].text == 'a' else self.finished(MetricResult(raw=True))
    {more}
from vivavoce.metrics.result import MetricResult
"""
SYNC = "def evaluate_conversation"
METRICS = {
    "function": "def grade(messages): return broken() if messages[0].text == 'a' else 1\n",
    "object": "class G:\n def __call__(self, messages): return broken() if messages[0].text == 'a' else 1\n"
    "grade = G()\n",
    "partial": "def f(messages): return broken() if messages[0].text == 'a' else 1\ngrade = functools.partial(f)\n",
    "class": METRIC.format(method=SYNC, more="") + "grade = Mine\n",
    "instance": METRIC.format(method=SYNC, more="") + "grade = Mine()\n",
    "async class": METRIC.format(method="async def aevaluate_conversation", more=f"{SYNC}(self, _): raise ValueError")
    + "grade = Mine\n",
}


def run(**changed: Any) -> RunResult:
    rows = [{"id": name, "input": name, "ground_truth": "ok"} for name in "ab"]
    suite: dict[str, Any] = {
        "name": "foreign",
        "target": {"kind": "function", "function": "bot.py:answer", "max_retries": 0},
        "dataset": {"rows": rows},
        "graders": {"fine": {"kind": "function", "function": "contains"}},
        **changed,
    }
    if not Path("bot.py").exists():
        Path("bot.py").write_text("def answer(message): return 'ok'\n")
    Path("suite.yaml").write_text(json.dumps(suite))
    return run_suite("suite.yaml")


def states(result: RunResult, grader: str) -> dict[str, str]:
    return {outcome.attempt.key.sample_id: outcome.scores[grader].state for outcome in result.outcomes()}


def written(name: str, code: str, raises: str) -> None:
    Path(name).write_text(HEAD.format(raises=raises) + code)


@ALL
@pytest.mark.parametrize("code", GRADERS.values(), ids=GRADERS)
def test_a_grader_of_any_shape_breaks_its_own_sample_alone(code: str, raises: str) -> None:
    written("own.py", code, raises)
    result = run(graders={"mine": {"kind": "function", "function": "own.py:grade"}})
    assert states(result, "mine") == {"a": "error", "b": "scored"}


@ALL
@pytest.mark.parametrize("code", METRICS.values(), ids=METRICS)
def test_a_metric_of_any_shape_breaks_its_own_sample_alone(code: str, raises: str) -> None:
    written("own.py", code, raises)
    result = run(graders={"mine": {"kind": "metric", "metric": "own.py:grade"}})
    assert states(result, "mine") == {"a": "error", "b": "scored"}


@ALL
def test_an_extractor_breaks_its_own_sample_alone(raises: str) -> None:
    code = "def pick(trajectory, config): return broken() if trajectory[0][0].text == 'a' else 'ok'\n"
    written("own.py", code, raises)
    result = run(graders={"mine": {"kind": "function", "function": "contains", "extractor": "own.py:pick"}})
    assert states(result, "mine") == {"a": "error", "b": "scored"}


@ALL
def test_a_reward_breaks_its_own_sample_alone(raises: str) -> None:
    written("own.py", "def sum_up(ctx): return broken() if ctx.sample.id == 'a' else 1\n", raises)
    result = run(reward={"kind": "custom", "function": "own.py:sum_up"})
    rewards = {outcome.attempt.key.sample_id: outcome.reward for outcome in result.outcomes()}
    assert {name: reward and reward.state for name, reward in rewards.items()} == {"a": "error", "b": "scored"}


TARGETS = {
    "function": "def answer(message): return broken() if message == 'a' else 'ok'\n",
    "async function": "async def answer(message): return broken() if message == 'a' else 'ok'\n",
    "object": "class T:\n def __call__(self, message): return broken() if message == 'a' else 'ok'\nanswer = T()\n",
    "async object": "class T:\n async def __call__(self, message): return broken() if message == 'a' else 'ok'\n"
    "answer = T()\n",
    "partial": "def f(top, message): return broken() if message == 'a' else top\nanswer = functools.partial(f, 'ok')\n",
    "bound method": "class T:\n def m(self, message): return broken() if message == 'a' else 'ok'\nanswer = T().m\n",
}


@ALL
@pytest.mark.parametrize("code", TARGETS.values(), ids=TARGETS)
def test_a_target_of_any_shape_breaks_its_own_sample_alone(code: str, raises: str) -> None:
    written("bot.py", code, raises)
    result = run()
    assert states(result, "fine") == {"a": "error", "b": "scored"}
    failure = next(
        outcome.scores["fine"].failure for outcome in result.outcomes() if outcome.attempt.key.sample_id == "a"
    )
    assert failure is not None
    assert failure.blame == "target"


@pytest.mark.parametrize("code", ["pytest.skip('no table', allow_module_level=True)", "raise Own", "sys.exit(1)"])
def test_a_file_that_ends_on_import_is_refused(code: str) -> None:
    written("own.py", f"{code}\n", "pass")
    with pytest.raises(UsageError, match=r"own\.py:\d+ raises"):
        run(graders={"mine": {"kind": "function", "function": "own.py:grade"}})


@ALL
def test_a_set_up_that_breaks_is_one_line(raises: str) -> None:
    written("own.py", "def prepare(): broken()\n", raises)
    with pytest.raises(UsageError, match="set-up prepare raised"):
        run(setup_script="own.py:prepare")


@pytest.mark.parametrize("skip", ["pytest.skip('no table')", "import unittest; raise unittest.SkipTest('no table')"])
@pytest.mark.parametrize("kind", ["grader", "metric", "extractor"])
def test_a_skip_says_that_a_grader_does_not_apply(kind: str, skip: str) -> None:
    grader: dict[str, Any] = {"kind": "function", "function": "own.py:grade"}
    code = GRADERS["function"]
    if kind == "metric":
        grader, code = {"kind": "metric", "metric": "own.py:grade"}, METRICS["function"]
    if kind == "extractor":
        grader = {"kind": "function", "function": "contains", "extractor": "own.py:grade"}
        code = "def grade(trajectory, config): return broken() if trajectory[0][0].text == 'a' else 'ok'\n"
    written("own.py", code, skip)
    result = run(graders={"mine": grader})
    assert states(result, "mine") == {"a": "skipped", "b": "scored"}
    assert (
        next(outcome.scores["mine"].reason for outcome in result.outcomes() if outcome.scores["mine"].value is None)
        == "no table"
    )


def test_where_every_score_is_skipped_nothing_is_green() -> None:
    Path("own.py").write_text("def grade(sample, submission): return None\n")
    graders = {"mine": {"kind": "function", "function": "own.py:grade"}}
    gate = {"kind": "simple", "metric_key": "mine", "value": 0.5}
    assert run(graders=graders, gate=gate).exit_code == 3


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("class grade:\n def __init__(self, sample, submission): pass\n", "is the class grade itself"),
        ("grade = 5\n", "is a int; a grader is a function"),
        ("class G: pass\ngrade = G()\n", "is a G; a grader is a function"),
        ("class G:\n def __call__(self, odd): pass\ngrade = G()\n", "G: "),
    ],
)
def test_what_cannot_be_a_grader_is_refused_before_the_run(code: str, message: str) -> None:
    Path("own.py").write_text(code)
    with pytest.raises(UsageError, match=message):
        run(graders={"mine": {"kind": "function", "function": "own.py:grade"}})


def test_a_class_is_no_target() -> None:
    Path("bot.py").write_text("class answer:\n def __init__(self, message): pass\n")
    with pytest.raises(UsageError, match="class answer itself"):
        run()


class Enough(BaseException):
    """A base exception such as those of test frameworks."""


class Strategic:
    name, adversarial = "mine", False

    def move(self, state: TestState) -> Any:
        if state.turns:
            raise Enough("enough")
        return Move(say="Hi")


class Checking:
    name, patience = "mine", None

    def objection(self, message: str, state: TestState) -> Any:
        raise Enough("enough")


class Stopping(StoppingCondition):
    name = "mine"

    def check(self, state: TestState) -> Any:
        raise Enough("enough")


class Beginning(Tool):
    """A tool that cannot begin."""

    name, description, parameters = "mine", "does nothing", {"type": "object"}

    def begin(self, state: TestState) -> Tool:
        raise Enough("enough")

    def execute(self, **arguments: Any) -> Any:
        return None


def fine(message: str) -> str:
    return "fine"


def listen(turn: object) -> None:
    raise Enough("enough")


@pytest.mark.parametrize(
    ("options", "on_turn"),
    [
        ({"strategy": Strategic()}, None),
        ({"checks": [Checking()]}, None),
        ({"conditions": [Stopping()]}, None),
        ({"tools": [Beginning()]}, None),
        ({}, listen),
    ],
    ids=["strategy", "check", "condition", "tool", "listener"],
)
def test_what_leads_a_test_breaks_that_test_alone(options: dict[str, Any], on_turn: Any) -> None:
    penelope_agent: PenelopeAgent = agent(player(), judge(False), **options)
    result = penelope_agent.execute_test(fine, goal="Return a lamp", on_turn=on_turn)
    assert (result.status.name, result.blame) == ("ERROR", "tester")
    assert "Enough: enough" in result.stop_reason
