from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.stats.corrected import Corrected, NotIdentifiable, Table, prediction_powered, rogan_gladen, table_of
from vivavoce.stats.intervals import mean_interval

BITS = st.integers(0, 1)


def singles(n: int, prefix: str = "s") -> list[str]:
    return [f"{prefix}{number}" for number in range(n)]


def draws(seed: int, n: int, rate: float, sensitivity: float, specificity: float) -> tuple[list[int], list[int]]:
    """Return labels, and verdicts of a judge that is right about good and bad ones that often."""
    random = np.random.default_rng(seed)
    good = random.random(n) < rate
    passed = np.where(good, random.random(n) < sensitivity, random.random(n) >= specificity)
    return good.astype(int).tolist(), passed.astype(int).tolist()


def of_run(seed: int, labelled: int, judged: int, rate: float, se: float, sp: float) -> Corrected:
    truth, passed = draws(seed, judged, rate, se, sp)
    names = singles(judged)
    return prediction_powered(
        truth[:labelled], passed[:labelled], names[:labelled], passed[labelled:], names[labelled:]
    )


def test_the_published_estimate_of_double_sampling_is_met() -> None:
    """With verdicts of yes and no, the tuned estimate is p P(good | passed) + (1 - p) P(good | failed).

    Source: A. Tenenbein, A Double Sampling Scheme for Estimating from Binomial Data with Misclassifications, JASA 65
    (1970), formula 2.1. Many labels make what is added to each pair vanish.
    """
    truth = [1] * 5400 + [0] * 600 + [1] * 800 + [0] * 3200
    passed = [1] * 6000 + [0] * 4000
    estimate = prediction_powered(truth, passed, singles(10_000), [1] * 12_000 + [0] * 28_000, singles(40_000, "o"))
    rate = (6_000 + 12_000) / 50_000
    assert estimate.raw == pytest.approx(rate)
    assert estimate.value == pytest.approx(rate * 0.9 + (1 - rate) * 0.2, abs=1e-4)
    # Tenenbein's variance: p q (1 - K) / n + p q K / N with K the squared correlation of label and verdict
    p = 0.452
    reliability = np.corrcoef(truth, passed)[0, 1] ** 2
    error = np.sqrt(p * (1 - p) * ((1 - reliability) / 10_000 + reliability / 50_000))
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * error, rel=0.08)


def test_rogan_and_gladen_meet_the_formula() -> None:
    estimate = rogan_gladen([1] * 400 + [0] * 600, singles(1000), Table(tp=900, fn=100, tn=800, fp=200))
    assert estimate.value == pytest.approx((0.4 + 0.8 - 1) / (0.9 + 0.8 - 1))
    assert estimate.low < 0.2857 < estimate.high
    # the delta method's standard error, which Fieller's interval approaches for many labels
    se, sp, youden, r = 0.9, 0.8, 0.7, 0.2 / 0.7
    error = np.sqrt(0.24 / 1000 + r**2 * se * (1 - se) / 1000 + (1 - r) ** 2 * sp * (1 - sp) / 1000) / youden
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * error, rel=0.02)


@pytest.mark.parametrize(
    ("rate", "se", "sp", "labels", "judged"),
    [(0.7, 0.9, 0.8, 50, 500), (0.95, 0.9, 0.5, 60, 500), (0.98, 0.97, 0.6, 100, 1000), (0.3, 0.6, 0.6, 40, 400)],
)
def test_prediction_powered_intervals_hold_the_rate(
    rate: float, se: float, sp: float, labels: int, judged: int
) -> None:
    hits = [
        interval.low <= rate <= interval.high
        for interval in (of_run(seed, labels, judged, rate, se, sp) for seed in range(300))
    ]
    assert sum(hits) / len(hits) >= 0.92


def test_intervals_by_rogan_and_gladen_hold_the_rate_where_good_ones_are_rarer_than_among_the_labels() -> None:
    random, hits = np.random.default_rng(5), 0
    for seed in range(300):
        _, passed = draws(seed, 400, 0.3, 0.9, 0.8)
        tp, tn = random.binomial(50, 0.9), random.binomial(50, 0.8)
        estimate = rogan_gladen(passed, singles(400), Table(tp=tp, fn=50 - tp, tn=tn, fp=50 - tn))
        hits += estimate.low <= 0.3 <= estimate.high
    assert hits / 300 >= 0.92


def test_a_good_judge_makes_the_interval_narrower_than_the_labels_alone() -> None:
    good, coin = of_run(1, 100, 5000, 0.6, 0.97, 0.97), of_run(1, 100, 5000, 0.6, 0.5, 0.5)
    assert good.high - good.low < 0.6 * (coin.high - coin.low)


@given(st.lists(st.tuples(BITS, BITS), min_size=2, max_size=30), st.lists(BITS, max_size=30))
def test_it_is_as_precise_as_the_labels_alone_and_the_same_where_all_have_one(
    pairs: list[tuple[int, int]], others: list[int]
) -> None:
    truth, judged = [label for label, _ in pairs], [label for _, label in pairs]
    labels = mean_interval([float(label) for label in truth])
    assert labels is not None
    assert labels.low is not None
    assert labels.high is not None
    whole = prediction_powered(truth, judged, singles(len(pairs)), [], [])
    assert (whole.value, whole.low, whole.high) == pytest.approx((labels.mean, labels.low, labels.high))
    part = prediction_powered(truth, judged, singles(len(pairs)), others, singles(len(others), "o"))
    assert part.high - part.low <= labels.high - labels.low + 1e-9


@given(st.lists(st.tuples(BITS, BITS), min_size=2, max_size=30), st.lists(BITS, max_size=30))
def test_a_corrected_rate_lies_in_its_interval_and_that_between_0_and_1(
    pairs: list[tuple[int, int]], others: list[int]
) -> None:
    truth, judged = [label for label, _ in pairs], [label for _, label in pairs]
    estimate = prediction_powered(truth, judged, singles(len(pairs)), others, singles(len(others), "o"))
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.low < estimate.high


@given(st.lists(BITS, min_size=1, max_size=40), st.tuples(*[st.integers(0, 40)] * 4))
def test_a_rate_by_rogan_and_gladen_lies_in_its_interval_or_is_refused(
    passed: list[int], counts: tuple[int, int, int, int]
) -> None:
    tp, fn, tn, fp = counts
    try:
        estimate = rogan_gladen(passed, singles(len(passed)), Table(tp=tp, fn=fn, tn=tn, fp=fp))
    except NotIdentifiable:
        return
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_trials_of_one_sample_are_no_further_labels() -> None:
    truth, judged = draws(3, 200, 0.6, 0.8, 0.8)
    once = prediction_powered(truth, judged, singles(200), [1, 0] * 300, singles(600, "o"))
    names = [name for name in singles(200) for _ in range(5)]
    five_times = prediction_powered(
        [label for label in truth for _ in range(5)],
        [verdict for verdict in judged for _ in range(5)],
        names,
        [1, 0] * 300 * 5,
        [f"o{number % 600}" for number in range(3000)],
    )
    assert five_times.high - five_times.low == pytest.approx(once.high - once.low, rel=0.05)
    table = table_of(truth * 5, judged * 5, singles(200) * 5)
    single = table_of(truth, judged, singles(200))
    assert table.sensitivity == pytest.approx(single.sensitivity)
    assert table.tp + table.fn == pytest.approx(single.tp + single.fn, rel=0.02)


def test_weights_undo_that_failures_were_drawn_more_often() -> None:
    truth, judged = draws(7, 4000, 0.8, 0.9, 0.7)
    random = np.random.default_rng(2)
    chance = np.where(np.array(judged) == 1, 0.05, 0.5)
    is_sampled = random.random(4000) < chance
    names = np.array(singles(4000))
    labels, passed = np.array(truth), np.array(judged)
    weighted = prediction_powered(
        labels[is_sampled].tolist(),
        passed[is_sampled].tolist(),
        names[is_sampled].tolist(),
        passed[~is_sampled].tolist(),
        names[~is_sampled].tolist(),
        weights=(1 / chance[is_sampled]).tolist(),
    )
    assert weighted.low <= 0.8 <= weighted.high
    assert abs(weighted.value - 0.8) < 0.05


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (Table(tp=10, fn=2, tn=0, fp=0), "no labelled conversation is bad"),
        (Table(tp=0, fn=0, tn=3, fp=1), "no labelled conversation is good"),
        (Table(tp=10, fn=0, tn=0, fp=10), "as often as good ones"),
        (Table(tp=0, fn=10, tn=10, fp=0), "as often as good ones"),
        (Table(tp=6, fn=4, tn=5, fp=5), "too close to chance"),
    ],
)
def test_a_judge_that_cannot_be_corrected_is_said_to_be_so(table: Table, why: str) -> None:
    with pytest.raises(NotIdentifiable, match=why):
        rogan_gladen([1, 0, 1, 1] * 10, singles(40), table)


def test_labels_of_one_sample_correct_nothing() -> None:
    with pytest.raises(NotIdentifiable, match="two labelled samples are needed, got 1"):
        prediction_powered([1, 0], [1, 1], ["s", "s"], [1, 0], ["o1", "o2"])


def test_what_is_no_verdict_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or 1"):
        prediction_powered([0.5, 1], [1, 1], ["a", "b"], [], [])
    with pytest.raises(ValueError, match="same length"):
        rogan_gladen([1, 0], ["a"], Table(tp=9, fn=1, tn=9, fp=1))
    with pytest.raises(ValueError, match="weight"):
        prediction_powered([1, 0], [1, 0], ["a", "b"], [], [], weights=[1.0, 0.0])
