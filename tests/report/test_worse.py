"""Whether a run is worse than the one before it: every way to be, and every way not to know."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score, failed, skipped
from vivavoce.report.baseline import Baseline, read_baseline, write_baseline
from vivavoce.report.compare import compare
from vivavoce.report.comparison import Comparison
from vivavoce.report.worse import Tolerance, reason_lines, ruled, sentence
from vivavoce.store.store import Store

from .cases import BROKEN_JUDGE, FINGERPRINTS, keep, outcome

ANY_LOSS = Tolerance()
BROKEN = failed(BROKEN_JUDGE)


def held(*scores: float | Score, trial: int = 0, start: int = 0, **more: Any) -> list[Outcome]:
    return [outcome(f"s{start + i}", {"exact": score}, trial=trial, **more) for i, score in enumerate(scores)]


async def decided(
    store: Store, a: list[Outcome], b: list[Outcome], tolerance: Tolerance = ANY_LOSS, **kept: Any
) -> tuple[str, str]:
    one, other = await keep(store, a, "run-a"), await keep(store, b, "run-b", **kept)
    found = ruled(compare(store, one.grading, other.grading), tolerance)
    assert found.ruling is not None
    return found.ruling.verdict, "\n".join(reason_lines(found.ruling))


@pytest.mark.parametrize(
    ("a", "b", "tolerance", "verdict", "said"),
    [
        ([1.0] * 8, [1.0] * 8, None, "pass", "exact: +0.000"),
        ([1.0] * 8, [0.0] * 7 + [1.0], None, "fail", "fail · exact: -0.875"),
        ([0.0] * 8, [1.0] * 8, None, "pass", "exact: +1.000"),
        ([1.0] * 8, [0.0] + [1.0] * 7, None, "pass", "exact: -0.125"),  # a loss that may be chance
        ([1.0] * 8, [0.0] + [1.0] * 7, 0.1, "inconclusive", "8 samples cannot tell that from chance"),
        ([1.0] * 8, [0.0] + [1.0] * 7, 0.2, "pass", "exact: -0.125"),  # no loss that matters
        ([0.9] * 20, [0.88] * 20, None, "pass", "exact: -0.020"),  # one unseen sample may have gained more
        ([0.9] * 20, [0.6] * 20, None, "fail", "exact: -0.300"),
        ([0.9, 0.8] * 20, [0.6, 0.52] * 20, None, "fail", "exact: -0.290"),
        ([0.9, 0.8] * 20, [0.6, 0.52] * 20, 0.3, "pass", "exact: -0.290"),  # certain, and smaller than what matters
        ([1.0] * 5, [1.0] * 5, None, "inconclusive", "5 samples on both sides; a loss shows from 6 on"),
        ([1.0] * 5, [0.0] * 5, None, "inconclusive", "5 samples on both sides; a loss shows from 6 on"),
        ([1.0] * 6, [0.0] * 6, None, "fail", "exact: -1.000"),
    ],
)
async def test_a_loss_is_worse_if_it_is_certain_and_matters(
    store: Store, a: list[float], b: list[float], tolerance: float | None, verdict: str, said: str
) -> None:
    found, reasons = await decided(store, held(*a), held(*b), Tolerance(tolerance))
    assert (found, said in reasons) == (verdict, True), reasons


async def test_a_break_is_listed_and_fails_where_none_may_be(store: Store) -> None:
    a = held(*[1.0] * 8) + held(*[1.0] * 8, trial=1)
    b = held(0.0, 0.0, *[1.0] * 6) + held(0.0, 1.0, *[1.0] * 6, trial=1)
    verdict, reasons = await decided(store, a, b)
    assert verdict == "pass"
    assert "note · exact: 1 sample passed in every trial before and in none now: s0" in reasons
    one, other = store.grading("run-a"), store.grading("run-b")
    strict = ruled(compare(store, one, other), Tolerance(no_breaks=True))
    assert strict.ruling is not None
    assert (strict.ruling.verdict, sentence(strict.ruling)) == ("fail", "worse than before")


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
    found, reasons = await decided(store, held(*[1.0] * 40), held(*b))
    assert (found, "errors could change the result" in reasons) == (verdict, verdict == "inconclusive"), reasons


async def test_of_ten_targets_a_loss_that_is_certain_alone_is_no_failure(store: Store) -> None:
    """7 of 20 that fail now have a p value of 1/64 alone, and of 10 / 64 as the lowest of ten."""

    def scores(lost: int) -> list[Outcome]:
        same = [outcome for n in range(9) for outcome in held(*[1.0] * 20, target=f"t{n}")]
        return [*held(*[0.0] * lost, *[1.0] * (20 - lost), target="bot"), *same]

    verdict, reasons = await decided(store, scores(0), scores(7))
    assert verdict == "pass"
    assert "p values are adjusted (Holm)" in reasons
    assert "not certain among 10 comparisons (adjusted p 0.16)" in reasons
    assert reasons.count("certain among") == 1


async def test_a_skipped_score_is_no_error(store: Store) -> None:
    found, reasons = await decided(store, held(*[1.0] * 8), held(skipped("no truth"), *[1.0] * 7))
    assert (found, reasons.splitlines()[1:]) == (
        "pass",
        ["note · exact: 1 sample scored before and skipped now, not compared: s0"],
    )


async def test_an_error_may_hide_a_break(store: Store) -> None:
    a, b = held(*[1.0] * 39, 0.0), held(BROKEN, *[1.0] * 38, BROKEN)
    verdict, reasons = await decided(store, a, b, Tolerance(no_breaks=True))
    assert verdict == "inconclusive"
    assert "inconclusive · exact: 1 sample passed in every trial before and had only errors now: s0" in reasons


async def test_new_targets_and_graders_are_told(store: Store) -> None:
    a = held(*[1.0] * 8)
    both = [outcome(f"s{i}", {"exact": 1.0, "judge": 0.0}, target=one) for one in ("bot", "new") for i in range(8)]
    verdict, reasons = await decided(store, a, both)
    assert verdict == "pass"
    assert reasons.splitlines()[:2] == [
        "note · 1 new target, not compared: new",
        "note · 1 new grader, not compared: judge",
    ]


async def test_what_is_not_the_same_on_both_sides_is_undecided_and_named(store: Store) -> None:
    a, b = held(*[1.0] * 8), held(*[1.0] * 8)
    changed = {**FINGERPRINTS, "exact": "f9"}
    assert await decided(store, a, b, fingerprints=changed) == (
        "inconclusive",
        "inconclusive · exact: changed between the two gradings; part of the difference may come from the grader",
    )


async def test_a_break_by_another_judge_is_undecided(store: Store) -> None:
    changed = {**FINGERPRINTS, "exact": "f9"}
    found, reasons = await decided(
        store, held(*[1.0] * 8), held(0.0, *[1.0] * 7), Tolerance(no_breaks=True), fingerprints=changed
    )
    assert (found, "note · exact: 1 sample passed in every trial before" in reasons) == ("inconclusive", True)


async def test_lost_samples_are_undecided_and_new_ones_are_told(store: Store) -> None:
    verdict, reasons = await decided(store, held(*[1.0] * 9), held(*[1.0] * 8, start=1))
    assert verdict == "inconclusive"
    assert "the dataset differs: 1 sample of the earlier run only: s0" in reasons
    found = ruled(compare(store, store.grading("run-b"), store.grading("run-a")), Tolerance())
    assert found.ruling is not None
    assert (found.ruling.verdict, reason_lines(found.ruling)[0]) == ("pass", "note · 1 new sample, not compared: s0")


async def test_a_lost_grader_is_undecided_and_a_certain_loss_fails_all_the_same(store: Store) -> None:
    a = [outcome(f"s{i}", {"exact": 1.0, "judge": 1.0}) for i in range(8)]
    verdict, reasons = await decided(store, a, held(*[0.0] * 8))
    assert verdict == "fail"
    assert "inconclusive · 1 grader of the earlier run only: judge" in reasons


async def test_a_baseline_compares_as_its_run_does_and_has_no_texts(store: Store, tmp_path: Path) -> None:
    a = held(1.0, 0.5, BROKEN, skipped("none"), *[1.0] * 8) + held(1.0, 1.0, 1.0, trial=1)
    one, other = await keep(store, a, "run-a"), await keep(store, held(*[0.0] * 12), "run-b")
    path = tmp_path / "baseline.json"
    with path.open("w") as file:
        write_baseline(one, file)
    text = path.read_text()
    assert len(text.splitlines()) == len(a) + 7
    assert not any(words in text for words in ("Hello", "Hi", "why", "no verdict"))
    with_run, with_file = (
        ruled(compare(store, side, other.grading, reasons=False), Tolerance())
        for side in (one.grading, read_baseline(path).side)
    )
    assert with_file == with_run.model_copy(update={"changes": []})


async def test_a_run_that_is_not_complete_makes_no_baseline(store: Store) -> None:
    graded = await keep(store, held(1.0), ended=False)
    with pytest.raises(UsageError, match="run-1 is not complete, and so no baseline"):
        write_baseline(graded, io.StringIO())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file"),
        ("", "it is not JSON"),
        ("[]", "no baseline: the whole: Input should be a valid dictionary"),
        ("{}", "no baseline: origin: Field required"),
        ('{"baseline": 2}', "no baseline: baseline: Input should be 1"),
        ('"\\ud800', "it is not JSON"),
    ],
)
def test_a_file_that_is_no_baseline_is_told_with_the_next_step(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "baseline.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_baseline(path)
    assert said in str(caught.value)
    assert "viva export RUN --format baseline --output FILE" in str(caught.value)


async def test_an_edited_baseline_is_refused(store: Store, tmp_path: Path) -> None:
    graded = await keep(store, held(1.0))
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
