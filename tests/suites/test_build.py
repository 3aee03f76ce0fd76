"""What a suite builds: any grader and any reward may have a threshold, which decides what passes and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vivavoce import RunResult, UsageError, run_suite
from vivavoce.records.score import Score
from vivavoce.testing import LoopbackServer

Row = dict[str, Any]
OWN = """\
from vivavoce.grading.functions import GradeResult
from vivavoce.metrics import BaseMultiTurnMetric, MetricConfig, MetricResult

def share(sample, submission):
    return 0.8

def sure(sample, submission):
    return GradeResult(score=0.8, passed=True)

class Share(BaseMultiTurnMetric):
    def __init__(self, *, name: str = "share"):
        super().__init__(MetricConfig(name=name))

    def evaluate_conversation(self, evaluation_input):
        return MetricResult(score=0.8)

class Sure(Share):
    def evaluate_conversation(self, evaluation_input):
        return MetricResult(score=0.8, details={"is_successful": True})

class Harm(BaseMultiTurnMetric):
    def __init__(self, *, name: str = "harm"):
        super().__init__(MetricConfig(name=name, direction="lower_is_better"))

    def evaluate_conversation(self, evaluation_input):
        return MetricResult(score=0.2)

class Stars(BaseMultiTurnMetric):
    def __init__(self, *, name: str = "stars"):
        super().__init__(MetricConfig(name=name, minimum=1, maximum=6))

    def evaluate_conversation(self, evaluation_input):
        return MetricResult(score=5.0)

class Tone(BaseMultiTurnMetric):
    def __init__(self, *, name: str = "tone"):
        super().__init__(MetricConfig(name=name, score_type="categorical", categories=("rude", "kind")))

    def evaluate_conversation(self, evaluation_input):
        return MetricResult(score="kind")
"""
TALK: Row = {
    "id": "ann",
    "ground_truth": "Berlin",
    "messages": [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Berlim"}],
}


@pytest.fixture(autouse=True)
def model() -> Iterator[str]:
    Path("own.py").write_text(OWN)
    Path("talks.jsonl").write_text(json.dumps(TALK) + "\n")
    with LoopbackServer(
        lambda body: {"reasoning": "So it is.", "evidence": ["Berlim"], "score": 0.8, "confidence": 1}
    ) as server:
        yield f"{server.base_url}#judge"


def run(grader: Row, **more: Any) -> RunResult:
    """Run a suite of one grader, called `it`; JSON is YAML."""
    suite = {"name": "s", "dataset": "talks.jsonl", "driver": "replay", "graders": {"it": grader}, **more}
    Path("suite.yaml").write_text(json.dumps(suite))
    return run_suite(Path("suite.yaml"))


def scores(result: RunResult) -> dict[str, Score]:
    (outcome,) = result.outcomes()
    return dict(outcome.scores)


def reward_of(result: RunResult) -> Score:
    (outcome,) = result.outcomes()
    assert outcome.reward is not None
    return outcome.reward


FUZZY: Row = {"kind": "tool", "function": "fuzzy_ratio"}
JUDGE: Row = {"kind": "model_judge", "prompt": "Is {submission} right?"}


@pytest.mark.parametrize(
    ("grader", "value", "low", "high"),
    [
        (FUZZY, pytest.approx(5 / 6), 0.8, 0.9),
        ({"kind": "tool", "function": "own.py:share"}, 0.8, 0.7, 0.9),
        ({"kind": "tool", "function": "own.py:sure"}, 0.8, 0.7, 0.9),
        (JUDGE, 0.8, 0.7, 0.9),
        ({"kind": "metric", "metric": "own.py:Share"}, 0.8, 0.7, 0.9),
        ({"kind": "metric", "metric": "own.py:Sure"}, 0.8, 0.7, 0.9),
        ({"kind": "metric", "metric": "own.py:Stars"}, 0.8, 4.5, 5.5),
    ],
    ids=[
        "function",
        "own function",
        "function with its own opinion",
        "judge",
        "metric",
        "metric with its own",
        "range",
    ],
)
def test_a_threshold_decides_what_passes_and_never_the_value(
    grader: Row, value: float, low: float, high: float, model: str
) -> None:
    judge_fields = {"model": model} if grader is JUDGE else {}
    gate = {"metric_key": "it", "aggregation": "accuracy", "value": 100}
    for threshold, passed in ((low, True), (high, False)):
        result = run({**grader, **judge_fields, "threshold": threshold}, gate=gate)
        assert (scores(result)["it"].value, scores(result)["it"].passed) == (value, passed)
        assert result.summary.grader("it").pass_rate == float(passed)
        assert (result.summary.verdict, result.exit_code) == (("pass", 0) if passed else ("fail", 1))


def test_without_a_threshold_only_a_perfect_score_passes(model: str) -> None:
    for grader in (FUZZY, {**JUDGE, "model": model}, {"kind": "metric", "metric": "own.py:Share"}):
        assert scores(run(grader))["it"].passed is False


@pytest.mark.parametrize(("threshold", "passed"), [(0.1, False), (0.2, True), (0.3, True)])
def test_where_lower_is_better_a_metric_passes_up_to_its_threshold(threshold: float, passed: bool) -> None:
    score = scores(run({"kind": "metric", "metric": "own.py:Harm", "threshold": threshold}))["it"]
    assert (score.raw, score.value, score.passed) == (0.2, 0.8, passed)


@pytest.mark.parametrize(("threshold", "value"), [(1, 1.0), (2, 0.0)])
def test_of_a_count_without_an_end_the_threshold_is_all_there_is_to_the_value(threshold: int, value: float) -> None:
    Path("talks.jsonl").write_text(json.dumps({**TALK, "messages": TALK["messages"] * threshold}) + "\n")
    score = scores(run({"kind": "metric", "metric": "turn_count", "threshold": 1}))["it"]
    assert (score.raw, score.value, score.passed) == (threshold, value, value == 1.0)


@pytest.mark.parametrize("reward", [{"kind": "metric", "metric_key": "it"}, {"kind": "weighted", "weights": {"it": 2}}])
@pytest.mark.parametrize(
    ("of_grader", "of_reward", "passed"), [(None, None, False), (0.7, None, True), (0.7, 0.9, False), (0.9, 0.7, True)]
)
def test_a_reward_passes_by_its_own_threshold_or_as_its_one_grader_does(
    reward: Row, of_grader: float | None, of_reward: float | None, passed: bool
) -> None:
    grader = {"kind": "tool", "function": "own.py:share", "threshold": of_grader}
    score = reward_of(run(grader, reward={**reward, "threshold": of_reward}))
    assert (score.value, score.passed) == (0.8, passed)


@pytest.mark.parametrize(("threshold", "passed"), [(None, False), (0.5, True)])
def test_a_reward_of_ones_own_passes_by_its_threshold(threshold: float | None, passed: bool) -> None:
    Path("own.py").write_text(OWN + "\ndef half(ctx):\n    return ctx.grades['it'].score / 2 + 0.1\n")
    reward = {"kind": "custom", "function": "own.py:half", "threshold": threshold}
    score = reward_of(run({"kind": "tool", "function": "own.py:share"}, reward=reward))
    assert (score.value, score.passed) == (0.5, passed)


@pytest.mark.parametrize(
    ("grader", "complaint"),
    [
        ({**FUZZY, "threshold": 1.5}, "graders.it.threshold: should be less than or equal to 1, got 1.5"),
        ({**FUZZY, "config": {"threshold": 0.8}}, "write threshold: beside function:"),
        (
            {"kind": "metric", "metric": "own.py:Stars", "threshold": 0.7},
            "the scores of 'it' go from 1 to 6; got threshold: 0.7",
        ),
        (
            {"kind": "metric", "metric": "own.py:Tone", "threshold": 0.7},
            "'it' returns a label, not a score; set passing_categories in config instead",
        ),
    ],
)
def test_a_threshold_that_cannot_be_is_refused_before_anything_runs(grader: Row, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(grader)
    assert complaint in str(caught.value)


def test_a_threshold_is_part_of_the_fingerprint(model: str) -> None:
    for grader in (FUZZY, {**JUDGE, "model": model}, {"kind": "metric", "metric": "own.py:Share"}):
        prints = [
            run({**grader, "threshold": threshold}).grading.fingerprints["it"] for threshold in (None, None, 0.7, 0.8)
        ]
        assert prints[0] == prints[1]
        assert len(set(prints)) == 3
