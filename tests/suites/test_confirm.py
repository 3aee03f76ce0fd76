"""`confirm:` of a judged grader, from the suite to the score."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.run.summary import RunResult
from vivavoce.suites.check import check_suite
from vivavoce.suites.experiment import run_suite
from vivavoce.suites.load import load_suite

SUITE = """\
name: strict
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
    model: "judges.py:first"
    threshold: 0.6
"""
JUDGES = """\
from vivavoce.testing import ScriptedModel

words = ["good", "bad", "doubt"]

def strict(request):
    text = request.messages[-1].text
    good = "good" in text.split("?")[-1]
    return {"score": 0.9 if good else 0.5, "reasoning": "strict", "evidence": words, "confidence": 0.9}

def mild(request):
    text = request.messages[-1].text
    bad = "bad" in text
    return {"score": 0.2 if bad else 0.8, "reasoning": "mild", "evidence": words, "confidence": 0.9}

first, second = ScriptedModel(strict, "first"), ScriptedModel(mild, "second")
"""
CONFIRM = '    confirm: {model: "judges.py:second"}\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("judges.py").write_text(JUDGES)


def ran(grader: str) -> RunResult:
    Path("suite.yaml").write_text(SUITE + grader)
    return run_suite("suite.yaml")


def test_only_what_fails_is_asked_again_and_the_threshold_of_the_grader_says_what_fails() -> None:
    result = ran(RUBRIC + CONFIRM)
    scores = {outcome.attempt.key.sample_id: outcome.scores["judged"] for outcome in result.outcomes()}
    assert [score.reason for score in scores.values() if score.state == "error"] == []
    assert {name: score.passed for name, score in scores.items()} == {"good": True, "bad": False, "doubt": True}
    assert {name: len(score.extra.get("opinions", ())) for name, score in scores.items()} == {
        "good": 0,
        "bad": 3,
        "doubt": 3,
    }
    assert result.grading.fingerprints != ran(RUBRIC).grading.fingerprints


def test_a_dry_run_says_at_most_how_many_verdicts() -> None:
    Path("suite.yaml").write_text(SUITE + RUBRIC + CONFIRM)
    forecast = check_suite(load_suite(Path("suite.yaml")))
    assert (forecast.verdicts, forecast.depends) == (9, True)


@pytest.mark.parametrize(
    ("grader", "text"),
    [
        ("    kind: metric\n    metric: turn_count\n    threshold: 1\n" + CONFIRM, "confirm is for a metric that asks"),
        (RUBRIC + "    confirm: {votes: 2}\n", "confirm: the key 'model' is missing"),
        (
            RUBRIC + '    confirm: {model: "judges.py:second", votes: 0}\n',
            "votes: should be greater than or equal to 1",
        ),
        (
            RUBRIC + '    confirm: {model: "judges.py:third"}\n',
            "graders.judged.confirm.model: judges.py has no 'third'",
        ),
    ],
)
def test_what_cannot_be_confirmed_is_a_mistake_of_the_suite(grader: str, text: str) -> None:
    Path("suite.yaml").write_text(SUITE + grader)
    with pytest.raises(UsageError) as caught:
        check_suite(load_suite(Path("suite.yaml")))
    assert text in str(caught.value)
