from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.penelope.tools.claims import claim, claims


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("Returns within 30 days", "Returns within 14 days"),
        ("The fee is $5", "The fee is 6 dollars"),
        ("Open on Monday", "Open on Tuesday"),
        ("It leaves on 3 March", "It leaves on 2024-03-04"),
        ("It takes 3-5 days", "It takes 6 days"),
        ("Order AB-1234", "Order AB-9999"),
    ],
)
def test_figures_that_cannot_both_be_right_differ(first: str, other: str) -> None:
    assert claim(first).differs_from(claim(other))
    assert claim(first).is_about(claim(other))


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("Returns within 30 days", "A 30-day return"),
        ("The fee is $5", "The fee for 3 items"),
        ("It leaves on 3 March", "It leaves on 2024-03-03"),
        ("It leaves in March 2024", "It leaves on 2024-03-03"),
        ("It leaves on 3/4/2024", "It leaves on 4 March 2024"),
        ("It takes 3-5 days", "It takes 4 days"),
        ("Open on Monday", "Open on 3 March"),
    ],
)
def test_figures_that_may_both_be_right_do_not(first: str, other: str) -> None:
    assert not claim(first).differs_from(claim(other))


@given(st.text())
def test_a_text_never_differs_from_itself(text: str) -> None:
    for each in claims(text):
        assert not each.differs_from(each)
        assert each.has_figures_of(each)
