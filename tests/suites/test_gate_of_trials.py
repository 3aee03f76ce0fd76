"""Gates over the trials of each sample, from the suite to the words of the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.report.verdict import explain_verdict
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.suites.check import check_suite
from vivavoce.suites.experiment import run_suite
from vivavoce.suites.load import load_suite

SUITE = """\
name: flaky
dataset:
  rows:
    - {id: steady, input: "yes yes yes yes yes", ground_truth: "yes"}
    - {id: often, input: "yes yes no yes yes", ground_truth: "yes"}
    - {id: shaky, input: "yes no yes no yes", ground_truth: "yes"}
target: {kind: function, function: "bot.py:reply"}
trials: 5
max_concurrent: 1
graders: {said: {kind: function, function: contains}}
"""
BOT = """\
calls = {}


def reply(message: str) -> str:
    calls[message] = calls.get(message, 0) + 1
    word = message.split()[(calls[message] - 1) % 5]
    if word == "crash":
        raise RuntimeError("the bot broke")
    return word
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text(BOT)


def ran(gate: str, text: str = SUITE, **options: Any) -> RunResult:
    Path("suite.yaml").write_text(f"{text}gate: {{{gate}}}\n")
    return run_suite("suite.yaml", RunOptions(**options))


@pytest.mark.parametrize(
    ("gate", "code", "text"),
    [
        ("kind: samples, metric_key: said, min_pass: 3", 0, "all 3 did"),
        (
            "kind: samples, metric_key: said, min_pass: 4",
            1,
            "fail · said: each sample must pass at least 4 times; 1 of 3 did not: shaky (3 of 5)",
        ),
        ("metric_key: said, kind: simple, aggregation: pass^k, k: 3, value: 0.5", 0, "pass^3 must be ≥ 0.5; it is 0.5"),
        ("metric_key: said, kind: simple, aggregation: pass^k, k: 3, value: 0.6", 1, "pass^3 must be ≥ 0.6; it is 0.5"),
        (
            "kind: logical, operator: and, conditions: "
            "[{kind: samples, metric_key: said, min_pass: 5}, {metric_key: said, value: 0.1}]",
            1,
            "2 of 3 did not: often (4 of 5), shaky (3 of 5)",
        ),
    ],
)
def test_the_verdict_is_over_the_trials_of_each_sample(gate: str, code: int, text: str) -> None:
    result = ran(gate)
    assert result.exit_code == code
    assert text in explain_verdict(result.summary)[0]


def test_errors_count_where_they_could_change_the_verdict() -> None:
    broken = SUITE.replace("yes no yes no yes", "yes crash yes crash yes")
    at_least = "kind: samples, metric_key: said, min_pass: {}"
    assert ran(at_least.format(3), broken).exit_code == 0
    undecided = ran(at_least.format(4), broken)
    assert undecided.exit_code == 3
    assert "errors could change the result of 1 of 3: shaky (3 of 5)" in explain_verdict(undecided.summary)[0]
    hopeless = SUITE.replace("yes no yes no yes", "no no yes crash yes")
    assert ran(at_least.format(4), hopeless).exit_code == 1
    assert ran(at_least.format(4), broken, max_errors="2").exit_code == 3  # 3 trials are left, and 4 must pass


@pytest.mark.parametrize(
    ("gate", "shaky", "limit", "code", "text"),
    [
        ("kind: samples, min_pass: 4", "crash crash crash crash crash", "40%", 3, "of 1 of 3: shaky (0 of 5)"),
        ("kind: samples, min_pass: 4", "yes yes yes yes crash", "1", 0, "all 3 did"),
        ("kind: samples, min_pass: 4", "yes yes yes no crash", "1", 3, "of 1 of 3: shaky (3 of 5)"),
        ("kind: samples, min_pass: 4", "yes yes no no crash", "1", 1, "did not: shaky (2 of 5)"),
        ("aggregation: pass^k, k: 3, value: 0.5", "crash crash crash crash crash", "40%", 3, "shaky (0 of 0)"),
    ],
)
def test_an_allowed_error_is_no_trial_that_passed(gate: str, shaky: str, limit: str, code: int, text: str) -> None:
    result = ran(f"metric_key: said, {gate}", SUITE.replace("yes no yes no yes", shaky), max_errors=limit)
    assert (result.exit_code, text in explain_verdict(result.summary)[0]) == (code, True), explain_verdict(
        result.summary
    )


@pytest.mark.parametrize(
    "gate",
    [
        "kind: samples, metric_key: said, min_pass: 6",
        "kind: simple, metric_key: said, aggregation: pass^k, k: 6, value: 0.5",
    ],
)
def test_more_trials_than_there_are_is_a_mistake_unless_a_run_has_more(gate: str) -> None:
    Path("suite.yaml").write_text(f"{SUITE}gate: {{{gate}}}\n")
    suite = load_suite(Path("suite.yaml"))
    with pytest.raises(UsageError, match=r"suite.yaml:11:\d+ gate.*6 trials of each sample, and there are 5; write"):
        check_suite(suite)
    check_suite(suite, RunOptions(trials=6))


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        ("kind: simple, metric_key: said, aggregation: pass^k, value: 0.5", "pass^k needs k, the number of trials"),
        ("kind: simple, metric_key: said, k: 2, value: 0.5", "k is for pass^k and pass@k, not for avg_score"),
        ("kind: simple, metric_key: said, aggregation: pass^k, k: 2, value: 50", "pass^k is from 0 to 1"),
        ("kind: samples, metric_key: said, min_pass: 0", "min_pass: should be greater than or equal to 1"),
        ("kind: samples, metric_key: sad, min_pass: 2", "no grader 'sad'; did you mean 'said'?"),
        ("kind: weighted_average, weights: {said: 1}, aggregation: pass^k, value: 0.5", "needs one of avg_score"),
    ],
)
def test_a_gate_of_trials_that_cannot_decide_is_refused(gate: str, text: str) -> None:
    Path("suite.yaml").write_text(f"{SUITE}gate: {{{gate}}}\n")
    with pytest.raises(UsageError) as caught:
        check_suite(load_suite(Path("suite.yaml")))
    assert text in str(caught.value)
