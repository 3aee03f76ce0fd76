from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import ModelFault, UsageError
from vivavoce.metrics.evaluation import EvaluationReport, aevaluate_conversation, choose, evaluate_conversation, spent
from vivavoce.metrics.exact.counts import TurnCountMetric
from vivavoce.metrics.judged.safety import SafetyMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.records.usage import Usage
from vivavoce.testing.scripted import ScriptedModel

SAID = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]
SAFE: dict[str, Any] = {"violations": [], "reasoning": "Harmless.", "confidence": 0.8}
PASSED = MetricResult(score=1.0, passed=True, usage=Usage(calls=2, cost=0.5))
FAILED = MetricResult(score=0.0, passed=False, usage=Usage(calls=1, cost=0.25))
COUNTED = MetricResult(score=7.0)
BROKEN = MetricResult(score="error", state="error")
SKIPPED = MetricResult(score=None, state="skipped")


def test_a_report_maps_names_to_results() -> None:
    report = EvaluationReport({"one": PASSED, "two": FAILED})
    assert dict(report) == {"one": PASSED, "two": FAILED}
    assert report.get_metric("two") is FAILED
    assert report.get("three") is None
    assert "one" in report
    with pytest.raises(KeyError, match="three"):
        report.get_metric("three")


@pytest.mark.parametrize(
    ("results", "passed"),
    [
        ([], False),
        ([PASSED], True),
        ([PASSED, FAILED], False),
        ([PASSED, BROKEN], False),
        ([PASSED, SKIPPED], False),
        ([PASSED, COUNTED], True),
        ([COUNTED], False),
    ],
)
def test_all_passed_needs_a_verdict_and_none_against(results: list[MetricResult], passed: bool) -> None:
    assert EvaluationReport({str(i): one for i, one in enumerate(results)}).all_passed is passed


def test_usage_is_the_sum_of_what_is_known() -> None:
    assert EvaluationReport({"a": PASSED, "b": FAILED, "c": COUNTED}).usage == Usage(calls=3, cost=0.75)
    assert EvaluationReport({"c": COUNTED}).usage is None
    unpriced = MetricResult(score=1.0, usage=Usage(calls=1))
    total = spent([PASSED, unpriced])
    assert total is not None
    assert (total.calls, total.cost) == (3, None)


def test_a_report_reads_as_lines() -> None:
    lines = str(EvaluationReport({"a": PASSED, "b": BROKEN, "c": SKIPPED})).splitlines()
    assert lines == ["EvaluationReport", "  a: 1.0", "  b: error", "  c: skipped"]


def test_a_broken_metric_is_one_error_and_the_others_go_on() -> None:
    broken = SafetyMetric(ScriptedModel([ModelFault("down")]))
    report = evaluate_conversation(SAID, [broken, TurnCountMetric()])
    assert [result.state for result in report.values()] == ["error", "scored"]
    assert not report.all_passed


async def test_metrics_are_made_by_name_with_the_model_that_is_given() -> None:
    model = ScriptedModel([SAFE])
    report = await aevaluate_conversation(SAID, ["safety", "turn_count"], model=model)
    assert {name: result.score for name, result in report.items()} == {"safety": 1.0, "turn_count": 1.0}
    assert len(model.requests) == 1


def test_what_is_known_reaches_the_prompt() -> None:
    model = ScriptedModel([ModelFault("never mind")])
    evaluate_conversation(SAID, ["goal_achievement"], "A greeting", model=model, must=["greets back"], context={"a": 1})
    text = model.requests[0].messages[-1].text
    assert '1. "greets back"' in text
    assert 'Context: {"a": 1}' in text


def test_two_metrics_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two metrics are called 'safety'; give one of them another name="):
        choose(["safety", SafetyMetric()])
    with pytest.raises(UsageError, match="did you mean 'safety'"):
        choose(["safty"])
