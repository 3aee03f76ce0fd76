from __future__ import annotations

import time
from itertools import islice

import pytest

from vivavoce.store.runs.naming import attempt_ids, first_id_at


def test_ids_grow_and_fit_into_63_bits() -> None:
    ids = list(islice(attempt_ids(), 10_000))
    assert ids == sorted(set(ids))
    assert 0 < ids[0] < ids[-1] < 2**63


def test_ids_grow_even_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = attempt_ids()
    before = next(ids)
    monkeypatch.setattr(time, "time_ns", lambda: 1_600_000_000_000_000_000)
    assert next(ids) > before


def test_makers_do_not_give_each_others_ids() -> None:
    one, two = (set(islice(attempt_ids(), 5_000)) for _ in range(2))
    assert len(one | two) == 10_000


def test_a_later_maker_gives_later_ids() -> None:
    first = next(attempt_ids())
    time.sleep(0.002)
    assert next(attempt_ids()) > first


def test_the_first_id_of_a_time_divides_those_made_before_and_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [1_700_000_000.0, 1_700_000_000.5, 1_700_000_001.0]
    found: list[int] = []
    for at in made:
        monkeypatch.setattr(time, "time_ns", lambda at=at: round(at * 1e9))
        found.append(next(attempt_ids()))
    for place, at in enumerate(made):
        assert [one >= first_id_at(at) for one in found] == [place <= other for other in range(3)]
    assert first_id_at(0.0) == 0
