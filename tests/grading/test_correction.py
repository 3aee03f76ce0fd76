"""Rates without the errors of a judge: which labels correct which run, and gates about them."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.grading.correction import Correction, best_calibration, best_calibrations, kappa_of
from vivavoce.grading.gates import SimpleGate, Threshold
from vivavoce.grading.scores import Scores
from vivavoce.records.label import Calibration, CalibrationNeed, LabelledVerdict
from vivavoce.report.verdict import reason_text
from vivavoce.stats.corrected import Table, prediction_powered, rogan_gladen

N = 100


def labels(
    tp: int, fn: int, tn: int, fp: int, *, drawn: float | None = 1.0, target: str = "bot"
) -> list[LabelledVerdict]:
    """Return labels with these counts, of the samples s0, s1, …"""
    kinds = [(True, True)] * tp + [(True, False)] * fn + [(False, False)] * tn + [(False, True)] * fp
    return [
        LabelledVerdict(
            sample_id=f"s{n}", target=target, trial=0, good=good, passed=passed, score=float(passed), drawn=drawn
        )
        for n, (good, passed) in enumerate(kinds)
    ]


def calibration(*counts: int, run: str = "run-1", at: float = 1.0, **more: Any) -> Calibration:
    known = {"id": f"cal-{run}-{at}", "run_id": run, "grading_id": f"{run}-g1", "grader": "goal", "fingerprint": "f1"}
    said = {"source": "people", "author": "Ida", "created_at": at, "labels": labels(*counts, **more)}
    return Calibration.model_validate({**known, **said})


def judged(passed: int) -> tuple[list[tuple[str, int]], list[bool]]:
    """Return the verdicts of a run: those with a label as the label says, others so that `passed` of all pass."""
    verdicts = [True] * 40 + [False] * 4 + [False] * 12 + [True] * 4
    rest = passed - sum(verdicts)
    verdicts += [True] * rest + [False] * (N - len(verdicts) - rest)
    return [(f"s{n}", 0) for n in range(N)], verdicts


COUNTS = (40, 4, 12, 4)


def test_labels_of_the_run_itself_are_prediction_powered() -> None:
    keys, passed = judged(70)
    found = Correction(calibration(*COUNTS), "run-1", "bot").rate(keys, passed)
    mine = labels(*COUNTS)
    expected = prediction_powered(
        [float(one.good) for one in mine],
        [float(one.passed) for one in mine],
        [one.sample_id for one in mine],
        [float(one) for one in passed[60:]],
        [key for key, _ in keys[60:]],
    )
    assert (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)
    assert (found.raw, found.method, found.labels, found.labels_of) == (0.7, "prediction_powered", 60, "run-1")


def test_labels_of_another_run_or_target_say_how_often_the_judge_is_right() -> None:
    keys, passed = judged(70)
    expected = rogan_gladen([float(one) for one in passed], [key for key, _ in keys], Table(40, 4, 12, 4))
    for one in (
        Correction(calibration(*COUNTS), "run-2", "bot"),
        Correction(calibration(*COUNTS, target="other"), "run-1", "bot"),
    ):
        found = one.rate(keys, passed)
        assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))
        assert (found.method, found.labels) == ("rogan_gladen", 60)


def test_weights_of_labels_are_used() -> None:
    keys, passed = judged(70)
    even = Correction(calibration(*COUNTS), "run-1", "bot").rate(keys, passed)
    mine = labels(*COUNTS)
    tilted = [one.model_copy(update={"drawn": 3.0 if not one.good else 0.5}) for one in mine]
    found = Correction(calibration(*COUNTS).model_copy(update={"labels": tilted}), "run-1", "bot").rate(keys, passed)
    assert found.value is not None
    assert even.value is not None
    assert found.value > even.value, "bad ones were drawn more often than they are"


@pytest.mark.parametrize(
    ("counts", "run", "drawn", "why"),
    [
        (COUNTS, "run-1", None, "none of its 60 labels was drawn at random"),
        ((40, 0, 0, 0), "run-2", 1.0, "both kinds are needed"),
        ((20, 20, 10, 10), "run-2", 1.0, "as often as good ones"),
        ((0, 0, 0, 0), "run-1", 1.0, "no conversation has a label"),
    ],
)
def test_what_cannot_be_corrected_says_why(counts: tuple[int, ...], run: str, drawn: float | None, why: str) -> None:
    found = Correction(calibration(*counts, drawn=drawn), run, "bot").rate(*judged(70))
    assert found.value is found.low is found.method is None
    if sum(counts) and drawn:
        other = Correction(calibration(*counts, drawn=drawn), "run-3", "bot").rate(*judged(70))
        assert why in (other.why or "")
    else:
        assert why in (found.why or "")
    assert found.raw == 0.7


def test_its_own_newest_labels_correct_a_run_and_elsewhere_the_most() -> None:
    small, large, mine = (
        calibration(*COUNTS, run="a", at=3.0),
        calibration(80, 8, 24, 8, run="b"),
        calibration(3, 1, 1, 1),
    )
    doubted = calibration(*COUNTS, run="run-1", at=9.0, drawn=None)
    assert best_calibration("run-1", [doubted, small, large, mine]) == mine
    assert best_calibration("run-9", [doubted, small, large, mine]) == large
    assert best_calibration("run-9", []) is None
    assert best_calibrations("run-9", {"goal": "f1", "tone": "f2"}, [large]) == {"goal": large}


def scores(passed: int, correction: Correction | None, errors: int = 0) -> Scores:
    keys, verdicts = judged(passed)
    missing = [f"e{n}" for n in range(errors)]
    clusters, trials = [key for key, _ in keys], [trial for _, trial in keys]
    values = [float(verdict) for verdict in verdicts]
    return Scores(values, verdicts, clusters, missing, trials=trials, correction=correction)


def gate(value: float, on: Any = "corrected", need: CalibrationNeed | None = None) -> SimpleGate:
    return SimpleGate("goal", Threshold("accuracy", "gte", value, on=on), 0.0, need)


def test_a_gate_compares_the_corrected_rate_and_its_lower_end() -> None:
    mine = Correction(calibration(*COUNTS), "run-1", "bot")
    rate = mine.rate(*judged(70))
    assert rate.value is not None
    assert rate.low is not None
    for on, found in (("corrected", rate.value), ("corrected_lower", rate.low)):
        for value, verdict in ((100 * found - 1, "pass"), (100 * found + 1, "fail")):
            result = gate(value, on).decide({"goal": scores(70, mine)})
            assert (result.verdict, result.reasons[0].found) == (verdict, pytest.approx(100 * found))
    said = reason_text(gate(99, "corrected_lower").decide({"goal": scores(70, mine)}).reasons[0])
    assert said.startswith("goal: lower bound of the corrected pass rate must be ≥ 99%; it is ")


def test_errors_are_counted_as_either() -> None:
    mine = Correction(calibration(*COUNTS), "run-2", "bot")
    low = mine.rate(*judged(70)).value
    assert low is not None
    near = gate(100 * low + 1)
    assert near.decide({"goal": scores(70, mine)}).verdict == "fail"
    assert near.decide({"goal": scores(70, mine, errors=30)}).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("correction", "need", "said"),
    [
        (None, None, "its judge is not calibrated; calibrate it with: viva calibrate RUN --grader goal"),
        (calibration(*COUNTS), CalibrationNeed(labels=61), "on 61 labels drawn at random, and is on 60"),
        (
            calibration(*COUNTS),
            CalibrationNeed(labels=60, kappa=0.9),
            "κ 0.9 with 95% confidence, and does by 0.66",
        ),
        (calibration(40, 0, 0, 0), CalibrationNeed(labels=10), "only one kind of label"),
        (calibration(35, 5, 0, 0), CalibrationNeed(labels=10), "only one kind of label"),
        (calibration(20, 20, 10, 10), None, "cannot be corrected: the judge passes bad conversations as often"),
    ],
)
def test_a_judge_that_may_not_decide_leaves_the_gate_undecided(
    correction: Calibration | None, need: CalibrationNeed | None, said: str
) -> None:
    mine = None if correction is None else Correction(correction, "run-2", "bot")
    result = gate(1, need=need).decide({"goal": scores(70, mine)})
    assert (result.verdict, result.reasons[0].code) == ("inconclusive", "calibration")
    assert said in reason_text(result.reasons[0])


def test_a_gate_by_the_mean_may_need_a_calibration_too() -> None:
    need, mine = CalibrationNeed(labels=50, kappa=0.3), Correction(calibration(*COUNTS), "run-2", "bot")
    assert gate(50, "mean", need).decide({"goal": scores(70, mine)}).verdict == "pass"
    assert gate(50, "mean", need).decide({"goal": scores(70, None)}).verdict == "inconclusive"


def test_kappa_is_of_the_drawn_labels() -> None:
    assert kappa_of(calibration(*COUNTS)) == pytest.approx((0.6591, 0.3821), abs=1e-4)
    assert kappa_of(calibration(*COUNTS, drawn=None)) is None
