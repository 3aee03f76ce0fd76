"""`errors: fail`: a gate that counts an error as a failure, and what says so."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.junit import write_junit
from vivavoce.report.verdict import explain_verdict, finding
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite
from vivavoce.suites.load import load_suite

SUITE = """\
name: errors
dataset: {{rows: [{rows}]}}
target: {{kind: function, function: "bot.py:reply", max_retries: 0}}
graders: {{says: {{kind: function, function: contains}}, likes: {{kind: function, function: contains}}}}
gate: {gate}
"""
BOT = """\
def reply(message):
    if message.startswith("x"):
        raise ConnectionError("503")
    return "yes" if message.startswith("a") else "no"
"""
ROWS = ("a1", "a2", "b1", "x1", "x2")
FAILED = "2 errors count as failed, with a score of 0"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text(BOT)


def write_suite(gate: str, rows: tuple[str, ...] = ROWS) -> Path:
    path = Path("suite.yaml")
    rows_text = ", ".join(f'{{id: {row}, input: {row}, ground_truth: "yes"}}' for row in rows)
    path.write_text(SUITE.format(gate=gate, rows=rows_text))
    return path


def ran(gate: str, rows: tuple[str, ...] = ROWS, **options: Any) -> RunResult:
    return run_suite(write_suite(gate, rows), RunOptions(**options), store="kept.db")


@pytest.mark.parametrize(
    ("gate", "verdict", "reason"),
    [
        (
            "{metric_key: says, value: 0.5}",
            "inconclusive",
            "says: mean must be ≥ 0.5; it is 0.6667; 2 errors could change the result",
        ),
        ("{metric_key: says, value: 0.5, errors: fail}", "fail", f"says: mean must be ≥ 0.5; it is 0.4; {FAILED}"),
        ("{metric_key: says, value: 0.4, errors: fail}", "pass", f"says: mean must be ≥ 0.4; it is 0.4; {FAILED}"),
        (
            "{metric_key: says, aggregation: accuracy, value: 40, errors: fail}",
            "pass",
            f"says: pass rate must be ≥ 40%; it is 40%; {FAILED}",
        ),
        (
            "{kind: samples, metric_key: says, min_pass: 1, errors: fail}",
            "fail",
            "says: each sample must pass at least 1 time; 3 of 5 did not: b1 (0 of 1), x1 (0 of 1), x2 (0 of 1); "
            f"{FAILED}",
        ),
        (
            "{kind: weighted_average, weights: {says: 0.6, likes: 0.2}, value: 0.4, errors: fail}",
            "pass",
            "0.6 × says + 0.2 × likes: mean must be ≥ 0.4; it is 0.4; 4 errors count as failed, with a score of 0",
        ),
    ],
)
def test_errors_count_as_failures_where_a_gate_says_so(gate: str, verdict: str, reason: str) -> None:
    result = ran(gate)
    assert (result.summary.verdict, explain_verdict(result.summary)) == (verdict, [f"{verdict} · {reason}"])
    [says, _] = result.summary.graders
    assert (says.scored, says.errors, says.mean) == (3, 2, pytest.approx(2 / 3)), "no error becomes a score"


@pytest.mark.parametrize("limit", ["2", "50%"])
def test_a_limit_on_errors_forgives_none_that_fails(limit: str) -> None:
    result = ran("{metric_key: says, value: 0.5, errors: fail}", max_errors=limit)
    assert explain_verdict(result.summary) == [f"fail · says: mean must be ≥ 0.5; it is 0.4; {FAILED}"]


def test_a_run_of_errors_alone_fails() -> None:
    result = ran("{metric_key: says, value: 0.5, errors: fail}", ("x1", "x2"))
    assert (result.summary.verdict, result.exit_code) == ("fail", 1)
    assert explain_verdict(result.summary)[0] == f"fail · says: mean must be ≥ 0.5; it is 0; {FAILED}"


def test_min_scored_still_demands_scores() -> None:
    result = ran("{metric_key: says, value: 0.1, errors: fail, min_scored: 0.7}")
    assert result.summary.verdict == "inconclusive"


def test_the_sentence_of_a_run_says_it_without_the_interval_of_another_mean() -> None:
    result = ran("{metric_key: says, value: 0.5, errors: fail}")
    assert finding(result.summary, result.grading) == f"fails: says 0.40 < 0.5; {FAILED}"


def test_an_error_stays_an_error_in_the_report() -> None:
    result = ran("{metric_key: says, value: 0.5, errors: fail}")
    out = io.StringIO()
    with Store.open("kept.db", create=False) as store:
        write_junit(GradedRun(store, result.run, result.grading), out)
    assert 'errors="4"' in out.getvalue()
    assert FAILED in out.getvalue()


def test_trials_that_end_early_count_errors_as_failed_trials() -> None:
    suite = write_suite("{metric_key: says, value: 0.9, errors: fail}", ("x1", "x2", "b1"))
    suite.write_text(suite.read_text() + "trials: {max: 60, until: decided}\n")
    result = run_suite(suite, store="kept.db")
    assert result.summary.verdict == "fail"
    assert result.summary.trials is not None
    assert result.summary.trials.spent < 180


@pytest.mark.parametrize(
    ("gate", "complaint"),
    [
        ("{metric_key: says, op: lt, value: 0.5, errors: fail}", "op: lt could reward; write op: gt or gte"),
        ("{metric_key: says, op: eq, value: 0.5, errors: fail}", "op: eq could reward"),
        ("{metric_key: says, aggregation: accuracy, value: 50, pass_op: lt, errors: fail}", "pass_op: lt could count"),
        ("{metric_key: says, aggregation: accuracy, value: 50, on: corrected, errors: fail}", "on: corrected corrects"),
        ("{kind: weighted_average, weights: {says: 1}, op: lte, value: 0.5, errors: fail}", "op: lte could reward"),
        ("{metric_key: says, value: 0.5, errors: ignore}", "errors"),
    ],
)
def test_errors_that_could_help_a_gate_are_refused(gate: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        load_suite(write_suite(gate))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("function: contains}, likes", "function: contains, threshold: 0}, likes"), "with 0 every score passes"),
        (("function: contains}, likes", "function: contains, threshold: 0.0}, likes"), "with 0 every score passes"),
        (
            ("value: 0.5", "aggregation: accuracy, value: 50, pass_threshold: 0"),
            "every score is ≥ 0, so this gate counts",
        ),
        (("value: 0.5", "aggregation: accuracy, value: 50, pass_op: gt"), "no score is > 1"),
        (("gate:", "reward: {kind: metric, metric_key: says, threshold: 0}\ngate:"), "with 0 every score passes"),
    ],
)
def test_a_threshold_that_cannot_fail_is_refused(change: tuple[str, str], complaint: str) -> None:
    suite = write_suite("{metric_key: says, value: 0.5}")
    suite.write_text(suite.read_text().replace(*change))
    with pytest.raises(UsageError, match=complaint):
        load_suite(suite)


@pytest.mark.parametrize(
    ("metric", "complaint"),
    [
        ("{kind: metric, metric: fuzzy_ratio, threshold: 0}", "every score of 'fuzzy_ratio' passes with threshold: 0"),
        (
            "{kind: metric, metric: aspect_critic, config: {definition: polite}, model: fake, threshold: 0}",
            "every score of 'likes' passes with threshold: 0",
        ),
        ("{kind: metric, metric: repetition, threshold: 1}", "every score of 'likes' passes with threshold: 1"),
        ("{kind: metric, metric: repetition, config: {threshold: 1}}", "write a number below 1"),
    ],
)
def test_a_metric_that_cannot_fail_is_refused(metric: str, complaint: str) -> None:
    suite = write_suite("{metric_key: says, value: 0.5}")
    suite.write_text(suite.read_text().replace("likes: {kind: function, function: contains}", f"likes: {metric}"))
    with pytest.raises(UsageError, match=complaint):
        run_suite(suite, store="kept.db")
