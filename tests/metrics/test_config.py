from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.metrics.config import Direction, MetricConfig

SCORES = st.floats(0, 1)


@given(SCORES, SCORES)
def test_a_number_passes_on_the_right_side_of_the_threshold(score: float, threshold: float) -> None:
    assert MetricConfig(threshold=threshold).passes(score) == (score >= threshold)
    assert MetricConfig(threshold=threshold, direction="lower_is_better").passes(score) == (score <= threshold)


@pytest.mark.parametrize("score", [0.0, 1.0, "good"])
def test_where_nothing_says_what_passes_nothing_does_or_fails(score: float | str) -> None:
    assert MetricConfig().passes(score) is None


@pytest.mark.parametrize(("direction", "passed"), [("higher_is_better", True), ("lower_is_better", False)])
def test_a_yes_passes_unless_lower_is_better(direction: Direction, passed: bool) -> None:
    config = MetricConfig(score_type="binary", direction=direction)
    assert (config.passes(True), config.passes(False)) == (passed, not passed)


def test_a_category_passes_when_it_is_among_those_that_do() -> None:
    config = MetricConfig(categories=("bad", "fair", "good"), passing_categories=("fair", "good"))
    assert [config.passes(name) for name in ("bad", "fair", "good", "splendid")] == [False, True, True, False]
    assert [config.normalised(name) for name in ("bad", "fair", "good", "splendid")] == [0.0, 0.5, 1.0, None]


@given(st.floats(-10, 10), st.floats(0.1, 10), st.floats(0, 1))
def test_a_normalised_number_runs_from_worst_to_best(low: float, width: float, share: float) -> None:
    score = low + share * width
    up = MetricConfig(minimum=low, maximum=low + width)
    down = MetricConfig(minimum=low, maximum=low + width, direction="lower_is_better")
    assert up.normalised(score) == pytest.approx(share, abs=1e-6)
    assert down.normalised(score) == pytest.approx(1 - share, abs=1e-6)


def test_a_number_without_an_end_has_no_normalised_value() -> None:
    assert MetricConfig(maximum=None).normalised(12.0) is None
    assert MetricConfig(direction="lower_is_better").normalised(True) == 0.0
