from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.penelope.rates import success_rates
from vivavoce.stats.intervals import wilson


@dataclass(frozen=True)
class Ended:
    target_passed: bool | None
    blame: str | None = None


PASSED, FAILED = Ended(True), Ended(False, "target")
SPOILT, UNKNOWN = Ended(False, "tester"), Ended(None, "judge")
ENDINGS = st.builds(Ended, st.sampled_from([True, False, None]), st.sampled_from(["target", "tester", "judge", None]))


def test_net_leaves_out_what_the_tester_spoilt_and_raw_does_not() -> None:
    rates = success_rates([PASSED] * 6 + [FAILED] * 2 + [SPOILT] * 2 + [UNKNOWN] * 3)
    assert (rates.n, rates.succeeded, rates.failed, rates.tester_errors, rates.inconclusive) == (13, 6, 4, 2, 3)
    assert (rates.raw, rates.net) == (0.6, 0.75)
    assert rates.raw_interval == pytest.approx(wilson(6, 10))
    assert rates.net_interval == pytest.approx(wilson(6, 8))
    assert str(rates) == (
        "60.0% [31.3%, 83.2%] raw (6 of 10), 75.0% [40.9%, 92.9%] net of 2 tester errors, 3 of 13 tests inconclusive"
    )


def test_where_nothing_came_to_a_verdict_there_is_no_rate() -> None:
    for nothing in ([], [UNKNOWN, Ended(None, "tester")]):
        rates = success_rates(nothing)
        assert (rates.raw, rates.net, rates.raw_interval, rates.inconclusive) == (None, None, None, len(nothing))
        assert str(rates).startswith("no rate raw (0 of 0), no rate net of ")


def test_where_the_tester_spoilt_all_of_them_only_the_raw_rate_is_known() -> None:
    rates = success_rates([SPOILT, SPOILT])
    assert (rates.raw, rates.net, rates.net_interval) == (0.0, None, None)


def test_one_test_has_a_rate_and_a_wide_interval() -> None:
    rates = success_rates([PASSED])
    assert (rates.raw, rates.raw_interval) == (1.0, (pytest.approx(0.2065, abs=1e-4), 1.0))
    text = "100.0% [20.7%, 100.0%] raw (1 of 1), 100.0% [20.7%, 100.0%] net of 0 tester errors"
    assert str(rates) == f"{text}, 0 of 1 test inconclusive"


def test_trials_of_one_sample_are_not_independent() -> None:
    outcomes = [PASSED, PASSED, PASSED, FAILED, FAILED, FAILED, PASSED, FAILED]
    apart, together = success_rates(outcomes), success_rates(outcomes, ["a", "a", "a", "b", "b", "b", "c", "c"])
    assert apart.raw == together.raw == 0.5
    assert apart.raw_interval is not None
    assert together.raw_interval is not None
    assert together.raw_interval[0] < apart.raw_interval[0]
    with pytest.raises(ValueError, match="zip"):
        success_rates(outcomes, ["a"])


@given(st.lists(ENDINGS, max_size=30))
def test_every_test_is_counted_once_and_every_rate_lies_in_its_interval(outcomes: list[Ended]) -> None:
    rates = success_rates(iter(outcomes))
    assert rates.n == len(outcomes) == rates.succeeded + rates.failed + rates.inconclusive
    for rate, interval in ((rates.raw, rates.raw_interval), (rates.net, rates.net_interval)):
        if rate is not None and interval is not None:
            assert 0 <= interval[0] <= rate <= interval[1] <= 1
    spared = [outcome for outcome in outcomes if outcome.blame != "tester"]
    assert rates.net == success_rates(spared).raw
