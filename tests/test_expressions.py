"""Regular expressions: what they find, and that a search ends."""

from __future__ import annotations

import pytest

from vivavoce.errors import GraderFault, UsageError
from vivavoce.expressions import Expression


def test_it_finds_matches_and_groups() -> None:
    dates = Expression(r"(\d+) May")
    assert dates.found_in("on 13 May")
    assert not dates.found_in("in June")
    assert dates.matches("13 May, 14 May") == ["13 May", "14 May"]
    assert dates.matches("13 May, 14 May", group=1) == ["13", "14"]


def test_a_search_that_takes_too_long_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vivavoce.expressions.SECONDS", 0.1)
    endless = Expression("(a|aa)+$")
    for search in (endless.found_in, endless.matches):
        with pytest.raises(GraderFault, match=r"took longer than 0\.1 s") as caught:
            search("a" * 60 + "!")
        assert caught.value.kind == "timeout"


def test_what_is_no_expression_is_told() -> None:
    with pytest.raises(UsageError, match=r"'\(' is not a regular expression"):
        Expression("(")
