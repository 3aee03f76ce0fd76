from __future__ import annotations

import pytest

from vivavoce.features.compare.plots import DifferenceScale, difference, finding, format_signed, lead, scale_of
from vivavoce.report.comparison.comparison import Flip, GraderComparison, Side, TargetComparison

SIDE = Side(scored=90, errors=0, skipped=0)


def grader(
    name: str = "goal",
    mean: float | None = -0.067,
    low: float | None = -0.118,
    high: float | None = -0.019,
    n: int = 90,
) -> GraderComparison:
    return GraderComparison(name=name, a=SIDE, b=SIDE, n=n, difference=mean, low=low, high=high, same_fingerprint=True)


def target(*graders: GraderComparison, matched: int = 90) -> TargetComparison:
    return TargetComparison(
        target_a="v1", target_b="v2", matched=matched, unmatched_a=[], unmatched_b=[], graders=list(graders)
    )


def flips(number: int) -> list[Flip]:
    return [Flip(sample_a=f"{i}", sample_b=f"{i}", score_a=1, score_b=0, why="") for i in range(number)]


@pytest.mark.parametrize(
    ("low", "high", "reading"),
    [(-0.2, -0.01, "worse"), (-0.2, 0.0, "same"), (0.0, 0.2, "same"), (0.01, 0.2, "better"), (None, None, "unknown")],
)
def test_an_interval_that_touches_zero_tells_no_change(low: float | None, high: float | None, reading: str) -> None:
    assert grader(low=low, high=high).reading == reading


def test_only_what_is_surely_worse_is_drawn_as_a_fault() -> None:
    sure, unsure, better = grader(), grader(high=0.0), grader(mean=0.1, low=0.05, high=0.15)
    scale = scale_of([sure, unsure, better])
    rows = [difference(each, scale, "/x", is_shown=False) for each in (sure, unsure, better)]
    assert [each.plot is not None and each.plot.bad for each in rows] == [True, False, False]
    assert [each.word for each in rows] == ["Worse", "No clear change", "Better"]
    assert rows[0].plot is not None
    assert rows[0].plot.label == "Difference −0.067, 95% interval −0.118 to −0.019"


def test_without_a_difference_nothing_is_drawn() -> None:
    none = difference(grader(mean=None, low=None, high=None, n=0), DifferenceScale.around([]), "/x", is_shown=True)
    assert (none.plot, none.word) == (None, "Nothing to compare")


def test_the_axis_holds_zero_and_every_end() -> None:
    scale = DifferenceScale.around([-0.118, 0.016])
    assert scale.low <= -0.118
    assert scale.high >= 0.016
    assert "0" in [word for _, word in scale.ticks]
    assert scale.ticks[0] == (0.0, "−.15")
    assert DifferenceScale.around([]).at(0) == 50


def test_the_sentence_names_what_is_sure_and_how_uneven_the_flips_are() -> None:
    worse = grader().model_copy(update={"worsened": flips(11), "improved": flips(3)})
    sentence = finding(target(worse, grader("tone", 0.004, -0.008, 0.016)), worse)
    assert sentence == (
        "On the 90 samples that both runs scored, B is worse on goal by 0.067 (95% interval 0.019 to 0.118). "
        "On goal 11 went from pass to fail and 3 the other way; "
        "by chance, a split at least this uneven occurs in about 1 of 17 comparisons."
    )


def test_where_nothing_is_sure_the_sentence_says_so() -> None:
    unsure = grader("tone", 0.004, -0.008, 0.016, n=8).model_copy(update={"detectable": 0.0171})
    assert finding(target(unsure), unsure) == (
        "On the 8 samples that both runs scored, tone shows no clear change. "
        "On tone no sample went from pass to fail or back. "
        "A change of tone by 0.017 would be detected in 80% of such comparisons."
    )


def test_of_graded_scores_the_size_of_a_change_that_shows_is_an_upper_limit() -> None:
    graded = grader("tone", 0.004, -0.008, 0.016, n=8).model_copy(update={"detectable": 0.0171, "graded": True})
    assert finding(target(graded), graded).endswith(
        "A change of tone by 0.017 would be detected in at least 80% of such comparisons; smaller changes may be "
        "detected, too."
    )


def test_what_cannot_be_compared_is_told() -> None:
    assert finding(target(matched=0), None).startswith("The two runs share no sample")
    nothing = grader(mean=None, low=None, high=None, n=0)
    assert "No grader has a score on both sides" in finding(target(nothing), nothing)


def test_a_grader_that_changed_gets_no_headline() -> None:
    changed = grader("goal").model_copy(update={"note": "changed", "same_fingerprint": False, "comparable": False})
    assert (changed.reading, difference(changed, scale_of([changed]), "/x", is_shown=True).word) == (
        "incomparable",
        "Not comparable",
    )
    assert finding(target(changed), changed) == (
        "goal changed between the two runs, so differences may come from the grader. "
        "Grade both runs in the same way first."
    )
    same = grader("tone", -0.1, -0.2, -0.05)
    assert lead([changed, same], "goal") is same
    words = finding(target(changed, same), same)
    assert "B is worse on tone" in words
    assert "worse on goal" not in words
    assert "goal changed between the two runs; these are left out here" in words


def test_a_long_list_of_graders_is_cut_short() -> None:
    many = [grader(f"g{i}") for i in range(9)]
    assert "and 6 more" in finding(target(*many), many[0])


def test_the_flips_of_what_fell_most_come_first() -> None:
    first, second, headline = grader("a"), grader("b", -0.2, -0.3, -0.1), grader("c", 0.0, -0.1, 0.1)
    assert lead([first, second, headline], "c") is second
    assert lead([headline, grader("d", 0.0, -0.1, 0.1)], "d") is not headline
    assert lead([], "c") is None


def test_a_sign_is_always_written() -> None:
    assert [format_signed(-0.5, 1), format_signed(0.25), format_signed(None)] == ["−0.5", "+0.250", "–"]
