"""`cascade:` of a grader, from the suite to the score, its calibration and its corrected rate."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.run.summary import RunResult
from vivavoce.suites.check import check_suite
from vivavoce.suites.experiment import run_suite
from vivavoce.suites.load import load_suite

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

def said(score, text):
    words = [word for word in ("good", "bad", "doubt", "hi") if word in text]
    return {"score": score, "reasoning": "so", "evidence": words, "confidence": 1.0}

def quick(request):
    text = request.messages[-1].text.split("?")[-1]
    return said(0.95 if "good" in text else 0.1 if "bad" in text else 0.65, text)

small = ScriptedModel(quick, "small")
large = ScriptedModel(lambda request: said(0.5, request.messages[-1].text), "large")
"""
YES = """\
answer = {"reasoning": "so", "evidence": ["hi"], "verdict": True, "confidence": 1.0}
yes = ScriptedModel(lambda request: answer, "yes")
"""
CASCADE = '    cascade: {model: "judges.py:small", fails_below: 0.2, passes_from: 0.9}\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("judges.py").write_text(JUDGES)


def ran(grader: str) -> RunResult:
    Path("suite.yaml").write_text(SUITE + grader)
    return run_suite("suite.yaml")


def test_only_what_the_first_is_unsure_of_goes_to_the_judge() -> None:
    result = ran(RUBRIC + CASCADE)
    scores = {outcome.attempt.key.sample_id: outcome.scores["judged"] for outcome in result.outcomes()}
    decisions = {name: (score.extra["decided_by"], score.value, score.passed) for name, score in scores.items()}
    assert decisions == {"good": ("first", 0.95, True), "bad": ("first", 0.1, False), "doubt": ("then", 0.5, False)}
    assert result.grading.fingerprints != ran(RUBRIC).grading.fingerprints
    other = CASCADE.replace("0.9", "0.8")
    assert result.grading.fingerprints != ran(RUBRIC + other).grading.fingerprints


def test_the_threshold_of_the_grader_is_that_of_the_judge() -> None:
    result = ran(RUBRIC.replace("0.6", "0.99") + CASCADE)
    scores = {outcome.attempt.key.sample_id: outcome.scores["judged"] for outcome in result.outcomes()}
    assert {name: score.passed for name, score in scores.items()} == {"good": True, "bad": False, "doubt": False}


@pytest.mark.parametrize(("grader", "verdicts"), [(RUBRIC + CASCADE, 6), (METRIC + CASCADE, 6)])
def test_a_dry_run_says_at_most_how_many_verdicts(grader: str, verdicts: int) -> None:
    Path("suite.yaml").write_text(SUITE + grader)
    forecast = check_suite(load_suite(Path("suite.yaml")))
    assert (forecast.verdicts, forecast.depends) == (verdicts, True)


def test_a_cheap_metric_may_be_asked_first() -> None:
    cheap = '    cascade: {metric: refusal, passes_from: 1}\n    model: "judges.py:yes"\n'
    Path("judges.py").write_text(JUDGES + YES)
    result = ran('    kind: metric\n    metric: aspect_critic\n    config: {definition: "Is it good?"}\n' + cheap)
    scores = [outcome.scores["judged"] for outcome in result.outcomes()]
    assert [(score.extra["decided_by"], score.passed) for score in scores] == [("first", True)] * 3
    assert [score.name for score in scores] == ["judged"] * 3


def test_a_cascade_grades_the_extracted_text_as_a_whole() -> None:
    Path("judges.py").write_text(JUDGES + YES)
    metric = METRIC.replace("large", "yes") + "    extractor: last_assistant\n"
    result = ran(metric + "    cascade: {metric: refusal, fails_below: 0.5}\n")
    scores = [outcome.scores["judged"] for outcome in result.outcomes()]
    assert [(score.extra["decided_by"], score.passed) for score in scores] == [("then", True)] * 3


@pytest.mark.parametrize(
    ("grader", "text"),
    [
        (RUBRIC + CASCADE.replace("0.2", "0.95"), "suite.yaml:14:5 graders.judged.cascade: fails_below must be less"),
        (RUBRIC + '    cascade: {model: "judges.py:small"}\n', "needs fails_below, passes_from or both"),
        (RUBRIC + "    cascade: {passes_from: 0.9}\n", "cascade: needs model, metric or both for the first judge"),
        (RUBRIC + CASCADE.replace("0.9", "1.9"), "passes_from: should be less than or equal to 1"),
        (RUBRIC + CASCADE.replace("small", "large"), "graders.judged.cascade: both judges of the cascade are"),
        (RUBRIC + CASCADE.replace("small", "third"), "graders.judged.cascade.model: judges.py has no 'third'"),
        (RUBRIC + CASCADE.replace("model:", "config: {a: 1}, model:"), "config is for another metric"),
        (RUBRIC + CASCADE + '    confirm: {model: "judges.py:small"}\n', "use either confirm or cascade"),
        (RUBRIC + CASCADE + "    scope: turn\n", "graders.judged.cascade: a cascade judges whole conversations"),
        (RUBRIC + "    cascade: {metric: nothing, passes_from: 0.9}\n", "graders.judged.cascade: no metric 'nothing'"),
        (RUBRIC + "    cascade: {metric: turn_count, passes_from: 0.9}\n", "turn_count has no highest score"),
        (RUBRIC + "    cascade: {metric: safety, passes_from: 0.9}\n", "'safety' needs a judge: write model next to"),
        (
            "    kind: metric\n    metric: refusal\n" + CASCADE,
            "cascade: this metric uses no model, so another",
        ),
        ("    kind: metric\n    metric: contains\n" + CASCADE, "'contains' uses no model; remove cascade"),
    ],
)
def test_what_is_no_cascade_is_a_mistake_of_the_suite(grader: str, text: str) -> None:
    Path("suite.yaml").write_text(SUITE + grader)
    with pytest.raises(UsageError) as caught:
        check_suite(load_suite(Path("suite.yaml")))
    assert text in str(caught.value)
