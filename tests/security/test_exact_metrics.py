"""Exact metrics on texts that are made to take long: they stay near linear, and their time counts for the request."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.comparing.numbers import numbers_in
from vivavoce.errors import GraderFault
from vivavoce.metrics.exact.personal_data import KINDS, find_personal_data
from vivavoce.work_time import limited_work

PIECES = ("4111 ", "a@b.", "DE12 ", "1-", "::", "4111111111111111 ", "+49 30 123456 ", "a@example.org ", "123-45-6789 ")
IBAN = "DE89 3704 0044 0532 0130 00 "


@pytest.mark.parametrize("piece", [*PIECES, IBAN])
def test_the_time_of_a_search_counts_for_its_request(piece: str) -> None:
    with limited_work(1e-9):
        numbers_in(f"1 {piece}")  # uses up all that there is
        with pytest.raises(GraderFault, match="this request takes more than"):
            find_personal_data(piece * 2_000, KINDS)


def test_many_data_of_several_kinds_are_found() -> None:
    data = find_personal_data(f"a@example.org {IBAN}+49 30 123456 " * 5_000, KINDS)
    assert [datum.kind for datum in data] == ["email", "iban", "phone"] * 5_000


@given(st.lists(st.sampled_from([*PIECES, IBAN, "8.8.8.8 ", "."]), max_size=12))
def test_data_stand_in_order_and_none_overlaps_another(pieces: list[str]) -> None:
    data = find_personal_data("".join(pieces), KINDS, "DE")
    assert all(earlier.end <= later.start for earlier, later in pairwise(data))
