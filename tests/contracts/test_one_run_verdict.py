"""What decides a run? Everybody who says so lists the same: the gate, missed assertions, broken rules; warnings apart.

The gate passes, an assertion of a row is missed, a rule is broken, another rule and another assertion only warn.
"""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from rich.console import Console

from server.live import get, serving
from vivavoce.cli.options import InParts
from vivavoce.features.parts.command import run_in_parts
from vivavoce.records.run import Reason
from vivavoce.report.github import write_github
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.json_file import write_json
from vivavoce.report.junit import write_junit
from vivavoce.report.markdown import write_markdown
from vivavoce.report.terminal import verdict_lines
from vivavoce.report.verdict import headline_failed, listed_finding
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult, Summary
from vivavoce.store.store import Store
from vivavoce.suites.experiment import open_regrading, run_suite
from vivavoce.suites.load import load_suite

SUITE = """\
name: decided
target: {kind: function, function: "bot.py:reply"}
dataset:
  rows:
    - {id: a, input: hello, ground_truth: hello, expect: [{contains: welcome}]}
    - {id: b, input: hello, ground_truth: hello, expect: [[{contains: hello}, {contains: bye, severity: warn}]]}
    - {id: c, input: hello, expect: [{contains: hello}]}
graders:
  right: {kind: function, function: contains}
  silent: {kind: rule, never: {assistant_says: hello}}
  polite: {kind: rule, always: {assistant_says: please}, severity: warn}
gate: {kind: simple, metric_key: right, value: 0.95}
"""
DECIDING = {("fail", "silent"), ("fail", "expect"), ("pass", "right")}
WARNINGS = {"polite", "expect"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("decided")
    (found / "decided.viva.yaml").write_text(SUITE)
    (found / "bot.py").write_text("def reply(message): return message\n")
    return found


@pytest.fixture(scope="module")
def run(folder: Path) -> RunResult:
    return run_suite(folder / "decided.viva.yaml", store=str(folder / "kept.db"))


def _named(reasons: list[Reason]) -> set[tuple[str, str]]:
    return {(reason.verdict, name) for reason in reasons for name in reason.graders}


def _decision(summary: Summary) -> tuple[Any, set[tuple[str, str]], set[str]]:
    return summary.verdict, _named(summary.reasons), {name for _, name in _named(summary.warnings)}


def _text(write: Callable[[GradedRun, Any], None], run: RunResult, store: Store) -> str:
    out = io.StringIO()
    write(GradedRun(store, run.run, run.grading), out)
    return out.getvalue()


def _lines_name(text: str) -> None:
    """Check that a text says of each grader what it decided."""
    for name in ("silent", "expect"):
        assert f"fail · {name}: every conversation must pass" in text
        assert f"warning · {'polite' if name == 'silent' else name}" in text
    assert "pass · right" in text


def test_python_has_the_verdict_with_its_reasons_and_warnings(run: RunResult) -> None:
    assert (*_decision(run.summary), run.exit_code) == ("fail", DECIDING, WARNINGS, 1)


def test_the_stored_run_says_the_same(run: RunResult) -> None:
    with Store.open(run.place) as store:
        graded = GradedRun(store, store.run(run.run.id), store.grading(run.run.id))
        assert _decision(graded.summary()) == ("fail", DECIDING, WARNINGS)
        assert graded.grading.verdict == "fail"


def test_grading_again_says_the_same(run: RunResult) -> None:
    with Store.open(run.place) as store:
        again = asyncio.run(open_regrading(run.run.id, store=store).execute())
    assert (*_decision(again.summary), again.exit_code) == ("fail", DECIDING, WARNINGS, 1)


@pytest.mark.parametrize("write", [write_markdown, write_github])
def test_markdown_and_annotations_say_the_same(write: Callable[[GradedRun, Any], None], run: RunResult) -> None:
    with Store.open(run.place) as store:
        text = _text(write, run, store)
    assert "fail · silent: every conversation must pass" in text
    assert "fail" in text.splitlines()[0]


def test_the_terminal_says_the_same(run: RunResult) -> None:
    out = io.StringIO()
    Console(file=out, width=300).print(*verdict_lines(run.summary), sep="\n")
    assert out.getvalue().startswith("FAIL")
    _lines_name(out.getvalue())


def test_json_says_the_same(run: RunResult) -> None:
    with Store.open(run.place) as store:
        summary = json.loads(_text(write_json, run, store))["summary"]
    assert _decision(Summary.model_validate(summary)) == ("fail", DECIDING, WARNINGS)


def test_junit_says_the_same_and_a_warning_is_no_failure(run: RunResult) -> None:
    with Store.open(run.place) as store:
        root = fromstring(_text(write_junit, run, store))
    gate = next(case for case in root.iter("testcase") if case.get("name") == "gate")
    _lines_name("".join(gate.itertext()))
    assert gate.find("failure") is not None
    failed = {case.get("name") for case in root.iter("testcase") if case.find("failure") is not None}
    assert failed == {"gate", "a · silent", "b · silent", "c · silent", "a · expect"}
    polite = next(case for case in root.iter("testcase") if case.get("name") == "a · polite")
    assert "only a warning" in "".join(polite.itertext())


def test_pages_say_the_same(run: RunResult) -> None:
    with Store.open(run.place) as store, serving(store) as address:
        page = get(f"{address}/runs/{run.run.id}").text
        listed = get(f"{address}/api/v1/runs/{run.run.id}").json()
    assert page.count("Not met") >= 2
    assert "silent: every conversation must pass" in page
    assert ">Warning" in page
    assert "fail" in json.dumps(listed)


def test_the_list_says_the_same_and_its_headline_is_the_grader_that_failed(run: RunResult) -> None:
    with Store.open(run.place) as store:
        entry = next(one for one in store.browse.runs().runs if one.id == run.run.id)
    assert (entry.verdict, headline_failed(entry)) == ("fail", True)
    assert entry.headline is not None
    assert entry.headline.name == "silent"
    assert listed_finding(entry) == run.finding


def test_the_command_ends_with_failure(folder: Path) -> None:
    command = [str(Path(sys.executable).with_name("viva")), "run", "decided.viva.yaml", "-q", "--store", "cli.db"]
    viva = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert viva.returncode == 1
    _lines_name(viva.stdout)


def test_parts_that_are_merged_end_with_failure(folder: Path) -> None:
    text = SUITE.partition("dataset:")
    rows = folder / "rows.jsonl"
    rows.write_text(
        "".join(json.dumps(row) + "\n" for row in load_suite(folder / "decided.viva.yaml").spec.dataset.rows or ())
    )
    graders = text[2][text[2].index("graders:") :]
    (folder / "parts.yaml").write_text(f"{text[0]}dataset: rows.jsonl\n{graders}")
    job = load_suite(folder / "parts.yaml")
    code = run_in_parts(job, InParts(str(folder / "parts")), RunOptions(), str(folder / "parts.db"), quiet=True)
    assert code == 1
    with Store.open(str(folder / "parts.db"), create=False) as store:
        (stored,) = store.runs()
        summary = GradedRun(store, stored, store.grading(stored.id)).summary()
    assert _decision(summary) == ("fail", DECIDING, WARNINGS)
