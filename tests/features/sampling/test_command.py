"""`viva plan`: from no run at all to calibrated labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import Viva
from vivavoce.features.sampling.planning import make_plan as planned_from
from vivavoce.features.sampling.planning import outlook, wrong_share
from vivavoce.records.label import Calibration, LabelledVerdict
from vivavoce.records.score import Usage
from vivavoce.run.summary import Summary

BOT = """\
asked = {}


def reply(message: str) -> str:
    trial = asked[message] = asked.get(message, 0) + 1
    return "no" if (int(message) * 7 + trial) % 4 == 0 else "yes"
"""
SUITE = """\
name: planned
dataset: rows.jsonl
target: {kind: function, function: "bot.py:reply"}
graders: {right: {kind: function, function: exact_match}}
gate: {metric_key: right, aggregation: accuracy, value: 60}
"""


@pytest.fixture(autouse=True)
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text(BOT)
    Path("suite.yaml").write_text(SUITE)
    rows = [json.dumps({"id": f"s{n}", "input": str(n), "ground_truth": "yes"}) for n in range(40)]
    Path("rows.jsonl").write_text("\n".join(rows))


def make_plan(viva: Viva, *args: str) -> dict[str, Any]:
    result = viva("plan", "suite.yaml", "--json", *args)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_without_a_run_the_worst_case_is_said_and_nothing_is_made(viva: Viva) -> None:
    result = viva("plan", "suite.yaml", "--detect", "0.05")
    assert result.returncode == 0
    assert "no earlier run: assuming the largest possible variance" in result.stdout
    assert "the suite has 40 samples × 1 trial: it detects a change of " in result.stdout
    assert "0.05 needs more samples; more trials cannot replace them" in result.stdout
    assert not Path(".vivavoce").exists()


def test_an_earlier_run_says_how_trials_vary(viva: Viva) -> None:
    worst = make_plan(viva, "--detect", "0.1")
    assert viva("run", "suite.yaml", "--trials", "4").returncode == 0
    plan = make_plan(viva, "--detect", "0.1")
    based = plan["based_on"]
    assert (based["grader"], based["of_passes"], based["samples"], based["measured"]) == ("right", True, 40, True)
    # each sample passes three of four trials: p (1 - p) of single trials is 3/16, estimated with n - 1 in place of n
    assert based["within"] == pytest.approx(0.25)
    assert [need["samples"] for need in plan["needs"]] == [need["samples"] for need in worst["needs"]]
    text = viva("plan", "suite.yaml", "--detect", "0.1").stdout
    assert f"as the pass rate of right in run {based['run']} (40 samples) varies from trial to trial" in text


def test_a_run_of_one_trial_cannot_say_how_trials_vary(viva: Viva) -> None:
    viva("run", "suite.yaml")
    plan = make_plan(viva, "--detect", "0.2")
    assert (plan["based_on"]["measured"], plan["based_on"]["between"]) == (False, None)
    assert "has one trial per sample" in viva("plan", "suite.yaml", "--detect", "0.2").stdout


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--detect", "2"], "should be less than or equal to 0.99"),
        (["--detect", "0.1", "--run", "other"], "no store at"),
        (["--detect", "0.1", "--grader", "left"], "the suite has no grader 'left'; it has right"),
    ],
)
def test_what_cannot_be_planned_is_said(viva: Viva, args: list[str], complaint: str) -> None:
    result = viva("plan", "suite.yaml", *args)
    assert result.returncode == 2
    assert complaint in result.stderr


def test_a_run_of_another_suite_is_refused(viva: Viva) -> None:
    viva("run", "suite.yaml")
    Path("other.yaml").write_text(SUITE.replace("planned", "other"))
    result = viva("plan", "other.yaml", "--detect", "0.1", "--run", "latest")
    assert result.returncode == 2
    assert "not of 'other'; name a run of this suite" in result.stderr.replace("\n", " ")


def test_calls_and_cost_are_those_of_the_earlier_run() -> None:
    used = {"judge": Usage(calls=20, cost=0.5), "tester": Usage(calls=10, cost=0.5)}
    before = Summary(attempts=10, failed_attempts=0, graders=[], usage=used)
    plan = planned_from("suite", (30, 1, 2), None, before, detect=0.2, power=0.8, judged=True, wrong=None)
    need, *_ = plan.needs
    assert need.samples is not None
    assert need.conversations is not None
    assert need.conversations == 2 * need.samples  # two targets
    assert need.calls == 3 * need.conversations
    assert need.cost == pytest.approx(0.1 * need.conversations)
    assert plan.labels == 25  # 1.96 squared times a quarter, by 0.2 squared
    assert "as many labels as without a judge" in list(outlook(plan))[-1]


def test_labels_are_fewer_where_people_agree_with_the_judge() -> None:
    def label(n: int, *, good: bool) -> LabelledVerdict:
        return LabelledVerdict(sample_id=f"s{n}", target="bot", trial=0, passed=True, score=1, good=good, drawn=0.5)

    known = Calibration.model_construct(labels=[label(n, good=n > 0) for n in range(28)])
    wrong = wrong_share([known])
    assert wrong == pytest.approx(2 / 30)
    assert wrong_share([]) is None
    plan = planned_from("suite", (30, 1, 1), None, None, detect=0.1, power=0.8, judged=True, wrong=wrong)
    assert plan.labels == 26
    assert "people disagree with 7% of its verdicts" in list(outlook(plan))[-1]
