from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import GraderFault
from vivavoce.metrics.config import Direction, MetricConfig

SCORES = st.integers(0, 10**6).map(lambda millionths: millionths / 10**6)


@given(SCORES, SCORES)
def test_a_number_passes_on_the_right_side_of_the_threshold(score: float, threshold: float) -> None:
    assert MetricConfig(threshold=threshold).passes(score) == (score >= threshold)
    assert MetricConfig(threshold=threshold, direction="lower_is_better").passes(score) == (score <= threshold)


@given(SCORES, st.integers(1, 50))
def test_a_mean_of_equal_scores_passes_as_each_of_them(score: float, count: int) -> None:
    mean = sum([score] * count) / count
    for direction in ("higher_is_better", "lower_is_better"):
        assert MetricConfig(threshold=score, direction=direction).passes(mean) is True


@pytest.mark.parametrize("score", [0.0, 1.0, "good"])
def test_a_configuration_without_a_threshold_does_not_say_what_passes(score: float | str) -> None:
    assert MetricConfig().passes(score) is None


LABELS = ("bad", "fair", "good")


@pytest.mark.parametrize(
    ("config", "raw", "value", "passed"),
    [
        (MetricConfig(), 1.0, 1.0, True),
        (MetricConfig(), 0.99, 0.99, False),
        (MetricConfig(direction="lower_is_better"), 0.0, 1.0, True),
        (MetricConfig(minimum=1, maximum=5), 5.0, 1.0, True),
        (MetricConfig(minimum=1, maximum=5), 3.0, 0.5, False),
        (MetricConfig(score_type="binary"), True, 1.0, True),
        (MetricConfig(score_type="categorical", categories=LABELS), "good", 1.0, True),
        (MetricConfig(score_type="categorical", categories=LABELS), "fair", 0.5, False),
        (MetricConfig(maximum=None), 7.0, None, None),
    ],
)
def test_without_a_threshold_the_best_score_passes_where_there_is_one(
    config: MetricConfig, raw: float | str, value: float | None, passed: bool | None
) -> None:
    assert config.scored(raw) == (value, passed)


@pytest.mark.parametrize(("raw", "value", "passed"), [(7.0, 1.0, True), (3.0, 0.0, False)])
def test_the_value_of_a_score_without_a_highest_one_is_whether_it_passes(
    raw: float, value: float, passed: bool
) -> None:
    assert MetricConfig(maximum=None, threshold=5).scored(raw) == (value, passed)


def test_what_a_metric_says_itself_of_value_and_passing_stands() -> None:
    config = MetricConfig(threshold=0.5)
    assert config.scored(0.4, True) == (0.4, True)
    assert config.scored(0.4, None, 0.9) == (0.9, False)
    assert MetricConfig(maximum=None).scored("a word", True) == (1.0, True)


@pytest.mark.parametrize(
    ("config", "raw"),
    [
        (MetricConfig(name="tone"), 1.1),
        (MetricConfig(name="tone"), -0.1),
        (MetricConfig(name="tone", score_type="categorical", categories=LABELS), "splendid"),
    ],
)
def test_a_score_of_another_kind_than_stated_is_refused(config: MetricConfig, raw: float | str) -> None:
    with pytest.raises(GraderFault, match=f"tone returned {raw!r}, which does not match its score_type"):
        config.scored(raw)


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
