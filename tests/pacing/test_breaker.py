from __future__ import annotations

import pytest

from vivavoce.errors import Fault, ModelFault, RateLimited, TargetFault
from vivavoce.pacing.breaker import Breaker


def fail(breaker: Breaker, *faults: Fault) -> None:
    for fault in faults:
        breaker.failed(fault)


def refused() -> TargetFault:
    return TargetFault("connection refused", kind="connection", evidence="errno 111", retryable=True)


def test_it_opens_after_five_identical_failures_in_a_row() -> None:
    breaker = Breaker()
    fail(breaker, *(refused() for _ in range(4)))
    breaker.check()
    fail(breaker, refused())
    assert breaker.is_open
    with pytest.raises(TargetFault, match=r"connection refused \(not called: the last 5 calls failed in this way\)"):
        breaker.check()


@pytest.mark.parametrize(
    "other", [TargetFault("connection reset", kind="connection"), TargetFault("connection refused", kind="http")]
)
def test_a_failure_of_another_message_or_kind_begins_a_new_row(other: TargetFault) -> None:
    breaker = Breaker(threshold=2)
    fail(breaker, refused(), other, refused())
    assert not breaker.is_open
    fail(breaker, refused())
    assert breaker.is_open


def test_a_success_begins_a_new_row_and_closes_it() -> None:
    breaker = Breaker(threshold=2)
    fail(breaker, refused())
    breaker.succeeded()
    fail(breaker, refused())
    assert not breaker.is_open
    fail(breaker, refused())
    breaker.succeeded()
    breaker.check()
    assert not breaker.is_open


@pytest.mark.parametrize("fault", [refused(), ModelFault("no"), RateLimited("slow", retry_after=3.0)])
def test_the_failure_keeps_its_class_cause_and_evidence_and_is_not_tried_again(fault: Fault) -> None:
    breaker = Breaker(threshold=1)
    fault.__cause__ = OSError(111)
    fail(breaker, fault)
    with pytest.raises(Fault) as caught:
        breaker.check()
    again = caught.value
    assert type(again) is type(fault)
    assert again is not fault
    assert (again.kind, again.evidence, again.blame) == (fault.kind, fault.evidence, fault.blame)
    assert again.__cause__ is fault.__cause__
    assert not again.retryable


def test_while_open_other_failures_change_nothing() -> None:
    breaker = Breaker(threshold=1)
    fail(breaker, refused(), TargetFault("late", kind="timeout"))
    with pytest.raises(TargetFault, match="refused"):
        breaker.check()


def test_a_threshold_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Breaker(0)
