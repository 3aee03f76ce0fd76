from __future__ import annotations

import asyncio

import pytest

from vivavoce.errors import Fault, ModelFault, RateLimited, TargetFault
from vivavoce.pacing.limits import Breaker


def fail(breaker: Breaker, *faults: Fault) -> None:
    for fault in faults:
        breaker.record_failure(fault)


def build_refusal() -> TargetFault:
    return TargetFault("connection refused", kind="connection", evidence="errno 111", retryable=True)


def build_fault(status: int, evidence: str = "no") -> ModelFault:
    fault = ModelFault(f"answered {status}", kind="http", evidence=evidence)
    fault.status = status
    return fault


async def test_it_opens_after_five_identical_failures_in_a_row() -> None:
    breaker = Breaker()
    fail(breaker, *(build_refusal() for _ in range(4)))
    breaker.check()
    fail(breaker, build_refusal())
    assert breaker.is_open
    with pytest.raises(TargetFault, match=r"connection refused \(not called: the last 5 calls failed in this way\)"):
        breaker.check()


@pytest.mark.parametrize("other", [TargetFault("connection reset", kind="connection"), build_fault(401)])
async def test_another_failure_begins_a_new_row(other: Fault) -> None:
    breaker = Breaker(threshold=2)
    fail(breaker, build_refusal(), other, build_refusal())
    assert not breaker.is_open
    fail(breaker, build_refusal())
    assert breaker.is_open


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_wrong_key_or_an_unknown_model_is_everybodys_failure(status: int) -> None:
    breaker = Breaker(threshold=2)
    fail(breaker, build_fault(status), build_fault(status))
    assert breaker.is_open


@pytest.mark.parametrize(
    "fault",
    [
        build_fault(400, "the context length is exceeded"),
        build_fault(500),
        RateLimited("slow", retry_after=3.0),
        ModelFault("declined", kind="refusal"),
        ModelFault("not JSON", kind="format"),
        ModelFault("no answer within 60 s", kind="timeout"),
    ],
)
def test_what_belongs_to_one_call_does_not_count(fault: Fault) -> None:
    breaker = Breaker(threshold=2)
    fail(breaker, *[fault] * 9)
    assert not breaker.is_open


async def test_what_belongs_to_one_call_does_not_break_a_row() -> None:
    breaker = Breaker(threshold=2)
    fail(breaker, build_refusal(), build_fault(500), build_refusal())
    assert breaker.is_open


def test_the_same_status_with_another_explanation_is_another_failure() -> None:
    breaker = Breaker(threshold=2)
    fail(breaker, build_fault(403, "'kill' was flagged"), build_fault(403, "'maim' was flagged"))
    assert not breaker.is_open


async def test_a_success_begins_a_new_row_and_closes_it() -> None:
    breaker = Breaker(threshold=2)
    fail(breaker, build_refusal())
    breaker.record_success()
    fail(breaker, build_refusal())
    assert not breaker.is_open
    fail(breaker, build_refusal())
    breaker.record_success()
    breaker.check()
    assert not breaker.is_open


@pytest.mark.parametrize("fault", [build_refusal(), build_fault(401)])
async def test_the_failure_keeps_its_class_cause_and_evidence_and_is_not_tried_again(fault: Fault) -> None:
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


async def test_while_open_other_failures_change_nothing() -> None:
    breaker = Breaker(threshold=1)
    fail(breaker, build_refusal(), build_fault(401))
    with pytest.raises(TargetFault, match="refused"):
        breaker.check()


async def test_after_a_rest_one_call_is_let_through() -> None:
    breaker = Breaker(threshold=1, rest=30)
    fail(breaker, build_refusal())
    await asyncio.sleep(30)
    breaker.check()
    with pytest.raises(TargetFault, match="not called"):
        breaker.check()
    fail(breaker, build_refusal())
    await asyncio.sleep(29)
    with pytest.raises(TargetFault, match="not called"):
        breaker.check()
    await asyncio.sleep(1)
    breaker.check()
    breaker.record_success()
    breaker.check()


def test_a_threshold_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Breaker(0)
