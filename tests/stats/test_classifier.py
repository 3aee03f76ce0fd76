from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vivavoce.stats.classifier import cross_validated, fit_logistic
from vivavoce.stats.ranking import auroc, auroc_interval
from vivavoce.stats.resampling import Floats

DRAW = np.random.default_rng


def two_sides(number: int, shift: float, seed: int = 1, columns: int = 5) -> tuple[Floats, NDArray[np.bool_]]:
    rows = DRAW(seed).normal(size=(2 * number, columns))
    rows[:number, 0] += shift
    return rows, np.arange(2 * number) < number


def test_the_weight_is_on_the_column_that_differs_and_missing_values_add_nothing() -> None:
    rows, truth = two_sides(200, 2.0)
    fit = fit_logistic(rows, truth, 1.0)
    assert fit.weights[0] > 5 * np.abs(fit.weights[1:]).max()
    rows[0] = np.nan
    assert fit.contributions(rows)[0].tolist() == [0.0] * 5
    assert fit.scores(rows)[0] == fit.bias


def test_groups_of_unlike_size_weigh_the_same() -> None:
    rows = np.concatenate([DRAW(1).normal(1, 1, (20, 1)), DRAW(2).normal(-1, 1, (2000, 1))])
    fit = fit_logistic(rows, np.arange(2020) < 20, 1.0)
    at_the_middle = fit.scores(np.array([[0.0]]))[0]
    assert abs(at_the_middle) < 0.5


def test_a_column_that_never_varies_and_one_that_is_huge_do_no_harm() -> None:
    rows, truth = two_sides(50, 1.0)
    rows[:, 1] = 7.0
    rows[0, 2] = 1e12
    fit = fit_logistic(rows, truth, 1.0)
    assert fit.weights[1] == 0
    assert np.isfinite(fit.scores(rows)).all()


def test_no_row_is_scored_by_a_fit_that_knows_its_cluster() -> None:
    rows = DRAW(3).normal(size=(60, 200))
    rows = np.repeat(rows, 2, axis=0)
    truth = np.repeat(np.arange(60) < 30, 2)
    together = cross_validated(rows, truth, np.repeat(np.arange(60), 2).tolist(), 0.01)
    apart = cross_validated(rows, truth, list(range(120)), 0.01)
    known, unknown = auroc(apart.scores, truth), auroc(together.scores, truth)
    assert known is not None
    assert unknown is not None
    assert known > 0.75
    assert unknown < 0.6


def test_equal_data_have_equal_scores() -> None:
    rows, truth = two_sides(40, 0.5)
    clusters = list(range(80))
    first, second = (cross_validated(rows, truth, clusters, 5.0) for _ in range(2))
    assert first.scores.tolist() == second.scores.tolist()
    assert first.contributions.tolist() == second.contributions.tolist()


def test_alike_sides_are_rarely_told_apart() -> None:
    wrong = 0
    for seed in range(60):
        rows, truth = two_sides(40, 0.0, seed, 20)
        clusters = list(range(80))
        scored = cross_validated(rows, truth, clusters, 10.0)
        interval = auroc_interval(scored.scores, truth, clusters, inflation=2.0)
        assert interval is not None
        wrong += interval[0] > 0.5
    assert wrong <= 4  # 2.5% of 60 are 1.5; 5 or more come in 2% of all such draws
