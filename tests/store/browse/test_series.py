from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report.trend_cases import keep, says
from vivavoce.errors import UsageError
from vivavoce.records.run import Grading
from vivavoce.store.browse.series import Series
from vivavoce.store.store import Store


@pytest.fixture
def ten(address: str) -> Iterator[Store]:
    """Ten runs of one suite, and one of another among them."""
    with Store.open(address) as store:
        for number in range(10):
            keep(store, number, says("goal", number / 10))
        keep(store, 5, says("goal", 1.0), suite="other")
        yield store


def numbers(series: Series) -> list[int]:
    return [int(one.run.id[-3:]) for one in series.runs]


def test_the_newest_runs_of_a_suite_come_with_their_neighbours(ten: Store) -> None:
    found = ten.series.of("shop", limit=4)
    assert numbers(found) == [6, 7, 8, 9]
    assert found.before is not None
    assert (found.before.run.id, found.after) == ("shop-005", None)


def test_runs_come_with_their_newest_scores_in_the_order_of_their_names(ten: Store) -> None:
    found = ten.series.graded_runs(["shop-007", "gone", "shop-003", "\ud800"])
    assert [one.run.id for one in found] == ["shop-007", "shop-003"]
    assert [one.grading for one in found] == [ten.grading("shop-007"), ten.grading("shop-003")]


@pytest.mark.parametrize(
    ("first", "last", "shown", "after"),
    [
        ("shop-002", None, [2, 3, 4], "shop-005"),
        (None, "shop-004", [2, 3, 4], "shop-005"),
        ("shop-003", "shop-004", [3, 4], "shop-005"),
        ("shop-000", "shop-008", [6, 7, 8], "shop-009"),
        (None, "shop-001", [0, 1], "shop-002"),
        ("shop-008", None, [8, 9], None),
    ],
)
def test_a_part_is_named_by_its_ends(
    ten: Store, first: str | None, last: str | None, shown: list[int], after: str
) -> None:
    found = ten.series.of("shop", first=first, last=last, limit=3)
    assert (numbers(found), found.after) == (shown, after)


def test_of_several_gradings_the_newest_complete_one_counts(ten: Store) -> None:
    again = Grading(id="again", run_id="shop-009", spec={}, created_at=2e9, finished_at=2e9, summary={})
    ten.add_grading(again)
    ten.add_grading(Grading(id="begun", run_id="shop-009", spec={}, created_at=3e9))
    newest = ten.series.of("shop", limit=1).runs[0]
    assert newest.grading == again


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"suite": "shp"}, "no suite 'shp'; did you mean 'shop'?"),
        ({"suite": "shop", "first": "other-005"}, "no run 'other-005' in suite 'shop'"),
        ({"suite": "shop", "first": "shop-004", "last": "shop-002"}, "'shop-004' started after 'shop-002'"),
    ],
)
def test_what_is_not_there_is_said(ten: Store, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        ten.series.of(**asked)
    assert str(raised.value) == said


@pytest.mark.parametrize("name", ["it's 100% _odd_", "Prüfung 🎓", ""])
def test_a_suite_may_be_called_anything(ten: Store, name: str) -> None:
    keep(ten, 20, says("goal", 0.5), suite=name, id="odd")
    assert [one.run.id for one in ten.series.of(name).runs] == ["odd"]


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_what_no_name_can_hold_is_not_there(ten: Store, name: str) -> None:
    with pytest.raises(UsageError, match="no suite"):
        ten.series.of(name)


def test_suites_come_with_their_newest_runs_page_by_page(ten: Store) -> None:
    keep(ten, 5, suite="third")
    first, place = ten.series.recent(limit=2, length=3)
    assert [(one.suite, one.total, [run.run.id for run in one.runs]) for one in first] == [
        ("shop", 10, ["shop-007", "shop-008", "shop-009"]),
        ("third", 1, ["third-005"]),
    ]
    second, end = ten.series.recent(place, limit=2)
    assert ([one.suite for one in second], end) == (["other"], None)
    with pytest.raises(UsageError, match="no cursor"):
        ten.series.recent("x")


def test_an_empty_store_has_no_suites(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "new.db")) as store:
        assert store.series.recent() == ([], None)
        with pytest.raises(UsageError, match="no suite 'shop'"):
            store.series.of("shop")
