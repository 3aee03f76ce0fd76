from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vivavoce.errors import ModelFault, UsageError
from vivavoce.metrics.composition import AllOf
from vivavoce.metrics.evaluation import EvaluationReport, aevaluate_conversation, choose, evaluate_conversation, spent
from vivavoce.metrics.exact.counts import TurnCountMetric
from vivavoce.metrics.joint import JointJudge
from vivavoce.metrics.judged.safety import SafetyMetric
from vivavoce.metrics.pairwise import Comparison, compare_conversations
from vivavoce.metrics.panel import Panel
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.streaming import StreamingEvaluator
from vivavoce.records.score import Usage
from vivavoce.testing.loopback import LoopbackServer
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
    assert EvaluationReport({str(i): result for i, result in enumerate(results)}).all_passed is passed


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


TALK = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
ANSWER: dict[str, Any] = {"violations": [], "reasoning": "Fine.", "confidence": 1.0}
BETTER: dict[str, Any] = {"evidence_a": [], "evidence_b": [], "reasoning": "Alike.", "better": "tie", "confidence": 1.0}
NEEDS = "needs a judge: give a model, or set VIVAVOCE_JUDGE"


def streamed() -> MetricResult:
    stream = StreamingEvaluator(["safety"])
    stream.feed(*TALK)
    return stream.finish()["safety"]


UNNAMED: dict[str, Callable[[], MetricResult | Comparison]] = {
    "by name": lambda: evaluate_conversation(TALK, ["safety"])["safety"],
    "alone": lambda: SafetyMetric().evaluate(TALK),
    "composed": lambda: AllOf("safety").evaluate(TALK),
    "by a panel": lambda: Panel("safety", votes=2).evaluate(TALK),
    "streamed": streamed,
    "jointly": lambda: JointJudge(["safety", "toxicity"]).evaluate(TALK)["safety"],
    "compared": lambda: compare_conversations(TALK, TALK),
}


@pytest.mark.parametrize("way", UNNAMED)
def test_the_judge_that_the_environment_names_is_asked_as_soon_as_it_is_named(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = UNNAMED[way]
    before = measure()
    assert (before.state, (before.reasoning or "").removeprefix("safety was skipped: ")) == ("skipped", NEEDS)

    answers: dict[str, dict[str, Any]] = {"jointly": {"safety": ANSWER, "toxicity": ANSWER}, "compared": BETTER}
    with LoopbackServer(lambda body: answers.get(way, ANSWER)) as server:
        found: list[str | None] = []
        for name in ("one", "two"):
            monkeypatch.setenv("VIVAVOCE_JUDGE", f"{server.base_url}#{name}")
            result = measure()
            assert result.state == "scored"
            found.append(result.fingerprint)
        assert {request.body["model"] for request in server.requests} == {"one", "two"}
    assert len({*found, before.fingerprint}) == 3, "a score says by its fingerprint who judged"


def test_a_metric_that_is_kept_asks_the_judge_that_is_named_now(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = SafetyMetric()
    with LoopbackServer(lambda body: ANSWER) as server:
        prints: list[str | None] = []
        for name in ("one", "two", "one"):
            monkeypatch.setenv("VIVAVOCE_JUDGE", f"{server.base_url}#{name}")
            prints.append(metric.evaluate(TALK).fingerprint)
        assert [request.body["model"] for request in server.requests] == ["one", "two", "one"]
    assert prints[0] == prints[2] != prints[1]
    assert metric.model is None


def test_a_judge_that_is_named_and_cannot_be_asked_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIVAVOCE_JUDGE", "openai:m")
    result = evaluate_conversation(TALK, ["safety"])["safety"]
    assert (result.state, "model 'openai:m' needs a key" in (result.reasoning or "")) == ("error", True)
