from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, failed, skipped
from vivavoce.report.letta_summary import Model

from .cases import TIMEOUT, outcome


def summary(outcomes: Iterable[Outcome], *, with_runs: bool = False) -> dict[str, Any]:
    model = Model("bot", 0)
    for one in outcomes:
        model.add(one)
    return model.summary(with_runs=with_runs)


def test_errors_and_skips_are_counted_and_are_in_no_mean() -> None:
    found = summary(
        [
            outcome("a", {"exact": 1.0, "judge": 0.5}, reward=Score(value=0.75)),
            outcome("b", {"exact": 0.0, "judge": skipped("no judge")}, reward=Score(value=0.25)),
            outcome("c", {"exact": failed(TIMEOUT)}, failure=TIMEOUT, reward=Score(state="error", failure=TIMEOUT)),
        ]
    )
    assert (found["model"], found["n_total"], found["n_attempted"], found["reward"]) == ("bot", 3, 2, 0.5)
    assert found["per_metric"] == {"exact": 0.5, "judge": 0.5}
    assert found["per_metric_states"] == {"exact": {"scored": 2, "error": 1}, "judge": {"scored": 1, "skipped": 1}}
    assert found["errors"] == {
        "total_errors": 1,
        "by_category": {"target": 1},
        "by_exception_type": {"timeout": 1},
    }


def test_usage_is_added_up_and_times_are_told_by_mean_and_percentiles() -> None:
    found = summary([outcome("a", said=["x", "y"]), outcome("b")])
    assert (found["usage"]["prompt_tokens"], found["usage"]["completion_tokens"]) == (9, 6)
    assert "cost" not in found["usage"]
    assert found["timing"] == {"mean_total": 1.5, "mean_target": 1.5, "p50_total": 1.5, "p95_total": 1.5}


def test_the_deviations_are_those_of_the_means_of_the_trials() -> None:
    outcomes = [
        outcome(name, {"exact": score}, trial=trial, reward=Score(value=score))
        for trial, scores in enumerate([(0.0, 1.0), (1.0, 1.0)])
        for name, score in zip("ab", scores, strict=True)
    ]
    found = summary(outcomes, with_runs=True)
    assert found["reward_std"] == found["per_metric_std"]["exact"] == pytest.approx(0.5**0.5 / 2)
    assert [(run["run"], run["reward"], run["n_total"]) for run in found["runs"]] == [(1, 0.5, 2), (2, 1.0, 2)]


def test_one_trial_has_no_deviation_and_no_conversation_no_means() -> None:
    assert "reward_std" not in summary([outcome()])
    empty = summary([])
    assert (empty["n_total"], empty["reward"], empty["timing"]["mean_total"]) == (0, None, 0.0)


def test_a_grader_without_any_score_has_no_mean_in_no_trial() -> None:
    outcomes = [outcome("a", {"exact": 1.0, "judge": skipped("no judge")}, trial=trial) for trial in (0, 1)]
    found = summary(outcomes, with_runs=True)
    assert found["per_metric"] == {"exact": 1.0}
    assert found["per_metric_states"]["judge"] == {"skipped": 2}
    assert [run["per_metric"] for run in found["runs"]] == [{"exact": 1.0}, {"exact": 1.0}]
    assert found["per_metric_std"] == {"exact": 0.0}
