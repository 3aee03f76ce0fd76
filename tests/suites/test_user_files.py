"""Python files of users, as suites name them, whatever their annotations say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from vivavoce import run_suite
from vivavoce.plugins import load_object
from vivavoce.targets.letta_server import make_agent
from vivavoce.targets.target import Opening

if TYPE_CHECKING:
    from letta_client import AsyncLetta

MINE = """\
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vivavoce import GradeResult, agent_factory, extractor, grader, reward_composer, suite_setup

if TYPE_CHECKING:
    from nowhere import Nothing


@dataclass
class Limit:
    words: int


@suite_setup
def start(model_handle: Nothing) -> None:
    global started
    started = model_handle


def reply(message: str, conversation_id: Nothing) -> Nothing:
    return f"Paris {started}"


class Bot:
    async def __call__(self, messages: list[dict[str, Nothing]]) -> Nothing:
        return "Paris"


bot = Bot()


@extractor
def last(trajectory: list[list[Nothing]], config: dict[str, int], agent_state: Nothing) -> str:
    return trajectory[-1][-1].text


@grader
def short(sample: Nothing, submission: str, config: dict[str, int], trajectory: Nothing) -> GradeResult:
    return GradeResult(score=1.0 if len(submission) < Limit(config["words"]).words else 0.0)


@grader
async def polite(sample: Nothing, submission: str) -> Nothing:
    return "Paris" in submission


@reward_composer
def strict(ctx: Nothing) -> Nothing:
    return ctx.grades["short"].score


@agent_factory
async def make(client: Nothing, sample: Nothing) -> Nothing:
    return f"agent of {sample.id}"
"""
SUITE = """\
name: annotations as texts
dataset: d.jsonl
target: {kind: function, function: "mine.py:reply"}
setup_script: mine.py:start
graders:
  short: {kind: tool, function: "mine.py:short", config: {words: 50}, extractor: "mine.py:last"}
  polite: {kind: tool, function: "mine.py:polite"}
reward: {kind: custom, function: "mine.py:strict"}
gate: {kind: simple, metric_key: reward, value: 1}
"""


@pytest.mark.parametrize("target", ["mine.py:reply", "mine.py:bot"])
def test_annotations_that_nobody_can_evaluate_are_no_hindrance(target: str) -> None:
    Path("mine.py").write_text(MINE)
    Path("suite.yaml").write_text(SUITE.replace("mine.py:reply", target))
    Path("d.jsonl").write_text('{"input": "Capital of France?"}\n')
    result = run_suite("suite.yaml")
    assert {grader.name: (grader.scored, grader.mean) for grader in result.summary.graders} == {
        "short": (1, 1.0),
        "polite": (1, 1.0),
        "reward": (1, 1.0),
    }
    assert result.exit_code == 0


async def test_an_agent_factory_may_have_them_too() -> None:
    Path("mine.py").write_text(MINE)
    factory = load_object("mine.py:make", Path())
    assert await make_agent(factory, cast("AsyncLetta", None), Opening("c-1", "s-1")) == "agent of s-1"
