from __future__ import annotations

import pytest

from vivavoce.errors import UsageError
from vivavoce.records.score import Score, Usage, failed, skipped
from vivavoce.report.rated import rated
from vivavoce.stats.raters import Ratings

from .cases import BROKEN_JUDGE, TIMEOUT
from .label_cases import judged, labelled, sure


def test_what_cannot_be_compared_is_counted_and_never_a_score() -> None:
    found = judged(
        labelled("a", sure(1.0, 0.9), label=True, said="Hello!"),
        labelled("b", failed(BROKEN_JUDGE), label=True),
        labelled("c", failed(TIMEOUT), label=None),
        labelled("d", skipped("nothing to judge"), label=True),
        labelled("e", 1.0, label=None),
        labelled("f", Score(value=0.0, usage=Usage(calls=1, input_tokens=7)), label=False),
    )
    assert [(case.sample_id, case.passed, case.length) for case in found.cases] == [("a", True, 6), ("f", False, 6)]
    assert (found.errors, found.skipped, found.unlabelled) == ({"format": 1, "timeout": 1}, 1, 1)
    assert found.usage.input_tokens == 7


def test_the_sure_come_first_among_passes_and_last_among_failures() -> None:
    scores = [sure(1.0, 0.9), sure(1.0, 0.6), sure(0.0, 0.6), sure(0.0, 0.9)]
    found = judged(*(labelled(str(place), score, label=1) for place, score in enumerate(scores)))
    orders = [case.order for case in found.cases]
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
    assert [one.values for one in pair] == [(5.0,), (4.0, 1.0)]
    assert Ratings((4.0,), boolean=False).without(0) is None
    assert Ratings((4.0, 5.0), boolean=False).without(2) is None


def test_a_label_may_lie_deep_and_a_tag_chooses_rows() -> None:
    rows = [labelled("a", 1.0, label=[True, False], tags=["report"]), labelled("b", 1.0, label=[True], tags=["choose"])]
    assert [case.ratings.values for case in judged(*rows, label="deep.er").cases] == [(1.0, 0.0), (1.0,)]
    assert [case.sample_id for case in judged(*rows, tag="report").cases] == ["a"]
    assert all(one.cases == [] for one in rated(rows, ["absent"], "good"))


@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("good", "b#2: labels.good is 'fine'; a label is a number, true or false, or a list of these"),
        ("bad", "no row has labels.bad; name a label of the dataset, as in --label good"),
    ],
)
def test_a_label_that_is_missing_or_is_none_is_named(label: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        judged(labelled("a", 1.0, label=True), labelled("b", 1.0, label="fine", trial=1), label=label)
    assert str(caught.value) == why


@pytest.mark.parametrize("label", [[True, 3], [float("nan")], {"a": 1}, ["4"]])
def test_other_labels_are_refused(label: object) -> None:
    with pytest.raises(UsageError, match=r"a: labels\.good is "):
        judged(labelled("a", 1.0, label=label))


def test_a_tag_that_no_row_has_is_named() -> None:
    with pytest.raises(UsageError, match="no row has the tag 'report'"):
        judged(labelled("a", 1.0, label=True, tags=["choose"]), tag="report")
