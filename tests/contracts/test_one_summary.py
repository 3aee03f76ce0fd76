"""What does a run say besides its means? Everybody who says so gives the same facts.

One suite has trials that differ, tags, a judge whose answers cost and are cached, a slow target, and a gate over the
trials of each sample.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from rich.console import Console

from server.live import get, serving
from vivavoce.records.details import by_role
from vivavoce.report.details import detail_lines
from vivavoce.report.github import write_github
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.json_file import write_json
from vivavoce.report.junit import write_junit
from vivavoce.report.markdown import write_markdown
from vivavoce.report.terminal import run_report
from vivavoce.report.verdict import explain_verdict
from vivavoce.report.worst_samples import worst
from vivavoce.run.summary import RunResult, Summary
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite

SUITE = """\
name: facts
dataset:
  rows:
    - {id: steady, input: "Say yes", ground_truth: "yes", tags: [plain]}
    - {id: shaky, input: "Say yes or no", ground_truth: "yes", tags: [plain, hard]}
trials: 2
max_concurrent: 1
target: {kind: function, function: "bot.py:reply"}
graders:
  said: {kind: function, function: contains}
  kind:
    kind: model_judge
    prompt: "Kind? {{ submission }}"
    model: "people.py:judge"
gate: {kind: samples, metric_key: said, min_pass: 2}
"""
BOT = """\
import time

calls = []


def reply(message):
    calls.append(message)
    time.sleep(0.12)
    return "yes" if message == "Say yes" or calls.count(message) == 1 else "no"
"""
PEOPLE = """\
from vivavoce.models.model import ModelReply
from vivavoce.records.score import Usage
from vivavoce.testing import ScriptedModel

class Counted(ScriptedModel):
    async def complete(self, request):
        reply = await super().complete(request)
        usage = Usage(input_tokens=100, output_tokens=5, calls=1, cached_calls=1, cost=0.25)
        return ModelReply(reply.text, reply.parsed, reply.tool_calls, usage=usage)

judge = Counted(lambda _: {"score": 1, "reasoning": "kind", "evidence": [], "confidence": 1}, "judge")
"""
SAMPLES = "each sample must pass at least 2 times; 1 of 2 did not: shaky (1 of 2)"
SAID = ("Say yes or no", "no")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("facts")
    for name, text in (("suite.yaml", SUITE), ("bot.py", BOT), ("people.py", PEOPLE)):
        (folder / name).write_text(text)
    return run_suite(folder / "suite.yaml", store=str(folder / "kept.db"))


def text_of(write: Callable[[GradedRun, Any], None], graded: GradedRun) -> str:
    out = io.StringIO()
    write(graded, out)
    return out.getvalue()


def test_the_summary_has_the_facts(run: RunResult) -> None:
    summary = run.summary
    assert (run.exit_code, SAMPLES in explain_verdict(summary)[0]) == (1, True)
    used = summary.usage["judge"]
    assert (used.calls, used.cached_calls, used.input_tokens, used.cost) == (4, 4, 400, 1.0)
    (latency,) = summary.latency
    assert (latency.replies, latency.p50 >= 0.12, latency.p95 >= latency.p50) == (4, True, True)
    tags = {one.tag: [(grader.name, grader.scored, grader.mean) for grader in one.graders] for one in summary.tags}
    assert tags == {"hard": [("said", 2, 0.5), ("kind", 2, 1.0)], "plain": [("said", 4, 0.75), ("kind", 4, 1.0)]}
    said = next(one for one in summary.variance if one.name == "said")
    assert (said.samples, said.trials, said.judgements, said.judged) == (0.0, 0.25, None, False)
    kind = next(one for one in summary.variance if one.name == "kind")
    assert (kind.judgements, kind.judged) == (None, True)


def test_the_terminal_says_them(graded: GradedRun) -> None:
    out = io.StringIO()
    summary = graded.summary()
    Console(file=out, width=200).print(run_report(summary, worst(graded.store, graded.grading), graded.run.id))
    text = out.getvalue()
    lines = detail_lines(summary)
    assert [line.split(":")[0] for line in lines] == ["used", "replies", "said varies"]
    assert all(line in text for line in lines)
    assert "by tag\ntag    grader" in text
    assert SAMPLES in text
    assert "“Say yes or no” → “no”" in text


def test_files_say_them(graded: GradedRun) -> None:
    summary = graded.summary()
    assert Summary.model_validate(json.loads(text_of(write_json, graded))["summary"]) == summary
    markdown = text_of(write_markdown, graded)
    assert f"- {by_role(summary.usage)}" in markdown.splitlines()
    assert all(line in markdown for line in detail_lines(summary)[1:])
    assert "| `hard` | `said` |" in markdown
    assert SAMPLES in markdown
    assert "asked: `Say yes or no`<br>said: `no`" in markdown
    root = fromstring(text_of(write_junit, graded))
    bodies = [failure.text or "" for failure in root.iter("failure")]
    assert any(f"asked: {SAID[0]}" in body and SAID[1] in body for body in bodies)
    assert any(SAMPLES in body for body in bodies)
    assert "“Say yes or no” → “no”" in text_of(write_github, graded)


def test_the_page_and_the_api_say_them(graded: GradedRun) -> None:
    summary = graded.summary()
    with serving(graded.store) as url:
        page = get(f"{url}/runs/{graded.run.id}").text
        told = get(f"{url}/api/v1/runs/{graded.run.id}").json()
    assert all(line in page for line in detail_lines(summary))
    assert "<caption>By tag</caption>" in page
    assert SAMPLES in page
    assert Summary.model_validate(told["summary"]) == summary


def test_whoever_shows_tags_says_how_many_are_left_out(tmp_path: Path) -> None:
    rows = "".join(f'    - {{id: s{i}, input: "Say yes", ground_truth: "yes", tags: [t{i}, all]}}\n' for i in range(52))
    suite = f"name: tags\ndataset:\n  rows:\n{rows}target: {{kind: function, function: 'bot.py:reply'}}\n"
    (tmp_path / "suite.yaml").write_text(suite + "graders: {said: {kind: function, function: contains}}\n")
    (tmp_path / "bot.py").write_text("def reply(message):\n    return 'yes'\n")
    held = run_suite(tmp_path / "suite.yaml", store=str(tmp_path / "kept.db"))
    assert (len(held.summary.tags), held.summary.more_tags, held.summary.tags[0].tag) == (50, 3, "all")
    line, out = "and 3 more tags, none with more samples than these", io.StringIO()
    with Store.open(held.place, create=False) as store:
        graded = GradedRun(store, held.run, held.grading)
        Console(file=out, width=200).print(run_report(graded.summary(), worst(store, held.grading), held.run.id))
        markdown = text_of(write_markdown, graded)
        with serving(store) as url:
            page = get(f"{url}/runs/{held.run.id}").text
    assert [line in text for text in (out.getvalue(), markdown, page)] == [True, True, True]
