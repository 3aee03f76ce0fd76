from __future__ import annotations

from math import fsum, nan
from typing import cast

import pytest

from report.cases import BROKEN_JUDGE, TIMEOUT
from vivavoce.errors import UsageError
from vivavoce.features.labels.agreement import Figure, figures, items
from vivavoce.records.score import FindingState, Score, Usage, failed, skipped
from vivavoce.report.label_agreement import Rated, collect_rated
from vivavoce.stats.ranking import spearman
from vivavoce.stats.raters import Ratings

from .cases import labelled_outcome, rate_outcomes, sure

NAMES = ("accuracy", "κ", "AUROC", "Brier score")


def verdicts(*counts: tuple[float, object, int], confidence: float = 0.8) -> Rated:
    """Return scores of a value and a label, so often each."""
    flat = [(value, label) for value, label, number in counts for _ in range(number)]
    return rate_outcomes(
        *(
            labelled_outcome(str(at), sure(value, confidence), label, "x" * (at + 1))
            for at, (value, label) in enumerate(flat)
        )
    )


def by_name(rated_cases: Rated, good_from: float | None = None) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures(rated_cases, good_from)}


def test_the_figures_of_a_textbook_table() -> None:
    by_measure = by_name(verdicts((1.0, True, 20), (1.0, False, 5), (0.0, True, 10), (0.0, False, 15)))
    assert tuple(by_measure) == NAMES
    assert [figure.n for figure in by_measure.values()] == [50] * 4
    assert (by_measure["accuracy"].value, by_measure["κ"].value) == (0.7, pytest.approx(0.4))
    assert by_measure["AUROC"].value == pytest.approx((20 / 30 + 15 / 20) / 2)
    assert by_measure["Brier score"].value == pytest.approx(0.7 * 0.04 + 0.3 * 0.64)
    for figure in by_measure.values():
        assert figure.low is not None
        assert figure.value is not None
        assert figure.high is not None
        assert figure.low < figure.value < figure.high
    assert by_measure["accuracy"].rater is by_measure["κ"].rater is None, "there is one rater"
    assert by_measure["AUROC"].length is not None


def test_trials_of_one_sample_are_no_new_evidence() -> None:
    outcomes = [
        labelled_outcome(f"s{sample}", sure(float(sample % 2), 0.8), label=sample % 4 < 3, trial=trial)
        for sample in range(12)
        for trial in range(5)
    ]
    alone = [labelled_outcome(f"s{number}", sure(float(number % 2), 0.8), label=number % 4 < 3) for number in range(12)]
    repeated, single = by_name(rate_outcomes(*outcomes)), by_name(rate_outcomes(*alone))
    assert repeated["κ"].value == pytest.approx(single["κ"].value)
    assert (repeated["κ"].low, repeated["κ"].high) == pytest.approx((single["κ"].low, single["κ"].high), abs=0.03)


def test_an_error_changes_no_figure() -> None:
    counts = ((1.0, True, 6), (0.0, False, 5), (1.0, False, 2))
    rated_cases = verdicts(*counts)
    broken = rate_outcomes(labelled_outcome("broken", failed(BROKEN_JUDGE), label=True))
    assert figures(broken) == []
    broken.cases += rated_cases.cases
    assert figures(broken) == figures(rated_cases)


def test_perfect_agreement_of_few_is_no_certainty() -> None:
    by_measure = by_name(verdicts((1.0, True, 5), (0.0, False, 5)))
    assert (by_measure["accuracy"].value, by_measure["κ"].value, by_measure["AUROC"].value) == (1, 1, 1)
    assert by_measure["accuracy"].low == pytest.approx(0.722, abs=1e-3)
    assert by_measure["κ"].low == pytest.approx(0.445, abs=1e-3)
    assert by_measure["AUROC"].low == pytest.approx(0.592, abs=1e-3)


def test_numbers_are_compared_by_rank_beside_one_rater_and_the_length() -> None:
    ratings = [[1, 2, 1], [2, 2, 3], [3, 3, 3], [5, 4, 5], [4, 5, 4], [5, 5, 5]]
    outcomes = [
        labelled_outcome(str(at), sure(at / 5, 0.8), rating, "x" * (9 - at)) for at, rating in enumerate(ratings)
    ]
    (figure,) = figures(rate_outcomes(*outcomes))
    assert (figure.name, figure.n) == ("Spearman", 6)
    assert figure.value == pytest.approx(1 - 6 * 2 / (6 * 35)), "two neighbours are exchanged"
    assert figure.length == pytest.approx(-cast("float", figure.value))
    alone = [([rating[at] for rating in ratings], [sum(rating) - rating[at] for rating in ratings]) for at in range(3)]
    assert figure.rater == pytest.approx(fsum(spearman(*pair) or nan for pair in alone) / 3)
    cut = by_name(rate_outcomes(*outcomes), good_from=3)
    assert (*NAMES, "Spearman") == tuple(cut)
    assert cut["accuracy"].value == pytest.approx(3 / 6), "only a score of 1 passes by itself"
    assert cut["accuracy"].rater == pytest.approx(17 / 18), "once a rater says 3 where the others say 2"


def test_one_of_two_raters_is_beside_the_other_also_where_they_differ() -> None:
    rows = [(1.0, [True, True], 6), (0.0, [False, False], 6), (1.0, [True, False], 4)]
    by_measure = by_name(verdicts(*rows))
    assert (by_measure["accuracy"].n, by_measure["accuracy"].value) == (12, 1)
    assert by_measure["accuracy"].rater == pytest.approx(12 / 16)


def test_a_judge_that_does_not_say_how_sure_it_is_has_no_calibration() -> None:
    rated_cases = rate_outcomes(labelled_outcome("a", 1.0, label=True), labelled_outcome("b", 0.0, label=False))
    assert tuple(by_name(rated_cases)) == NAMES[:-1]


def test_an_item_of_the_list_is_compared_by_itself() -> None:
    states: list[FindingState] = ["pass", "partial", "fail", "skip"]
    outcomes = [
        labelled_outcome(
            str(at), sure(0.5, 0.9, useful=states[at % 4], kind="pass" if at % 3 else "fail"), label=3 - at % 4
        )
        for at in range(24)
    ]
    useful, kind = items(rate_outcomes(*outcomes))
    assert (useful.name, useful.held, useful.partly, useful.failed) == ("useful", 6, 6, 6)
    assert (useful.agreement.name, useful.agreement.n) == ("Spearman", 18)
    assert useful.agreement.value == pytest.approx(1)
    assert (kind.held, kind.partly, kind.failed) == (16, 0, 8)
    assert kind.agreement.value == pytest.approx(0)
    by_verdict, _ = items(rate_outcomes(*outcomes), good_from=2)
    assert (by_verdict.agreement.name, by_verdict.agreement.value) == ("AUROC", pytest.approx(1))


def test_items_that_few_conversations_have_are_left_out() -> None:
    own: list[dict[str, FindingState]] = [{f"only{at}": "pass"} for at in range(12)]
    outcomes = [labelled_outcome(str(at), sure(1.0, 0.9, **item), label=True) for at, item in enumerate(own)]
    assert items(rate_outcomes(*outcomes)) == []


def test_what_cannot_be_compared_is_counted_and_never_a_score() -> None:
    rated_cases = rate_outcomes(
        labelled_outcome("a", sure(1.0, 0.9), label=True, said="Hello!"),
        labelled_outcome("b", failed(BROKEN_JUDGE), label=True),
        labelled_outcome("c", failed(TIMEOUT), label=None),
        labelled_outcome("d", skipped("nothing to judge"), label=True),
        labelled_outcome("e", 1.0, label=None),
        labelled_outcome("f", Score(value=0.0, usage=Usage(calls=1, input_tokens=7)), label=False),
    )
    assert [(case.sample_id, case.passed, case.length) for case in rated_cases.cases] == [
        ("a", True, 6),
        ("f", False, 6),
    ]
    assert (rated_cases.errors, rated_cases.skipped, rated_cases.unlabelled) == ({"format": 1, "timeout": 1}, 1, 1)
    assert rated_cases.usage.input_tokens == 7


def test_the_sure_come_first_among_passes_and_last_among_failures() -> None:
    scores = [sure(1.0, 0.9), sure(1.0, 0.6), sure(0.0, 0.6), sure(0.0, 0.9)]
    rated_cases = rate_outcomes(*(labelled_outcome(str(place), score, label=1) for place, score in enumerate(scores)))
    orders = [case.order for case in rated_cases.cases]
    assert orders == sorted(orders, reverse=True)
    assert len(set(orders)) == 4


def test_raters_are_one_or_several_and_most_of_them_decide() -> None:
    assert Ratings((1.0,), boolean=True).good(None) is True
    assert Ratings((1.0, 0.0), boolean=True).good(None) is None, "one for and one against"
    assert Ratings((1.0, 0.0, 0.0), boolean=True).good(0.1) is False
    assert Ratings((4.0, 5.0), boolean=False).good(None) is None, "nothing says what is good"
    assert (Ratings((4.0, 5.0), boolean=False).good(4.5), Ratings((4.0, 5.0), boolean=False).good(4.6)) == (True, False)
    pair = Ratings((4.0, 5.0, 1.0), boolean=False).without(1)
    assert pair is not None
    assert [ratings.values for ratings in pair] == [(5.0,), (4.0, 1.0)]
    assert Ratings((4.0,), boolean=False).without(0) is None
    assert Ratings((4.0, 5.0), boolean=False).without(2) is None


def test_a_label_may_lie_deep_and_a_tag_chooses_rows() -> None:
    rows = [
        labelled_outcome("a", 1.0, label=[True, False], tags=["report"]),
        labelled_outcome("b", 1.0, label=[True], tags=["choose"]),
    ]
    assert [case.ratings.values for case in rate_outcomes(*rows, label="deep.er").cases] == [(1.0, 0.0), (1.0,)]
    assert [case.sample_id for case in rate_outcomes(*rows, tag="report").cases] == ["a"]
    assert all(each.cases == [] for each in collect_rated(rows, ["absent"], "good"))


@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("good", "b#2: labels.good is 'fine'; expected a number, true or false, or a list of these"),
        ("bad", "no row has labels.bad; name a label of the dataset, as in --label good"),
    ],
)
def test_a_label_that_is_missing_or_is_none_is_named(label: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        rate_outcomes(
            labelled_outcome("a", 1.0, label=True), labelled_outcome("b", 1.0, label="fine", trial=1), label=label
        )
    assert str(caught.value) == why


@pytest.mark.parametrize("label", [[True, 3], [float("nan")], {"a": 1}, ["4"]])
def test_other_labels_are_refused(label: object) -> None:
    with pytest.raises(UsageError, match=r"a: labels\.good is "):
        rate_outcomes(labelled_outcome("a", 1.0, label=label))


def test_a_tag_that_no_row_has_is_named() -> None:
    with pytest.raises(UsageError, match="no row has the tag 'report'"):
        rate_outcomes(labelled_outcome("a", 1.0, label=True, tags=["choose"]), tag="report")
