"""200 real conversations of an airline agent: the recorded reward, and what its tool calls say of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from recordings import needs_recordings
from vivavoce import run_suite

ROOT = Path(__file__).parents[2]


@needs_recordings
def test_the_calls_that_change_something_predict_the_recorded_reward() -> None:
    result = run_suite(ROOT / "bench" / "tau_bench" / "suite.yaml")
    assert result.exit_code == 0
    reward = result.summary.grader("recorded_reward")
    assert {k: round(value, 3) for k, value in reward.pass_hat.items()} == {1: 0.42, 2: 0.273, 3: 0.22, 4: 0.2}
    by_reward, by_end_state = result.summary.agreement
    assert (by_reward.n, by_reward.left_out) == (200, 0)
    assert (by_reward.tp, by_reward.fp, by_reward.fn, by_reward.tn) == (83, 4, 1, 112)
    assert by_reward.precision == pytest.approx(83 / 87)
    assert by_reward.recall == pytest.approx(83 / 84)
    assert (by_end_state.precision, by_end_state.recall) == (1.0, pytest.approx(87 / 88))
