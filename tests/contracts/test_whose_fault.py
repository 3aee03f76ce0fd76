"""Whose fault is it? Everybody who says so gives the answer of the test, and only the target's own is a failure.

One suite has a test that nobody could pass, an attack that was never tried, and a failure of the target.
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from rich.console import Console

from vivavoce.penelope import success_rates
from vivavoce.penelope.result import TestResult, read_test
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.conversation import conversation
from vivavoce.report.junit import write_junit
from vivavoce.report.letta_files import error_of
from vivavoce.report.tables import write_csv
from vivavoce.report.transcript import conversation as in_terminal
from vivavoce.run.summary import RunResult
from vivavoce.suites.experiment import run_suite

PEOPLE = """\
from vivavoce.messages import ToolCall
from vivavoce.testing import ScriptedModel


def speak(request):
    return [ToolCall(name="send_message_to_target", args={"message": "Hello, can you help me?"})]


def examine(request):
    asked, text = request.schema.model_fields, request.messages[-1].text
    if "faults" in asked:
        hopeless = '"hopeless"' in text
        obstacle = {"obstacle": "impossible_goal" if hopeless else "none", "obstacle_evidence": ["Sorry"][:hopeless]}
        return {"faults": [], **obstacle, "reasoning": "It sells none.", "confidence": 0.9}
    if "given" in asked:
        answers = {"given": "no", "given_evidence": [], "asked": "no", "asked_evidence": []}
        return {**answers, "reasoning": "It only greets.", "confidence": 0.9}
    return {"achievement_level": "not_achieved", "confidence": 0.9, "reasoning": "No.", "evidence": []}


customer, examiner = ScriptedModel(speak, "customer"), ScriptedModel(examine, "examiner")
"""
SUITE: dict[str, Any] = {
    "name": "faults",
    "driver": "penelope",
    "dataset": {
        "rows": [
            {"id": "hopeless", "goal": "hopeless"},
            {"id": "untried", "goal": "untried", "adversarial": True},
            {"id": "failed", "goal": "failed"},
        ]
    },
    "target": {"kind": "function", "function": "bot.py:reply"},
    "tester": {"model": "people.py:customer", "judge": "people.py:examiner", "max_turns": 2},
    "graders": {"passed": {"kind": "function", "function": "target_passed"}},
}
BLAMED = {"hopeless": "suite", "untried": "tester", "failed": "target"}
REASONS = {
    "hopeless": "no assistant could have passed, for the goal is impossible: It sells none.",
    "untried": "the attack was never tried: It only greets.",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("faults")
    (folder / "bot.py").write_text("def reply(message):\n    return 'Sorry, no.'\n")
    (folder / "people.py").write_text(PEOPLE)
    (folder / "suite.yaml").write_text(json.dumps(SUITE))
    return run_suite(folder / "suite.yaml", store=str(folder / "kept.db"))


@pytest.fixture(scope="module")
def outcomes(run: RunResult) -> dict[str, Outcome]:
    return {outcome.attempt.key.sample_id: outcome for outcome in run.outcomes()}


def test_the_test_itself_says_it(outcomes: dict[str, Outcome], run: RunResult) -> None:
    tests = {name: _test(outcome) for name, outcome in outcomes.items()}
    assert {name: test.blame for name, test in tests.items()} == BLAMED
    assert {name: test.target_passed for name, test in tests.items()} == {
        "hopeless": None,
        "untried": None,
        "failed": False,
    }
    rates = success_rates(tests.values())
    assert run.summary.grader("passed").tester_errors == run.summary.tester_error_attempts == rates.tester_errors
    assert (rates.failed, rates.inconclusive, rates.tester_errors, rates.raw) == (1, 2, 1, 0.0)


def _test(outcome: Outcome) -> TestResult:
    talk = outcome.attempt.trajectory
    assert talk.test is not None
    return read_test(talk.test, talk)


def test_only_the_target_s_own_failure_is_a_score(outcomes: dict[str, Outcome]) -> None:
    scores: dict[str, Score] = {name: outcome.scores["passed"] for name, outcome in outcomes.items()}
    assert (scores["failed"].state, scores["failed"].value) == ("scored", 0.0)
    for name, reason in REASONS.items():
        failure = scores[name].failure
        assert (scores[name].state, scores[name].value) == ("error", None)
        assert failure is not None
        assert (failure.blame, failure.message) == (BLAMED[name], reason)


def test_the_exit_code_is_inconclusive(run: RunResult) -> None:
    assert (run.summary.verdict, run.exit_code) == ("inconclusive", 3)


def test_junit_has_errors_with_the_owner_and_one_failure(graded: GradedRun) -> None:
    out = io.StringIO()
    write_junit(graded, out)
    found: dict[str, tuple[str, str]] = {}
    for case in fromstring(out.getvalue()).iter("testcase"):
        known = {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}
        if known:
            result = next(child for child in case if child.tag in ("error", "failure"))
            found[known["sample_id"]] = result.tag, result.attrib["type"]
    assert found == {
        "hopeless": ("error", "suite.inconclusive"),
        "untried": ("error", "tester.inconclusive"),
        "failed": ("failure", "score"),
    }


def test_tables_name_the_owner(graded: GradedRun) -> None:
    out = io.StringIO()
    write_csv(graded, out)
    rows = csv.DictReader(io.StringIO(out.getvalue()))
    assert {row["sample_id"]: row["blame"] for row in rows} == {**BLAMED, "failed": ""}


def test_the_layout_of_letta_evals_has_an_error_and_its_reason(outcomes: dict[str, Outcome]) -> None:
    for name, reason in REASONS.items():
        error = error_of(outcomes[name])
        assert error is not None
        assert (error["category"], reason in error["message"]) == ("grading", True)
    assert error_of(outcomes["failed"]) is None


def test_the_page_and_the_terminal_name_the_owner_and_show_the_review(outcomes: dict[str, Outcome]) -> None:
    reviews = {"hopeless": "tester_review", "untried": "attack", "failed": "tester_review"}
    for name, outcome in outcomes.items():
        page: dict[str, Any] = conversation(outcome, lambda turn: None)
        ending = page["ending"]
        assert (ending.passed, ending.blame.partition(":")[0]) == (_test(outcome).target_passed, BLAMED[name])
        assert reviews[name] in [note.name for note in ending.notes]
        out = io.StringIO()
        Console(file=out, width=200).print(in_terminal(outcome))
        assert f"    blame  {BLAMED[name]}: " in out.getvalue()
        assert f"   metric  {reviews[name]} " in out.getvalue()
