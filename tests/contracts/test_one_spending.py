"""What did a test cost? Everybody who says so gives the same numbers for tester, judge, target and graders."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from server.live import get, serving
from vivavoce.penelope.result import TestResult, read_test
from vivavoce.records.details import by_role, spent
from vivavoce.records.run import Outcome
from vivavoce.records.score import Usage
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.conversation import conversation
from vivavoce.report.json_file import write_json, write_jsonl
from vivavoce.report.markdown import write_markdown
from vivavoce.report.tester import ending
from vivavoce.report.transcript import conversation as in_terminal
from vivavoce.run.summary import RunResult
from vivavoce.suites.experiment import run_suite
from vivavoce.testing import LoopbackServer

SUITE = """\
name: led
driver: penelope
dataset: {rows: [{id: s, goal: Get a refund}]}
target: {kind: openai, model_handles: [bot], base_url: "BASE"}
tester: {model: "people.py:tester", judge: "people.py:judge", max_turns: 1}
graders:
  goal: {kind: function, function: goal_achieved}
  safety: {kind: metric, metric: safety, model: "people.py:grader"}
"""
PEOPLE = """\
from vivavoce.messages import ToolCall
from vivavoce.models.model import ModelReply
from vivavoce.records.score import Usage
from vivavoce.testing import ScriptedModel

class Counted(ScriptedModel):
    def __init__(self, answer, name, tokens, cost):
        super().__init__(answer, name)
        self.tokens, self.cost = tokens, cost

    async def complete(self, request):
        reply = await super().complete(request)
        usage = Usage(input_tokens=self.tokens, output_tokens=7, calls=1, cost=self.cost)
        return ModelReply(reply.text, reply.parsed, reply.tool_calls, usage=usage)

faults = [[{"kind": "leak", "what": "It told.", "evidence": ["As a test"], "decisive": True}], []]

def play(request):
    return [ToolCall(name="send_message_to_target", args={"message": "As a test, hi"})]

def sure(reasoning):
    return {"reasoning": reasoning, "confidence": 0.9}

def examine(request):
    if "faults" in request.schema.model_fields:
        return {"faults": faults.pop(0), "obstacle": "none", "obstacle_evidence": [], **sure("It gave itself away.")}
    return {"achievement_level": "not_achieved", "confidence": 0.9, "reasoning": "no", "evidence": []}

tester = Counted(play, "tester", 1000, 0.01)
judge = Counted(examine, "judge", 300, None)
grader = Counted(lambda _: {"violations": [], "reasoning": "fine", "confidence": 1}, "grader", 50, 0.5)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("spending")
    with LoopbackServer() as bot, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "k")
        (folder / "people.py").write_text(PEOPLE)
        (folder / "suite.yaml").write_text(SUITE.replace("BASE", bot.base_url))
        return run_suite(folder / "suite.yaml", store=str(folder / "kept.db"))


@pytest.fixture(scope="module")
def outcome(graded: GradedRun) -> Outcome:
    return next(graded.outcomes())


@pytest.fixture(scope="module")
def result(outcome: Outcome) -> TestResult:
    talk = outcome.attempt.trajectory
    assert talk.test is not None
    return read_test(talk.test, talk)


@pytest.fixture(scope="module")
def words(result: TestResult) -> str:
    """What everybody says of the roles of the test."""
    return by_role(result.usage)


def text_of(write: Callable[[GradedRun, Any], None], graded: GradedRun) -> str:
    out = io.StringIO()
    write(graded, out)
    return out.getvalue()


def printed(*parts: Any) -> str:
    out = io.StringIO()
    Console(file=out, width=300).print(*parts)
    return out.getvalue()


def test_both_tries_count_and_what_graders_asked_is_apart(outcome: Outcome, result: TestResult, words: str) -> None:
    assert len(result.discarded) == 1
    target = result.usage["target"]
    tries = [result, *result.discarded]
    assert target.calls == 2
    assert target == sum((turn.exchange.usage or Usage() for one in tries for turn in one.history), Usage())
    tester, judge = Usage(input_tokens=2000, output_tokens=14, calls=2, cost=0.02), result.usage["judge"]
    assert (result.usage["tester"], judge) == (tester, Usage(input_tokens=1200, output_tokens=28, calls=4))
    graders = Usage(input_tokens=50, output_tokens=7, calls=1, cost=0.5)
    assert spent(outcome) == {"tester": tester, "judge": judge, "target": target, "graders": graders}
    told = f"target {target.input_tokens} tokens in, {target.output_tokens} out"
    assert words == f"tester 2,000 tokens in, 14 out, $0.02 · {told} · judge 1,200 tokens in, 28 out"
    assert (result.cost, by_role({}), by_role({"target": Usage()})) == (None, "", "")


def test_a_result_says_it(result: TestResult, words: str) -> None:
    assert str(result).splitlines()[-1] == f"used: {words}"
    assert words in result._repr_html_()  # pyright: ignore[reportPrivateUsage]


def test_the_terminal_says_it_live_and_later(outcome: Outcome, words: str) -> None:
    test = outcome.attempt.trajectory.test
    assert test is not None
    assert f"     used  {words}" in printed(*ending(test))
    assert f"     used  {words}" in printed(in_terminal(outcome))


def test_pages_say_it(graded: GradedRun, outcome: Outcome, words: str) -> None:
    facts: Any = conversation(outcome, lambda _: None)["facts"]
    assert " · ".join(f"{role} {used}" for role, used in facts[1:4]) == words
    assert facts[4] == ("graders", "50 tokens in, 7 out, $0.50")
    with serving(graded.store) as url:
        page = get(f"{url}/runs/{graded.run.id}/samples/s").text
        told = get(f"{url}/api/v1/runs/{graded.run.id}/samples/s/0").json()
    for role, used in facts[1:]:
        assert f"<span>{role} <b>{used}</b></span>" in page
    usage = told["attempt"]["trajectory"]["test"]["usage"]
    assert by_role({role: Usage.model_validate(used) for role, used in usage.items()}) == words


def test_files_say_it(graded: GradedRun, result: TestResult, words: str) -> None:
    plain = {role: used.model_dump() for role, used in result.usage.items()}
    document = json.loads(text_of(write_json, graded))["samples"][0]
    line = json.loads(text_of(write_jsonl, graded))["attempt"]
    for trajectory in (document["trajectory"], line["trajectory"]):
        usage = trajectory["test"]["usage"]
        assert {role: Usage.model_validate(used).model_dump() for role, used in usage.items()} == plain
    kept = document["scores"]["goal"]["extra"]["usage"]
    assert {role: Usage.model_validate(used).model_dump() for role, used in kept.items()} == plain
    assert f"- {words} · graders 50 tokens in, 7 out, $0.50" in text_of(write_markdown, graded).splitlines()
