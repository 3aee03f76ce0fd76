"""Whether a run is worse than the one before it: every way to be, and every way not to know."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report.cases import BROKEN_JUDGE, FINGERPRINTS, grade, keep, outcome
from vivavoce.errors import UsageError
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, failed, skipped
from vivavoce.report.comparison.comparison import Comparison, GraderComparison, Loss, Side, TargetComparison
from vivavoce.report.comparison.pairing import compare
from vivavoce.report.comparison.regressions import Tolerance, add_ruling, reason_lines
from vivavoce.report.comparison.sides import Baseline, read_baseline, write_baseline
from vivavoce.stats.paired import difference_of
from vivavoce.stats.resampling import sign_flip_p_value
from vivavoce.store.store import Store

ANY_LOSS = Tolerance()
BROKEN = failed(BROKEN_JUDGE)


def build_outcomes(*scores: float | Score, trial: int = 0, start: int = 0, **more: Any) -> list[Outcome]:
    return [outcome(f"s{start + i}", {"exact": score}, trial=trial, **more) for i, score in enumerate(scores)]


async def rule_on(
    store: Store, a: list[Outcome], b: list[Outcome], tolerance: Tolerance = ANY_LOSS, **run_fields: Any
) -> tuple[str, str]:
    first, other = await keep(store, a, "run-a"), await keep(store, b, "run-b", **run_fields)
    comparison = add_ruling(compare(store, first.grading, other.grading), tolerance)
    assert comparison.ruling is not None
    return comparison.ruling.verdict, "\n".join(reason_lines(comparison.ruling))


@pytest.mark.parametrize(
    ("a", "b", "tolerance", "verdict", "text"),
    [
        ([1.0] * 8, [1.0] * 8, None, "pass", "exact: +0.000"),
        ([1.0] * 8, [0.0] * 7 + [1.0], None, "fail", "fail · exact: -0.875"),
        ([0.0] * 8, [1.0] * 8, None, "pass", "exact: +1.000"),
        ([1.0] * 8, [0.0] + [1.0] * 7, None, "pass", "exact: -0.125"),  # a loss that may be chance
        ([1.0] * 8, [0.0] + [1.0] * 7, 0.1, "inconclusive", "with 8 samples this may be chance"),
        ([1.0] * 8, [0.0] + [1.0] * 7, 0.2, "pass", "exact: -0.125"),  # no loss that matters
        ([1.0] * 14, [0.7] * 14, None, "fail", "exact: -0.300"),
        ([0.9] * 20, [0.88] * 20, None, "inconclusive", "20 samples cannot rule out a rare large gain"),
        ([0.9] * 20, [0.88] * 5 + [0.9] * 15, None, "pass", "no loss shown; a loss up to 0.173 is not excluded"),
        ([0.88] * 20, [0.9] * 20, None, "pass", "exact: +0.020"),
        ([0.9] * 20, [0.6] * 20, None, "fail", "exact: -0.300"),
        ([0.9, 0.8] * 20, [0.6, 0.52] * 20, None, "fail", "exact: -0.290"),
        ([0.9, 0.8] * 20, [0.6, 0.52] * 20, 0.3, "pass", "exact: -0.290"),  # certain, and smaller than what matters
        ([1.0] * 4, [1.0] * 4, None, "inconclusive", "4 samples cannot show a loss: it takes at least 5"),
        ([1.0] * 4, [0.0] * 4, None, "inconclusive", "4 samples cannot show a loss: it takes at least 5"),
        ([1.0] * 5, [1.0] * 5, None, "pass", "exact: +0.000"),
        ([1.0] * 5, [0.0] * 5, None, "fail", "exact: -1.000"),
        ([1.0] * 40, [0.0] * 4 + [1.0] * 36, None, "pass", "p 0.062"),
        ([1.0] * 40, [0.0] * 5 + [1.0] * 35, None, "fail", "p 0.031"),
    ],
)
async def test_a_loss_is_worse_if_it_is_certain_and_matters(
    store: Store, a: list[float], b: list[float], tolerance: float | None, verdict: str, text: str
) -> None:
    actual, reasons = await rule_on(store, build_outcomes(*a), build_outcomes(*b), Tolerance(tolerance))
    assert (actual, text in reasons) == (verdict, True), reasons


async def test_a_break_is_listed_and_fails_where_none_may_be(store: Store) -> None:
    a = build_outcomes(*[1.0] * 8) + build_outcomes(*[1.0] * 8, trial=1)
    b = build_outcomes(0.0, 0.0, *[1.0] * 6) + build_outcomes(0.0, 1.0, *[1.0] * 6, trial=1)
    verdict, reasons = await rule_on(store, a, b)
    assert verdict == "pass"
    assert "note · exact: 1 sample passed all trials before and none now: s0" in reasons
    first, other = store.grading("run-a"), store.grading("run-b")
    strict = add_ruling(compare(store, first, other), Tolerance(no_breaks=True))
    assert strict.ruling is not None
    assert (strict.ruling.verdict, strict.ruling.sentence) == ("fail", "worse than before")


@pytest.mark.parametrize(
    ("b", "verdict"),
    [
        ([BROKEN, *[1.0] * 39], "pass"),  # one more failure would be chance
        ([*[BROKEN] * 10, *[1.0] * 30], "inconclusive"),
        ([*[0.0] * 30, BROKEN, *[1.0] * 9], "fail"),
    ],
)
async def test_errors_count_where_they_could_change_the_verdict(
    store: Store, b: list[float | Score], verdict: str
) -> None:
    actual, reasons = await rule_on(store, build_outcomes(*[1.0] * 40), build_outcomes(*b))
    assert (actual, "errors could change the result" in reasons) == (verdict, verdict == "inconclusive"), reasons


async def test_of_ten_targets_a_loss_that_is_certain_alone_is_undecided(store: Store) -> None:
    """7 of 20 that fail now have a p value of 1/128 alone, and of 10/128 as the lowest of ten."""

    def scores(bot: list[float], others: list[float]) -> list[Outcome]:
        return [
            *build_outcomes(*bot, target="bot"),
            *[outcome for n in range(9) for outcome in build_outcomes(*others, target=f"t{n}")],
        ]

    before, after = [0.0] * 10 + [1.0] * 10, [1.0] * 10 + [0.0] * 10  # 20 flips, as many up as down
    verdict, reasons = await rule_on(store, scores([1.0] * 20, before), scores([0.0] * 7 + [1.0] * 13, after))
    assert verdict == "inconclusive"
    assert "10 tests: p values are adjusted (Holm)" in reasons
    assert "worse by itself, not significant among 10 tests (adjusted p 0.078)" in reasons
    assert reasons.count("significant among") == 1


async def test_tests_that_cannot_show_a_loss_do_not_weaken_the_others(store: Store) -> None:
    """In nine of ten targets nothing flips: the p value of the tenth stays 1/128."""

    def scores(lost: int) -> list[Outcome]:
        same = [outcome for n in range(9) for outcome in build_outcomes(*[1.0] * 20, target=f"t{n}")]
        return [*build_outcomes(*[0.0] * lost, *[1.0] * (20 - lost), target="bot"), *same]

    verdict, reasons = await rule_on(store, scores(0), scores(7))
    assert verdict == "fail"
    assert "too few flips to show a loss, so not counted: 9" in reasons
    assert "adjusted p 0.008 among 10 tests" in reasons


@pytest.mark.parametrize(
    ("flips", "verdict", "words"),
    [
        (8, "fail", "passes 8 lost, 0 gained, p 0.004"),
        (5, "inconclusive", "worse by itself, not significant among 2 tests"),
    ],
)
async def test_passes_of_a_graded_grader_with_a_threshold_are_a_test_of_their_own(
    store: Store, flips: int, verdict: str, words: str
) -> None:
    """The mean hardly moves, since other samples rise: only the passes show the loss."""
    a = build_outcomes(*[grade(0.71, passed=True)] * flips, *[grade(0.5, passed=False)] * 30)
    b = build_outcomes(*[grade(0.69, passed=False)] * flips, *[grade(0.52, passed=False)] * 30)
    actual, reasons = await rule_on(store, a, b)
    assert (actual, words in reasons) == (verdict, True), reasons
    assert "2 tests: p values are adjusted" in reasons


async def test_a_certain_loss_of_passes_below_the_smallest_effect_passes(store: Store) -> None:
    a, b = build_outcomes(*[grade(0.71, passed=True)] * 30), build_outcomes(*[grade(0.69, passed=False)] * 30)
    actual, reasons = await rule_on(store, a, b, Tolerance(0.05))
    assert (actual, "less than 0.05, the smallest loss that matters" in reasons) == ("pass", True), reasons
    first, other = store.grading("run-a"), store.grading("run-b")
    ruling = add_ruling(compare(store, first, other), ANY_LOSS).ruling
    assert ruling is not None
    assert ruling.verdict == "fail"


async def test_a_graded_grader_without_a_threshold_has_no_test_of_its_passes(store: Store) -> None:
    actual, reasons = await rule_on(store, build_outcomes(*[1.0] * 20), build_outcomes(*[0.99] * 20))
    assert (actual, "passes" in reasons.splitlines()[0]) == ("inconclusive", False), reasons


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0]), min_size=2, max_size=40))
def test_the_p_value_the_bound_and_the_verdict_agree(differences: list[float]) -> None:
    """The verdict fails exactly where the one-sided bound is below 0, and never where the mean is not lower."""
    change = difference_of(differences)
    assert change is not None
    assert change.worse_p_value is not None
    assert change.worse_bound is not None
    loss = Loss(
        p_value=change.worse_p_value, bound=change.worse_bound, sign_flip_p_value=sign_flip_p_value(differences)
    )
    grader = GraderComparison(
        name="exact", a=Side(scored=change.n, errors=0, skipped=0), b=Side(scored=change.n, errors=0, skipped=0),
        n=change.n, difference=change.mean, low=change.low, high=change.high, p_value=change.p_value, loss=loss,
        same_fingerprint=True,
    )  # fmt: skip
    target = TargetComparison(
        target_a="bot", target_b="bot", matched=change.n, unmatched_a=[], unmatched_b=[], graders=[grader]
    )
    comparison = Comparison(
        suite_a="support", run_a="a", grading_a="a1", suite_b="support", run_b="b", grading_b="b1", targets=[target],
        targets_only_a=[], targets_only_b=[], graders_only_a=[], graders_only_b=[],
    )  # fmt: skip
    ruling = add_ruling(comparison, ANY_LOSS).ruling
    assert ruling is not None
    assert (ruling.verdict == "fail") == (loss.bound < 0) == (loss.p_value <= 0.05)
    if ruling.verdict == "fail":
        assert change.mean < 0
    if change.n >= 5 and change.mean >= 0:
        assert ruling.verdict == "pass"
    if ruling.verdict == "pass" and change.low is not None and change.low < 0:
        assert f"a loss up to {-change.low:.3f} is not excluded" in ruling.sentence


async def test_a_skipped_score_is_no_error(store: Store) -> None:
    actual, reasons = await rule_on(store, build_outcomes(*[1.0] * 8), build_outcomes(skipped("no truth"), *[1.0] * 7))
    assert (actual, reasons.splitlines()[1:]) == (
        "pass",
        ["note · exact: 1 sample scored before and skipped now, not compared: s0"],
    )


async def test_an_error_may_hide_a_break(store: Store) -> None:
    a, b = build_outcomes(*[1.0] * 39, 0.0), build_outcomes(BROKEN, *[1.0] * 38, BROKEN)
    verdict, reasons = await rule_on(store, a, b, Tolerance(no_breaks=True))
    assert verdict == "inconclusive"
    assert "inconclusive · exact: 1 sample passed all trials before and had only errors now: s0" in reasons


async def test_new_targets_and_graders_are_told(store: Store) -> None:
    a = build_outcomes(*[1.0] * 8)
    both = [outcome(f"s{i}", {"exact": 1.0, "judge": 0.0}, target=name) for name in ("bot", "new") for i in range(8)]
    verdict, reasons = await rule_on(store, a, both)
    assert verdict == "pass"
    assert reasons.splitlines()[:2] == [
        "note · 1 new target, not compared: new",
        "note · 1 new grader, not compared: judge",
    ]


async def test_what_is_not_the_same_on_both_sides_is_undecided_and_named(store: Store) -> None:
    a, b = build_outcomes(*[1.0] * 8), build_outcomes(*[1.0] * 8)
    changed = {**FINGERPRINTS, "exact": "f9"}
    assert await rule_on(store, a, b, fingerprints=changed) == (
        "inconclusive",
        "inconclusive · exact: changed between the two gradings; part of the difference may come from the grader",
    )


async def test_a_break_by_another_judge_is_undecided(store: Store) -> None:
    changed = {**FINGERPRINTS, "exact": "f9"}
    actual, reasons = await rule_on(
        store,
        build_outcomes(*[1.0] * 8),
        build_outcomes(0.0, *[1.0] * 7),
        Tolerance(no_breaks=True),
        fingerprints=changed,
    )
    assert (actual, "note · exact: 1 sample passed all trials before" in reasons) == ("inconclusive", True)


async def test_lost_samples_are_undecided_and_new_ones_are_told(store: Store) -> None:
    verdict, reasons = await rule_on(store, build_outcomes(*[1.0] * 9), build_outcomes(*[1.0] * 8, start=1))
    assert verdict == "inconclusive"
    assert "the dataset differs: 1 sample only in the earlier run: s0" in reasons
    comparison = add_ruling(compare(store, store.grading("run-b"), store.grading("run-a")), Tolerance())
    assert comparison.ruling is not None
    assert (comparison.ruling.verdict, reason_lines(comparison.ruling)[0]) == (
        "pass",
        "note · 1 new sample, not compared: s0",
    )


async def test_a_lost_grader_is_undecided_and_a_certain_loss_fails_all_the_same(store: Store) -> None:
    a = [outcome(f"s{i}", {"exact": 1.0, "judge": 1.0}) for i in range(8)]
    verdict, reasons = await rule_on(store, a, build_outcomes(*[0.0] * 8))
    assert verdict == "fail"
    assert "inconclusive · 1 grader only in the earlier run: judge" in reasons


async def test_a_baseline_compares_as_its_run_does_and_has_no_texts(store: Store, tmp_path: Path) -> None:
    a = build_outcomes(1.0, 0.5, BROKEN, skipped("none"), *[1.0] * 8) + build_outcomes(1.0, 1.0, 1.0, trial=1)
    first, other = await keep(store, a, "run-a"), await keep(store, build_outcomes(*[0.0] * 12), "run-b")
    path = tmp_path / "baseline.json"
    with path.open("w") as file:
        write_baseline(first, file)
    text = path.read_text()
    assert len(text.splitlines()) == len(a) + 7
    assert not any(words in text for words in ("Hello", "Hi", "why", "no verdict"))
    with_run, with_file = (
        add_ruling(compare(store, side, other.grading, reasons=False), Tolerance())
        for side in (first.grading, read_baseline(path).side)
    )
    assert with_file == with_run.model_copy(update={"changes": []})


async def test_a_run_that_is_not_complete_makes_no_baseline(store: Store) -> None:
    graded = await keep(store, build_outcomes(1.0), ended=False)
    with pytest.raises(UsageError, match="run-1 is not complete, so it cannot be a baseline"):
        write_baseline(graded, io.StringIO())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file"),
        ("", "it is not JSON"),
        ("[]", "not a baseline: the file: Input should be a valid dictionary"),
        ("{}", "not a baseline: origin: Field required"),
        ('{"baseline": 2}', "not a baseline: baseline: Input should be 1"),
        ('"\\ud800', "it is not JSON"),
    ],
)
def test_a_file_that_is_no_baseline_is_told_with_the_next_step(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "baseline.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_baseline(path)
    assert message in str(caught.value)
    assert "viva export RUN --format baseline --output FILE" in str(caught.value)


async def test_an_edited_baseline_is_refused(store: Store, tmp_path: Path) -> None:
    graded = await keep(store, build_outcomes(1.0))
    path = tmp_path / "baseline.json"
    with path.open("w") as file:
        write_baseline(graded, file)
    text = path.read_text()
    path.write_text(text.replace('"graders":["exact"]', '"graders":[]'))
    with pytest.raises(UsageError, match="it has scores of 'exact', which is not among its graders"):
        read_baseline(path)
    for value in ('"good"', "[NaN,true]", "[-3,true]", "[1e999,true]"):
        path.write_text(text.replace("[1.0,true]", value))
        with pytest.raises(UsageError, match=r"attempts.0.scores.exact"):
            read_baseline(path)


def test_a_comparison_is_undecided_only_when_asked() -> None:
    assert Comparison.model_fields["ruling"].default is None
    assert Baseline.model_fields["baseline"].default == 1
