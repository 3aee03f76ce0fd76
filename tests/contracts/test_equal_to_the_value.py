"""Scores that equal the value of a gate: every reader gives the same verdict, in words that do not contradict it.

Every score is 0.7, a number that no float is exactly, and the value of the gate is 0.7 as well.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import fromstring

import pytest
from rich.console import Console

from server.live import get, serving
from vivavoce.cli.main import main
from vivavoce.client import Client
from vivavoce.comparing.thresholds import SIGNS, Operator
from vivavoce.report.github import write_github
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.one_file import write_html
from vivavoce.report.json_file import write_json
from vivavoce.report.junit import write_junit
from vivavoce.report.markdown import write_markdown
from vivavoce.report.terminal import run_report
from vivavoce.report.verdict import explain_verdict, finding
from vivavoce.report.worst_samples import worst
from vivavoce.run.summary import RunResult, Summary
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite

pytest_plugins = ["pytester"]

SUITE = """\
name: equal
dataset: {{rows: [{{id: a, input: x}}, {{id: b, input: y}}, {{id: c, input: z}}]}}
target: {{kind: function, function: "bot.py:reply"}}
graders: {{s: {{kind: function, function: "bot.py:seven", threshold: 0.7}}}}
gate: {{metric_key: s, op: {op}, value: 0.7}}
"""
BOT = "def reply(message): return 'hi'\ndef seven(sample, submission): return 0.7\n"
VERDICTS: dict[Operator, str] = {"gte": "pass", "lte": "pass", "eq": "pass", "gt": "fail", "lt": "fail"}
CODES = {"pass": 0, "fail": 1}


class Case(NamedTuple):
    """A run, what its verdict is, and what every report says about it."""

    run: RunResult
    folder: Path
    verdict: str
    sentence: str


@pytest.fixture(scope="module", params=VERDICTS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    op: Operator = request.param
    folder = tmp_path_factory.mktemp(op)
    (folder / "suite.viva.yaml").write_text(SUITE.format(op=op))
    (folder / "bot.py").write_text(BOT)
    run = run_suite(folder / "suite.viva.yaml", store=str(folder / "kept.db"))
    sentence = f"{VERDICTS[op]} · s: mean must be {SIGNS[op]} 0.7; it is 0.7"
    return Case(run, folder, VERDICTS[op], sentence)


@pytest.fixture
def graded(case: Case) -> Iterator[GradedRun]:
    with Store.open(case.run.place, create=False) as store:
        yield GradedRun(store, case.run.run, case.run.grading)


def text(write: Callable[[GradedRun, Any], object], graded: GradedRun) -> str:
    out = io.StringIO()
    write(graded, out)
    return out.getvalue()


def test_python_gives_the_verdict_and_its_exit_code(case: Case) -> None:
    assert (case.run.summary.verdict, case.run.exit_code) == (case.verdict, CODES[case.verdict])
    assert explain_verdict(case.run.summary) == [case.sentence]
    assert [grader.pass_rate for grader in case.run.summary.graders] == [1.0], (
        "each score reaches the threshold of its grader"
    )


def test_reports_say_it_in_the_same_words(case: Case, graded: GradedRun) -> None:
    out = io.StringIO()
    Console(file=out, width=200).print(run_report(case.run.summary, worst(graded.store, graded.grading), "run"))
    assert f"{case.verdict.upper()}\n  {case.sentence}\n" in out.getvalue()
    for write in (write_markdown, write_html):
        assert case.sentence.partition(" · ")[2] in unescape(text(write, graded)).replace("<code>", "")
    stored = json.loads(text(write_json, graded))["summary"]
    assert Summary.model_validate(stored) == case.run.summary
    [gate] = [one for one in fromstring(text(write_junit, graded)).iter("testcase") if one.get("name") == "gate"]
    assert [failure.text for failure in gate] == ([] if case.verdict == "pass" else [case.sentence])
    annotation = text(write_github, graded).replace("%3A", ":")
    assert f"equal: {case.verdict}::{case.sentence}" in annotation


def test_the_sentence_of_a_list_agrees(case: Case, graded: GradedRun) -> None:
    op = graded.run.spec["gate"]["op"]
    sign = SIGNS[op] if case.verdict == "pass" else {"gt": "≤", "lt": "≥"}[op]
    said = finding(case.run.summary, case.run.grading)
    assert said.startswith({"pass": "passes: s 0.70 [", "fail": "fails: s 0.70 ["}[case.verdict])
    assert said.endswith(f"] {sign} 0.7")


def test_the_api_and_the_pages_agree(case: Case, graded: GradedRun) -> None:
    said = finding(case.run.summary, case.run.grading)
    with serving(graded.store) as address, Client(address) as client:
        report = client.run("latest")
        assert report.summary == case.run.summary
        assert [one.verdict for one in client.runs()] == [case.verdict]
        page = unescape(get(f"{address}/runs/{case.run.run.id}").text)
        assert case.sentence.partition(" · ")[2] in page
        assert said in unescape(get(f"{address}/").text)


@pytest.mark.parametrize("command", ["run", "grade"])
def test_commands_end_with_its_code(
    command: str, case: Case, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(case.folder)
    (case.folder / "again.db").unlink(missing_ok=True)
    arguments = ["run", "suite.viva.yaml", "-q", "--store", "again.db"]
    if command == "grade":
        arguments = ["grade", case.run.run.id, "-q", "--store", "kept.db"]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == CODES[case.verdict]
    assert case.sentence in capsys.readouterr().out


def test_pytest_agrees(case: Case, pytester: pytest.Pytester) -> None:
    for name in ("suite.viva.yaml", "bot.py"):
        (pytester.path / name).write_text((case.folder / name).read_text())
    result = pytester.runpytest_inprocess("--viva", "-p", "no:cacheprovider")
    failed = case.verdict == "fail"
    result.assert_outcomes(passed=3 if failed else 4, failed=1 if failed else 0)
    if failed:
        result.stdout.fnmatch_lines([f"the run fails: {case.sentence}*"])
