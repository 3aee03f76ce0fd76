"""`cascade:` of a grader, from the suite to the score, its calibration and its corrected rate."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.run.result import RunResult
from vivavoce.suites.check import check_suite
from vivavoce.suites.load import load_suite
from vivavoce.suites.opening import run_suite

SUITE = """\
name: cheap first
driver: replay
dataset:
  rows:
    - {id: good, messages: [{role: user, content: hi}, {role: assistant, content: good}]}
    - {id: bad, messages: [{role: user, content: hi}, {role: assistant, content: bad}]}
    - {id: doubt, messages: [{role: user, content: hi}, {role: assistant, content: doubt}]}
graders:
  judged:
"""
RUBRIC = """\
    kind: model_judge
    prompt: "Is it good? {{ submission }}"
    model: "judges.py:large"
    threshold: 0.6
"""
METRIC = """\
    kind: metric
    metric: aspect_critic
    config: {definition: "Is it good?"}
    model: "judges.py:large"
"""
JUDGES = """\
from vivavoce.testing import ScriptedModel

def said(score):
    return {"score": score, "reasoning": "so", "evidence": [], "confidence": 1.0}

def quick(request):
    text = request.messages[-1].text.split("?")[-1]
    return said(0.95 if "good" in text else 0.1 if "bad" in text else 0.65)

small = ScriptedModel(quick, "small")
large = ScriptedModel(lambda request: said(0.5), "large")
"""
CASCADE = '    cascade: {model: "judges.py:small", fails_below: 0.2, passes_from: 0.9}\n'
CHEAP = "    cascade: {metric: response_length, config: {unit: words, maximum: 20}, fails_below: 0.2}\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("judges.py").write_text(JUDGES)


def ran(grader: str) -> RunResult:
    Path("suite.yaml").write_text(SUITE + grader)
    return run_suite("suite.yaml")


def test_only_what_the_first_is_unsure_of_goes_to_the_judge() -> None:
    result = ran(RUBRIC + CASCADE)
    scores = {one.attempt.key.sample_id: one.scores["judged"] for one in result.outcomes()}
    found = {name: (one.extra["decided_by"], one.value, one.passed) for name, one in scores.items()}
    assert found == {"good": ("first", 0.95, True), "bad": ("first", 0.1, False), "doubt": ("then", 0.5, False)}
    assert result.grading.fingerprints != ran(RUBRIC).grading.fingerprints
    other = CASCADE.replace("0.9", "0.8")
    assert result.grading.fingerprints != ran(RUBRIC + other).grading.fingerprints


def test_the_threshold_of_the_grader_is_that_of_the_judge() -> None:
    result = ran(RUBRIC.replace("0.6", "0.99") + CASCADE)
    scores = {one.attempt.key.sample_id: one.scores["judged"] for one in result.outcomes()}
    assert {name: one.passed for name, one in scores.items()} == {"good": True, "bad": False, "doubt": False}


@pytest.mark.parametrize(("grader", "verdicts"), [(RUBRIC + CASCADE, 6), (METRIC + CASCADE, 6)])
def test_a_dry_run_says_at_most_how_many_verdicts(grader: str, verdicts: int) -> None:
    Path("suite.yaml").write_text(SUITE + grader)
    found = check_suite(load_suite(Path("suite.yaml")))
    assert (found.verdicts, found.depends) == (verdicts, True)
