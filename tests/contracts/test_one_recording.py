"""How far did a run go as it was recorded? Everybody who says so gives the same facts.

Two releases of a bot are behind an endpoint of their own. The second one asks with other words in one row, and calls a
tool with other arguments in another, which is a call that was never recorded.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from rich.console import Console

from server.live import get, serving
from vivavoce.messages import ToolCall
from vivavoce.records.details import AS_RECORDED, AsRecorded, RecordingSummary
from vivavoce.report.details import recorded_lines
from vivavoce.report.export import export
from vivavoce.report.github import write_github
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.json_file import write_json
from vivavoce.report.junit import write_junit
from vivavoce.report.markdown import write_markdown
from vivavoce.report.terminal import run_report
from vivavoce.report.transcript import conversation
from vivavoce.report.worst_samples import worst
from vivavoce.run.summary import RunResult, Summary
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite
from vivavoce.testing import LoopbackServer

SUITE = """\
name: shop
dataset:
  rows:
    - {id: same, input: ["Refund A-1", "Yes"], ground_truth: ["Shall I", "paid"]}
    - {id: words, input: ["Refund A-2", "Yes"], ground_truth: ["Shall I", "paid"]}
    - {id: calls, input: ["Refund A-3", "Yes"], ground_truth: ["Shall I", "paid"]}
target:
  kind: openai
  base_url: BASE
  model_handles: [m]
  handlers: {look_up: tools.py:look_up, refund: tools.py:refund}
graders: {says: {kind: function, function: contains}}
"""
TOOLS = """\
from pathlib import Path


def look_up(order: str):
    return "delivered"


def refund(order: str, amount: int = 0):
    Path("called").write_text(order)
    return "done"
"""
WITH = "recording: calls.jsonl\n"


def model(release: int) -> Callable[[dict[str, Any]], Any]:
    def answer(body: dict[str, Any]) -> Any:
        messages = body["messages"]
        said = [message["content"] for message in messages if message["role"] == "user"]
        order, agreed = said[0].split()[-1], said[-1] == "Yes"
        if messages[-1]["role"] == "tool":
            asks = "May I refund it?" if release == 2 and order == "A-2" else "Shall I refund it?"
            return "It is paid back." if agreed else asks
        more = {"amount": 5} if release == 2 and order == "A-3" else {}
        name = "refund" if agreed else "look_up"
        return [ToolCall(id=f"c{len(messages)}", name=name, args={"order": order, **(more if agreed else {})})]

    return answer


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("shop")
    store, suite = str(folder / "kept.db"), folder / "suite.yaml"
    (folder / "tools.py").write_text(TOOLS.replace('"called"', repr(str(folder / "called"))))
    with LoopbackServer(model(1)) as old, LoopbackServer(model(2)) as new:
        suite.write_text(SUITE.replace("BASE", old.base_url))
        first = run_suite(suite, store=store)
        with Store.open(store) as opened:
            export(opened, first.run, first.grading, "recordings", folder / "calls.jsonl")
        (folder / "called").unlink()
        suite.write_text(SUITE.replace("BASE", new.base_url) + WITH)
        second = run_suite(suite, store=store)
    assert not (folder / "called").exists(), "a tool was called for real"
    return second


def text_of(write: Callable[[GradedRun, Any], None], graded: GradedRun) -> str:
    out = io.StringIO()
    write(graded, out)
    return out.getvalue()


@pytest.fixture
def facts(run: RunResult) -> RecordingSummary:
    (found,) = run.summary.recording
    return found


def test_the_summary_has_the_facts(facts: RecordingSummary) -> None:
    assert (facts.conversations, facts.same, facts.unrecorded, facts.errors, facts.turns) == (3, 1, 0, 0, 4)
    assert [(one.kind, one.conversations, one.sample, one.turn) for one in facts.different] == [
        ("reply", 1, "words", 0),
        ("unrecorded", 1, "calls", 1),
    ]
    calls = facts.calls
    assert (calls.answered, calls.live, calls.missed, calls.unused, calls.examples) == (
        5,
        0,
        1,
        1,
        ['refund({"order": "A-3"})'],
    )
    assert facts.ended == ["calls, turn 2"]
    (says,) = facts.pairs
    assert (says.grader, says.of, says.n, says.better, says.worse, says.left_out) == ("says", "turn", 4, 0, 1, 0)
    assert (says.recorded, says.new, says.p_value) == (1.0, 0.75, 1.0)


def test_the_conversation_has_them_too(run: RunResult) -> None:
    found = {outcome.attempt.key.sample_id: outcome for outcome in run.outcomes()}
    score = found["calls"].scores[AS_RECORDED]
    kept = AsRecorded.model_validate(score.extra[AS_RECORDED])
    assert (score.value, kept.same, kept.comparable, kept.calls.missed) == (0.0, 1, 1, 1)
    failure = found["calls"].attempt.failure
    assert failure is not None
    assert (failure.kind, failure.blame) == ("unrecorded", "suite")
    call = 'refund({"order": "A-3", "amount": 5})'
    assert f"calls.jsonl has no result of {call}, called in turn 2" in failure.message
    assert (failure.evidence or "").splitlines()[0] == 'recorded: refund({"order": "A-3"})'
    says = found["calls"].scores["says"]
    assert (says.state, [one.value for one in says.turns or ()]) == ("error", [1.0, None])


def test_the_terminal_says_them(graded: GradedRun) -> None:
    out = io.StringIO()
    summary = graded.summary()
    console = Console(file=out, width=2000)
    console.print(run_report(summary, worst(graded.store, graded.grading), graded.run.id))
    lines = recorded_lines(summary)
    assert lines[0] == "as recorded: 1 of 3 conversations"
    assert lines[1] == (
        "same calls, different reply: 1 (words, turn 1: the reply is “May I refund it?”, "
        "recorded is “Shall I refund it?”)"
    )
    assert lines[2].startswith("a call that is not in the recording: 1 (calls, turn 2: calls.jsonl has no result of ")
    assert lines[3] == (
        "tool calls: 5 answered from the recording, 1 not in it (calls, turn 2), 1 recorded but not made: "
        'refund({"order": "A-3"})'
    )
    assert lines[4] == (
        "says, 4 comparable turns: 0 better, 1 worse, 3 the same; mean recorded 1.000, now 0.750, sign test p 1"
    )
    assert all(line in out.getvalue() for line in lines)


def test_viva_show_says_where_it_differs(graded: GradedRun) -> None:
    out = io.StringIO()
    outcome = next(one for one in graded.outcomes() if one.attempt.key.sample_id == "words")
    Console(file=out, width=200).print(conversation(outcome))
    text = out.getvalue()
    assert "0.00  as_recorded  the reply is “May I refund it?”, recorded is “Shall I refund it?”" in text
    assert "skipped  as_recorded  not comparable: another conversation since turn 1" in text


def test_files_say_them(graded: GradedRun) -> None:
    summary = graded.summary()
    lines = recorded_lines(summary)
    assert Summary.model_validate(json.loads(text_of(write_json, graded))["summary"]) == summary
    markdown, annotations = text_of(write_markdown, graded), text_of(write_github, graded)
    assert all(line[:200] in markdown for line in lines)
    assert all(line[:100].replace("%", "%25") in annotations for line in lines)
    root = fromstring(text_of(write_junit, graded))
    told = [one.get("value") or "" for one in root.iter("property") if (one.get("name") or "").startswith("as_rec")]
    assert [one[:100] for one in told] == [line[:100] for line in lines]


def test_the_page_and_the_api_say_them(graded: GradedRun) -> None:
    summary = graded.summary()
    with serving(graded.store) as url:
        page = get(f"{url}/runs/{graded.run.id}").text
        told = get(f"{url}/api/v1/runs/{graded.run.id}").json()
    assert Summary.model_validate(told["summary"]) == summary
    plain = page.replace("&#34;", '"').replace("&quot;", '"')
    assert all(line in plain for line in recorded_lines(summary))


def test_a_run_that_is_not_at_its_end_says_what_is_there(graded: GradedRun) -> None:
    going_on = graded.run.model_copy(update={"status": "running"})
    assert GradedRun(graded.store, going_on, graded.grading).summary().recording == graded.summary().recording
