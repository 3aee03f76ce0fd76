from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.records.score import Score
from vivavoce.server.pages.neighbours import neighbours
from vivavoce.store.browse.filter import parse_filter
from vivavoce.store.browse.listing import SampleEntry
from vivavoce.store.store import Store

from .cases import keep, outcome

GRADES = [
    Score(value=0.0),
    Score(value=0.8, passed=True),
    Score(value=1.0),
    Score(state="skipped", reason="nothing to say"),
    Score(value=1.0, passed=False),
    Score(value=0.5),
]
"""By position: fail, pass from 0.7 on, pass, skipped, a full score that does not pass, fail."""


@pytest.mark.parametrize(
    ("position", "around"),
    [
        (0, (None, "1", None, "4")),
        (2, ("1", "3", "0", "4")),
        (4, ("3", "5", "0", "5")),
        (5, ("4", None, "4", None)),
    ],
)
def test_failing_neighbours_are_those_that_the_list_says_failed(
    tmp_path: Path, position: int, around: tuple[str | None, ...]
) -> None:
    with Store.open(str(tmp_path / "kept.db")) as store:
        keep(store, [outcome(str(i), grades={"goal": grade}, position=i) for i, grade in enumerate(GRADES)])
        found = neighbours(store, "run-1-g1", position)
    assert tuple(map(_name, (found.before, found.after, found.listed.before, found.listed.after))) == around


@pytest.mark.parametrize(
    ("sort", "position", "around"),
    [
        ("goal", 0, (None, "5", 1, 4)),
        ("goal", 5, ("0", "2", 2, 4)),
        ("-goal", 0, ("5", None, 4, 4)),
        ("-position", 2, ("4", "0", 3, 4)),
        ("goal", 3, ("4", None, None, 4)),
    ],
)
def test_neighbours_of_a_list_follow_its_filter_and_its_order(
    tmp_path: Path, sort: str, position: int, around: tuple[str | int | None, ...]
) -> None:
    with Store.open(str(tmp_path / "kept.db")) as store:
        keep(store, [outcome(str(i), grades={"goal": grade}, position=i) for i, grade in enumerate(GRADES)])
        wanted = parse_filter("-sample:1 -state:skipped")
        found = neighbours(store, "run-1-g1", position, wanted, sort).listed
    assert (_name(found.before), _name(found.after), found.number, found.total) == around


def _name(sample: SampleEntry | None) -> str | None:
    return None if sample is None else sample.sample_id
