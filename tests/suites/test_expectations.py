"""Assertions in the rows of a suite: added grader, verdict without a gate, mistakes at their place."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.report.worst_samples import worst
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.check import check_suite
from vivavoce.suites.command_line import judging_suite
from vivavoce.suites.experiment import open_regrading, run_suite, suite_run
from vivavoce.suites.load import load_suite

BOT = 'def reply(message: str) -> str:\n    return "Which order?" if "money" in message else "You get EUR 20."\n'
HEAD = "name: refunds\ntarget: {kind: function, function: 'bot.py:reply'}\n"
RIGHT: dict[str, Any] = {"id": "right", "input": "money", "expect": {"contains": "order"}}
WRONG: dict[str, Any] = {"id": "wrong", "input": ["money", "1042"], "expect": [None, {"numeric": 24.9}]}
PLAIN: dict[str, Any] = {"id": "plain", "input": "money"}


def ran(*rows: dict[str, Any], more: str = "", options: RunOptions | None = None) -> RunResult:
    Path("bot.py").write_text(BOT)
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("suite.yaml").write_text(f"{HEAD}dataset: rows.jsonl\n{more}")
    return run_suite("suite.yaml", options)


def test_rows_alone_make_a_suite_and_a_miss_fails_it() -> None:
    assert ran(RIGHT, PLAIN).exit_code == 0
    result = ran(RIGHT, WRONG, PLAIN)
    assert (result.exit_code, result.summary.verdict) == (1, "fail")
    [grader] = result.summary.graders
    assert (grader.name, grader.scored, grader.skipped, grader.pass_rate) == ("expect", 2, 1, 0.5)


def test_a_broken_rule_fails_a_suite_without_a_gate_with_and_without_assertions() -> None:
    rule = "graders:\n  brief: {kind: rule, never: {assistant_says: EUR}}\n"
    wrong_row = {**WRONG, "expect": [None, {"contains": "EUR"}]}
    assert ran(RIGHT, more=rule).exit_code == 0
    result = ran(RIGHT, wrong_row, more=rule)
    assert (result.exit_code, result.summary.verdict) == (1, "fail")
    assert ran({**wrong_row, "expect": None}, more=rule).exit_code == 1


def test_the_worst_sample_shows_the_grader_that_the_run_fails_because_of() -> None:
    more = "graders:\n  loud: {kind: function, function: regex_match}\n"
    half = {**WRONG, "ground_truth": "[A-Z]{9}", "expect": [{"contains": "order"}, {"numeric": 24.9}]}
    result = ran(half, more=more)
    with Store.open(result.place, create=False) as store:
        assert worst(store, result.grading).samples[0].why.startswith("expect: turn 2: the number is 20")


def test_a_grader_of_another_kind_cannot_take_the_name_of_the_assertions() -> None:
    more = "graders:\n  expect: {kind: function, function: regex_match}\n"
    with pytest.raises(UsageError, match=r"suite\.yaml:5:.*graders\.expect: .*give this one another name"):
        ran(RIGHT, more=more)
    assert ran({**PLAIN, "ground_truth": "order"}, more=more).exit_code == 0


def test_other_graders_stay_and_can_not_fail_without_a_gate() -> None:
    more = "graders:\n  loud: {kind: function, function: regex_match, extractor: last_assistant}\n"
    result = ran(RIGHT, {**PLAIN, "ground_truth": "[A-Z]{9}"}, more=more)
    assert [grader.name for grader in result.summary.graders] == ["loud", "expect"]
    assert result.exit_code == 0


def test_an_error_of_another_grader_makes_a_suite_without_a_gate_inconclusive() -> None:
    graders = "graders:\n  rated: {kind: function, function: recorded, config: {path: metadata.rating}}\n"
    unusable, usable = {**PLAIN, "metadata": {"rating": "?"}}, {**PLAIN, "id": "fine", "metadata": {"rating": 1}}
    rows = (RIGHT, unusable, usable)
    assert ran(*rows, more=graders).exit_code == 3
    assert ran(*rows, more=graders, options=RunOptions(max_errors="1")).exit_code == 0
    assert ran(*rows, WRONG, more=graders).exit_code == 1


def test_chosen_samples_without_assertions_do_not_fail() -> None:
    more = "graders:\n  said: {kind: function, function: contains}\n"
    plain = {**PLAIN, "ground_truth": "order"}
    assert ran(WRONG, plain, more=more, options=RunOptions(samples=["plain"])).exit_code == 0


def test_a_gate_that_passes_does_not_excuse_a_missed_assertion() -> None:
    gate = "gate: {kind: simple, metric_key: expect, aggregation: accuracy, value: 50}\n"
    assert ran(RIGHT, WRONG, more=gate).exit_code == 1
    warns = "graders:\n  expect: {kind: function, function: expect, severity: warn}\n"
    result = ran(RIGHT, WRONG, more=warns + gate)
    assert (result.exit_code, [warning.code for warning in result.summary.warnings]) == (0, ["requirement"])
    assert ran(RIGHT, WRONG, more=warns).exit_code == 0


def test_an_assertion_that_warns_does_not_fail_the_run_and_is_named() -> None:
    polite = {"contains": "please", "severity": "warn"}
    result = ran(RIGHT, {**PLAIN, "expect": {"all": [polite, {"contains": "order"}]}})
    assert (result.summary.verdict, [warning.code for warning in result.summary.warnings]) == ("pass", ["warned"])
    score = next(outcome for outcome in result.outcomes() if outcome.attempt.key.sample_id == "plain").scores["expect"]
    assert (score.passed, [finding.state for finding in score.findings]) == (True, ["warn", "pass"])
    assert ran({**PLAIN, "expect": [[polite, {"contains": "voucher"}]]}).exit_code == 1


@pytest.mark.parametrize(
    "inner", [{"any": [{"contains": "a", "severity": "warn"}]}, {"contains": "a", "severity": "low"}]
)
def test_a_severity_that_decides_nothing_is_refused(inner: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="severity"):
        ran({**PLAIN, "expect": inner})


def test_a_severity_is_for_requirements_only() -> None:
    more = "graders:\n  loud: {kind: function, function: regex_match, severity: warn}\n"
    with pytest.raises(UsageError, match=r"suite\.yaml:\d+:\d+ graders\.loud\.severity: severity is for rules"):
        ran(RIGHT, more=more)


def test_every_grader_that_skips_rows_says_how_many_and_why() -> None:
    more = "graders:\n  said: {kind: function, function: contains}\n"
    summary = ran({**PLAIN, "id": "a", "ground_truth": "order"}, {**PLAIN, "id": "b"}, more=more).summary
    assert [(skip.name, skip.skipped, skip.conversations, skip.reasons) for skip in summary.skips] == [
        ("said", 1, 2, {"the sample has no ground_truth": 1})
    ]


def test_options_of_the_grader_are_those_of_any_other() -> None:
    graders = "graders:\n  expect: {kind: function, function: expect, threshold: 0.1, display_name: Assertions}\n"
    result = ran(RIGHT, WRONG, more=graders)
    assert (result.exit_code, result.summary.graders[0].label) == (1, "Assertions")


def test_a_csv_cell_holds_json() -> None:
    Path("bot.py").write_text(BOT)
    Path("rows.csv").write_text('id,input,expect\na,money,"{""contains"": ""order""}"\nb,money,\n')
    Path("suite.yaml").write_text(f"{HEAD}dataset: rows.csv\n")
    assert run_suite("suite.yaml").summary.graders[0].scored == 1


def test_a_stored_run_is_graded_again() -> None:
    run = ran(RIGHT, WRONG).run
    with Store.open(settings().store) as store:
        again = asyncio.run(open_regrading(run.id, store=store).execute())
    assert again.exit_code == 1


def problems(suite: str) -> str:
    Path("bot.py").write_text(BOT)
    Path("suite.yaml").write_text(HEAD + suite)
    with pytest.raises(UsageError) as raised:
        check_suite(load_suite(Path("suite.yaml")))
    return str(raised.value)


def test_mistakes_have_the_line_of_their_row() -> None:
    rows = [RIGHT, {**RIGHT, "id": "b", "expect": {"contians": "a"}}, {**WRONG, "expect": [None]}]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = problems("dataset: rows.jsonl\n").splitlines()
    assert first == "rows.jsonl:2 expect: no assertion 'contians'; did you mean 'contains'?"
    assert second.startswith("rows.jsonl:3 input has 2 turns and expect has 1; give one per turn (null skips a turn)")


def test_mistakes_in_rows_of_the_suite_have_their_own_line() -> None:
    rows = "dataset:\n  rows:\n    - input: money\n      expect:\n        - contains: a\n          wieght: 2\n"
    assert problems(rows) == (
        "suite.yaml:7:11 dataset.rows.0.expect.0: contains has no option 'wieght'; did you mean 'weight'?"
    )


def test_rows_that_are_judged_by_a_command_are_graded_too() -> None:
    talk = [{"role": "user", "content": "money"}, {"role": "assistant", "content": "Which order?"}]
    Path("talks.jsonl").write_text(json.dumps({"messages": talk, "expect": [{"contains": "amount"}]}))
    suite = judging_suite(Path("talks.jsonl"), ["ascii_printable_only"])
    with Store.open(settings().store) as store:
        result = asyncio.run(suite_run(suite, RunOptions(), store=store).execute())
    assert [grader.name for grader in result.summary.graders] == ["ascii_printable_only", "expect"]
    assert result.exit_code == 1


def test_a_suite_must_grade_something() -> None:
    rows = "dataset:\n  rows:\n    - {id: a, input: money}\n"
    assert "the key 'graders' is missing, and no row has an 'expect'" in problems(rows)


@pytest.mark.parametrize(
    ("function", "truth"),
    [
        ("numeric", "x"),
        ("numeric", "5 or 6"),
        ("numeric", "5 million"),
        ("numeric", True),
        ("regex_match", "("),
        ("regex_match", ".*"),
        ("regex_match", "a*"),
        ("contains", " "),
        ("exact_match", "\u200b"),
        ("json_schema", "text"),
    ],
)
def test_a_ground_truth_that_a_grader_cannot_use_is_refused_before_anything_runs(function: str, truth: Any) -> None:
    for kind in (f"{{kind: function, function: {function}}}", f"{{kind: metric, metric: {function}}}"):
        with pytest.raises(UsageError, match=r"ground_truth: .* the grader 'said' needs it|needs a schema"):
            ran({**PLAIN, "ground_truth": truth}, more=f"graders:\n  said: {kind}\n")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"expect": {"metric": "contains"}},
            "expect: metric contains cannot be checked: the sample has no ground_truth",
        ),
        ({"expect": [{"metric": "numeric"}], "ground_truth": "five"}, "expect.0: metric numeric cannot be checked"),
        ({"expect": {"metric": "regex_match"}, "ground_truth": "a^"}, "can match no text"),
        ({"expect": {"metric": "trajectory_match"}}, "the sample has no reference_tool_calls"),
        ({"expect": {"not": {"metric": "contains"}}}, "the sample has no ground_truth"),
    ],
)
def test_a_metric_that_lacks_its_truth_is_found_before_the_target_is_asked(row: dict[str, Any], message: str) -> None:
    Path("bot.py").write_text("def reply(message: str) -> str:\n    raise AssertionError\n")
    Path("rows.jsonl").write_text(json.dumps({"input": "money", **row}) + "\n")
    Path("suite.yaml").write_text(f"{HEAD}dataset: rows.jsonl\n")
    with pytest.raises(UsageError, match=message):
        run_suite("suite.yaml")
    with pytest.raises(UsageError, match=message):
        check_suite(load_suite(Path("suite.yaml")))


def test_a_metric_with_its_truth_is_checked() -> None:
    assert ran({**RIGHT, "expect": {"metric": "contains"}, "ground_truth": "order"}).exit_code == 0
    per_turn = {"input": ["money", "1042"], "ground_truth": ["order", None], "expect": [{"metric": "contains"}, None]}
    assert ran(per_turn).exit_code == 0


def test_a_grader_does_not_agree_with_itself() -> None:
    graders = "graders:\n  c: {kind: function, function: contains}\n"
    with pytest.raises(UsageError, match=r"agreement\.0: compares 'c' with itself, which always agrees"):
        ran({**RIGHT, "ground_truth": "order"}, more=graders + "agreement: [{predictor: c, truth: c}]\n")


@pytest.mark.parametrize(
    "grader",
    [
        "{kind: rule, at_most: true, of: {call: a}}",
        "{kind: rule, never: {call: a, where: {}}}",
        "{kind: metric, metric: rule, config: {at_most: true, of: {call: a}}}",
        "{kind: function, function: numeric, config: {tolerance: true}}",
        "{kind: metric, metric: repetition, scope: window, config: {window: true}}",
        "{kind: metric, metric: turn_count, threshold: true}",
    ],
)
def test_true_and_what_is_empty_are_refused_in_graders(grader: str) -> None:
    with pytest.raises(UsageError, match=r"must be a number, got true|where: is empty"):
        ran({**RIGHT, "ground_truth": "5"}, more=f"graders:\n  c: {grader}\n")


@pytest.mark.parametrize("option", ["tolerance: .inf", "tolerance: .nan", "tolerance: 'Infinity'", "relative: -1"])
def test_a_distance_that_any_number_is_within_is_refused(option: str) -> None:
    grader = f"{{kind: function, function: numeric, config: {{{option}}}}}"
    with pytest.raises(UsageError, match=f"option '{option.partition(':')[0]}' of 'numeric'"):
        ran({**RIGHT, "ground_truth": "5"}, more=f"graders:\n  c: {grader}\n")


@pytest.mark.parametrize(
    "gate", ["value: true", "value: 0.5, min_scored: true", "value: 1, max_findings: {rule: true}"]
)
def test_true_is_refused_in_gates(gate: str) -> None:
    graders = "graders:\n  c: {kind: function, function: contains}\n"
    with pytest.raises(UsageError, match="must be a number, got true"):
        ran({**RIGHT, "ground_truth": "order"}, more=f"{graders}gate: {{metric_key: c, {gate}}}\n")


@pytest.mark.parametrize("rules", [{"must": ["ask for the order"]}, {"must_not": ["tell a price"]}])
def test_rules_of_rows_that_nothing_would_check_are_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="1 row has 'must' or 'must_not', and no grader reads them"):
        ran({**RIGHT, **rules}, PLAIN)
    Path("own.py").write_text("def judged(sample, answer): return float('EUR' not in answer)\n")
    own = "graders:\n  own: {kind: function, function: 'own.py:judged'}\n"
    assert ran({**RIGHT, **rules}, more=own).exit_code == 0
