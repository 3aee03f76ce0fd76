from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conversations import REFUND
from vivavoce.errors import UsageError
from vivavoce.grading.expect import judged_by
from vivavoce.grading.expected import read_expect
from vivavoce.grading.grader import Grader
from vivavoce.grading.metrics import FunctionGrading
from vivavoce.metrics import evaluate_conversation
from vivavoce.records.score import Score
from vivavoce.run.drivers import replay
from vivavoce.samples.sample import Sample
from vivavoce.work_time import limited_work

TALK: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Hello, I never lie."},
    {"role": "user", "content": "My money back!"},
    {"role": "assistant", "content": "Which order?"},
    {"role": "user", "content": "1042."},
    {"role": "assistant", "content": "You get EUR 20."},
]


def grader(**how: Any) -> Grader:
    return judged_by(FunctionGrading(function="expect", **how).grader("expect", Path()), {}, None)


async def score(expect: Any, **how: Any) -> Score:
    sample = Sample.model_validate({"id": "a", "messages": TALK, "expect": expect})
    return await grader(**how).grade(sample, replay(sample))


async def test_a_miss_is_named_by_its_turn_with_what_was_said() -> None:
    found = await score([{"contains": "order"}, [{"numeric": 24.9, "tolerance": 0.01}, {"not_contains": "sorry"}]])
    assert found.value == pytest.approx(2 / 3)
    assert found.passed is False
    assert found.reason == "turn 2: the number is 20, expected 24.9 ± 0.01, said 'You get EUR 20.'"
    assert [(finding.turn, finding.what, finding.verdict, finding.state) for finding in found.findings] == [
        (0, "contains 'order'", "holds", "pass"),
        (1, "gives 24.9 ± 0.01", "missed", "fail"),
        (1, "does not contain 'sorry'", "holds", "pass"),
    ]
    assert [(one.text, one.turn) for one in found.findings[1].evidence] == [("You get EUR 20.", 1)]


async def test_all_that_holds_passes() -> None:
    found = await score({"all": [{"contains": "order"}, {"contains": "EUR 20"}]})
    assert (found.value, found.passed, found.reason) == (1.0, True, "2 of 2 assertions hold")


async def test_a_greeting_is_of_the_conversation_and_not_of_the_first_turn() -> None:
    assert (await score([{"not_contains": "never"}, None])).passed
    assert (await score({"not_contains": "never"})).passed is False


async def test_a_weight_says_how_much_an_assertion_counts() -> None:
    found = await score({"all": [{"contains": "order", "weight": 3}, {"contains": "thanks"}]})
    assert (found.value, found.passed) == (0.75, False)
    assert (await score({"all": [{"contains": "order", "weight": 1e12}, {"contains": "thanks"}]})).passed is False


async def test_a_threshold_says_from_where_it_passes() -> None:
    halved = {"all": [{"contains": "order"}, {"contains": "thanks"}]}
    assert (await score(halved, threshold=0.5)).passed
    assert not (await score(halved, threshold=0.6)).passed


async def test_only_five_misses_are_named() -> None:
    found = await score({"all": [{"contains": f"word {n}"} for n in range(7)]})
    assert found.reason is not None
    assert found.reason.endswith("; and 2 more")


async def test_what_cannot_be_decided_is_an_error() -> None:
    found = await score([{"contains": "order"}, {"latency": 3}])
    assert (found.state, found.value) == ("error", None)
    assert found.reason == "latency cannot be checked: turn 2 has no time, neither measured nor by timestamps"


async def test_a_miss_decides_whatever_cannot_be_decided() -> None:
    found = await score([{"contains": "thanks"}, {"latency": 3}])
    assert (found.state, found.value, found.passed) == ("scored", 0.0, False)
    assert found.reason is not None
    assert found.reason.endswith("1 could not be decided, which does not change that")
    for expect in ([{"contains": "thanks", "severity": "warn"}, {"latency": 3}], {"all": [{"latency": 3}]}):
        assert (await score(expect)).state == "error"
    assert (await score([{"contains": "thanks"}, {"latency": 3}], threshold=0.5)).state == "error"


@pytest.mark.parametrize(
    ("expect", "passed"),
    [
        ({"all": [{"latency": 3}, {"contains": "thanks"}]}, False),
        ({"all": [{"latency": 3}, {"contains": "order"}]}, None),
        ({"any": [{"all": [{"latency": 3}, {"contains": "thanks"}]}, {"contains": "no"}]}, False),
        ({"any": [{"latency": 3}, {"contains": "order"}]}, True),
        ({"any": [{"latency": 3}, {"contains": "thanks"}]}, None),
        ({"not": {"all": [{"latency": 3}, {"contains": "thanks"}]}}, True),
        ({"not": {"all": [{"latency": 3}, {"contains": "order"}]}}, None),
        ({"not": {"any": [{"latency": 3}, {"contains": "order"}]}}, False),
        ({"not": {"any": [{"latency": 3}, {"contains": "thanks"}]}}, None),
        ({"not": {"latency": 3}}, None),
    ],
)
async def test_what_cannot_be_decided_matters_only_where_it_would_decide(expect: Any, passed: bool | None) -> None:
    found = await score(expect)
    assert (found.state, found.passed) == ("error" if passed is None else "scored", passed)


async def test_misses_of_a_turn_are_named_together_with_what_was_said_once() -> None:
    found = await score([{"contains": "thanks"}, [{"contains": "refund"}, {"not_contains": "EUR"}]])
    assert found.reason == (
        "turn 1: does not contain 'thanks', said 'Which order?'; "
        "turn 2: does not contain 'refund'; contains 'EUR', said 'You get EUR 20.'"
    )


async def test_a_sample_without_assertions_is_skipped() -> None:
    assert (await score(None)).state == "skipped"


async def test_a_turn_that_was_not_held_is_not_checked() -> None:
    sample = Sample.model_validate(
        {"id": "a", "input": ["Hi.", "Bye."], "expect": [{"contains": "you"}, {"contains": "x"}]}
    )
    short = replay(Sample.model_validate({"id": "a", "messages": TALK[3:]}))
    found = await grader().grade(sample, short)
    assert (found.value, found.reason) == (
        1.0,
        "1 of 1 assertions hold; 1 not checked, because the conversation ended before",
    )
    assert [finding.verdict for finding in found.findings] == ["holds", "not reached"]


async def test_wrong_assertions_of_python_are_the_fault_of_the_suite() -> None:
    found = await score({"contians": "a"})
    assert found.failure is not None
    assert (found.state, found.failure.blame) == ("error", "suite")


def test_it_is_a_metric_too() -> None:
    sample = Sample.model_validate({"id": "a", "messages": TALK, "expect": {"contains": "EUR 24"}})
    from_sample = evaluate_conversation(TALK, ["expect"], sample=sample)["expect"]
    assert (from_sample.value, from_sample.passed) == (0.0, False)


async def of_agents(expect: Any) -> Score:
    sample = Sample.model_validate({"id": "a", "messages": REFUND, "expect": expect})
    return await grader().grade(sample, replay(sample))


@pytest.mark.parametrize(
    ("expect", "passed"),
    [
        ({"calls": {"name": "refund_order", "agent": "refunds"}}, True),
        ({"calls": {"name": "refund_order", "agent": "Refunds", "arguments": {"order_id": "A1"}}}, True),
        ({"calls": [{"name": "refund_order", "agent": "refunds"}, "transfer_to_refunds"]}, True),
        ({"calls": {"name": "refund_order", "agent": "billing"}}, False),
        ({"calls": {"name": "transfer_to_refunds", "agent": "refunds"}}, False),
        ({"no_call": {"name": "refund_order", "agent": "triage"}}, False),
        ({"no_call": {"name": "find_order", "agent": "triage"}}, True),
        ({"not": {"calls": {"name": "refund_order", "agent": "billing"}}}, True),
    ],
)
async def test_a_call_may_be_expected_of_one_agent(expect: Any, passed: bool) -> None:
    assert (await of_agents(expect)).passed is passed


async def test_whose_call_is_missed_is_said() -> None:
    agents = await of_agents({"calls": {"name": "refund_order", "agent": "billing"}})
    assert agents.findings[0].what == "calls refund_order by billing"
    assert "billing: " in (agents.reason or "")
    with pytest.raises(UsageError, match="cannot be used with agent"):
        read_expect({"calls": {"name": "refund_order", "agent": "a"}, "mode": "strict"})


async def test_equal_assertions_are_told_apart_by_place() -> None:
    missed = [{"contains": "thanks"}, {"contains": "thanks", "severity": "warn"}]
    found = await score({"all": [*missed, *missed]})
    assert [finding.state for finding in found.findings] == ["fail", "warn", "fail", "warn"]
    assert (found.reason or "").count("only a warning") == 1


async def test_many_assertions_count_as_work_of_a_request() -> None:
    with limited_work(0.0):
        found = await score({"all": [{"contains": "order"}] * 100})
    assert found.failure is not None
    assert (found.failure.kind, found.value) == ("limit", None)
