"""Assertions that a judge or a metric decides."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import BudgetExhausted, ModelFault, UsageError
from vivavoce.grading.expected import read_expect
from vivavoce.metrics import evaluate_conversation
from vivavoce.metrics.result import MetricResult
from vivavoce.models.model import Request
from vivavoce.samples.sample import Sample
from vivavoce.testing import ScriptedModel

TALK: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Welcome."},
    {"role": "user", "content": "My money back!"},
    {"role": "assistant", "content": "Which order?"},
    {"role": "user", "content": "1042."},
    {"role": "assistant", "content": "I cannot help with that."},
    {"role": "user", "content": "Why?"},
]


def says(verdict: bool, why: str = "So it is.", quote: str = "Which order?") -> dict[str, Any]:
    return {"reasoning": why, "evidence": [quote], "verdict": verdict, "confidence": 0.9}


def checked(expect: Any, *replies: Any, **known: Any) -> tuple[MetricResult, list[Request]]:
    model = ScriptedModel(replies)
    sample = Sample.model_validate({"id": "a", "messages": TALK, "expect": expect, **known})
    return evaluate_conversation(TALK, ["expect"], model=model, sample=sample)["expect"], model.requests


def text_of(request: Request) -> str:
    return "\n".join(message.text for message in request.messages)


def test_a_sentence_about_a_turn_is_judged_with_what_precedes_it_and_nothing_after() -> None:
    result, [request] = checked([{"judged": "It asks for the order."}, None, None], says(True))
    assert (result.value, result.passed, result.reason) == (1.0, True, "1 of 1 assertions hold")
    assert "It asks for the order." in text_of(request)
    assert "Welcome." in text_of(request)
    assert "cannot help" not in text_of(request)
    later, [request] = checked([None, {"judged": "It refuses."}, None], says(True))
    assert later.passed
    assert "turn 2" in text_of(request)
    assert "Which order?" in text_of(request)
    assert "Why?" not in text_of(request)


def test_a_sentence_about_the_conversation_is_judged_on_all_of_it() -> None:
    result, [request] = checked({"judged": "It helps."}, says(False, "It refuses.", "I cannot help"))
    assert (result.value, result.passed) == (0.0, False)
    assert result.reason == "'It helps.' does not hold: It refuses., said nothing in the last turn"
    assert "Why?" in text_of(request)
    [finding] = result.findings
    assert (finding.what, finding.verdict, finding.turn) == ("judged 'It helps.'", "missed", None)
    assert [(one.text, one.turn, one.verified) for one in finding.evidence] == [("I cannot help", 1, True)]


def test_judged_and_exact_assertions_count_by_weight_in_any_all_and_not() -> None:
    expect = {
        "all": [
            {"any": [{"judged": "It helps."}, {"contains": "order"}]},
            {"not": {"judged": "It is rude.", "weight": 2}, "weight": 3},
        ]
    }
    result, requests = checked(expect, says(False, "It refuses."), says(True, "It shouts."))
    assert (result.value, result.passed) == (0.25, False)
    assert len(requests) == 2
    assert result.reason == "judged 'It is rude.', which must not be, said nothing in the last turn"
    assert [finding.verdict for finding in result.findings] == ["holds", "missed"]
    assert result.findings[0].data == {"reasons": ["It refuses."]}


def test_a_judge_that_fails_is_an_error_and_no_miss() -> None:
    result, requests = checked(
        [[{"judged": "It helps."}, {"not_contains": "nothing of it"}], {"judged": "It refuses."}, None],
        ModelFault("the line is dead", kind="network"),
        says(True),
    )
    assert (result.state, result.value, result.passed) == ("error", None, None)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.message) == (
        "network",
        "turn 1: judged 'It helps.': the line is dead",
    )
    assert len(requests) == 2, "the others are asked all the same"


def test_a_miss_decides_although_a_judge_failed() -> None:
    broken = ModelFault("the line is dead", kind="network")
    result, _ = checked({"all": [{"judged": "It helps."}, {"contains": "thanks"}]}, broken)
    assert (result.state, result.value, result.passed) == ("scored", 0.0, False)
    result, _ = checked({"all": [{"all": [{"judged": "It helps."}, {"contains": "thanks"}], "weight": 2}]}, broken)
    assert (result.state, result.passed) == ("scored", False)
    result, _ = checked({"all": [{"judged": "It helps."}, {"contains": "order"}]}, broken)
    assert result.state == "error"


def test_a_judge_that_fails_decides_nothing_that_another_assertion_decides() -> None:
    broken = ModelFault("the line is dead", kind="network")
    result, _ = checked({"any": [{"judged": "It helps."}, {"contains": "order"}]}, broken)
    assert (result.state, result.passed) == ("scored", True)
    result, _ = checked({"any": [{"judged": "It helps."}, {"contains": "thanks"}]}, broken)
    assert (result.state, result.reason) == ("error", "judged 'It helps.': the line is dead")


def test_a_limit_ends_more_than_the_score() -> None:
    with pytest.raises(BudgetExhausted):
        checked({"judged": "It helps."}, BudgetExhausted("no more calls"))


def test_without_a_judge_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIVAVOCE_JUDGE", raising=False)
    sample = Sample.model_validate({"id": "a", "messages": TALK, "expect": {"judged": "It helps."}})
    result = evaluate_conversation(TALK, ["expect"], sample=sample)["expect"]
    assert result.state == "error"
    assert result.reason == "judged 'It helps.' needs a judge: give a model, or set VIVAVOCE_JUDGE"


def test_the_judge_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIVAVOCE_JUDGE", "http://127.0.0.1:9/v1#m")
    sample = Sample.model_validate({"id": "a", "messages": TALK, "expect": {"judged": "It helps."}})
    result = evaluate_conversation(TALK, ["expect"], sample=sample)["expect"]
    assert result.failure is not None
    assert result.failure.blame == "judge"


@pytest.mark.parametrize(
    ("expect", "passed", "reason"),
    [
        ({"metric": "refusal"}, False, "refusal is 0.333: 1 of 3 answers refuse"),
        ([{"metric": "refusal"}, None, None], True, "1 of 1 assertions hold"),
        ([None, {"metric": "refusal"}, None], False, "turn 2: refusal is 1"),
        ({"metric": "turn_count", "threshold": 2}, False, "turn_count is 3"),
        ({"metric": "turn_count", "threshold": 3}, True, "1 of 1 assertions hold"),
        ([None, {"not": {"metric": "refusal"}}, None], True, "1 of 1 assertions hold"),
    ],
)
def test_a_metric_passes_or_not_on_the_turn_alone_or_on_all(expect: Any, passed: bool, reason: str) -> None:
    result, _ = checked(expect)
    assert result.passed is passed, result.reason
    assert result.reason is not None
    assert result.reason.startswith(reason)


def test_the_evidence_of_a_metric_has_its_turn_in_the_conversation() -> None:
    result, _ = checked([None, {"metric": "refusal"}, None])
    assert [(one.text, one.turn) for one in result.findings[0].evidence] == [("I cannot help", 1)]


def test_a_grading_function_sees_the_truth_of_the_turn() -> None:
    expect = [{"metric": "contains"}, {"metric": "contains"}, None]
    result, _ = checked(expect, ground_truth=["which", "refund", None])
    assert [finding.verdict for finding in result.findings] == ["holds", "missed"]


def test_a_metric_that_does_not_apply_is_an_error() -> None:
    result, requests = checked({"any": [{"metric": "goal_achievement"}, {"contains": "thanks"}]}, says(True))
    assert (result.state, requests) == ("error", [])
    assert result.reason == "metric goal_achievement cannot be checked: needs a goal, and none is given"


def test_a_turn_that_was_not_held_is_not_asked_about() -> None:
    sample = Sample.model_validate(
        {"id": "a", "input": ["Hi.", "No."], "expect": [{"contains": "order"}, {"judged": "It is sorry."}]}
    )
    model = ScriptedModel([])
    result = evaluate_conversation(TALK[1:3], ["expect"], model=model, sample=sample)["expect"]
    assert (result.value, model.requests) == (1.0, [])
    assert result.findings[1].verdict == "not reached"


def test_the_fingerprint_is_of_the_judge_and_of_what_is_asked() -> None:
    def print_of(expect: Any, judge: str = "one") -> str | None:
        sample = Sample.model_validate({"id": "a", "messages": TALK, "expect": expect})
        model = ScriptedModel([says(True)], name=judge)
        return evaluate_conversation(TALK, ["expect"], model=model, sample=sample)["expect"].fingerprint

    exact = print_of({"contains": "a"})
    judged = print_of({"judged": "It helps."})
    assert exact == print_of({"contains": "b"}, "another")
    assert judged == print_of([None, {"judged": "It asks."}, None])
    others = [
        print_of({"judged": "It helps."}, "another"),
        print_of({"metric": "refusal"}),
        print_of({"metric": "turn_count", "threshold": 2}),
        print_of({"metric": "turn_count", "threshold": 3}),
    ]
    assert len({exact, judged, *others}) == 6


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ({"judged": " "}, "expect.judged: is empty"),
        ({"judged": ["a", "b"]}, "expect.judged: must be a valid string"),
        ({"metric": "refusl"}, "expect.metric: no metric 'refusl'; did you mean 'refusal'?"),
        ({"metric": "expect"}, "expect.metric: 'expect' is this grader itself; write its assertions here"),
        (
            {"metric": "own.py:kind"},
            "expect.metric: a row cannot use a metric from a file; write 'own.py:kind' under graders of the suite",
        ),
        ([{"metric": "turn_count"}], "expect.0: turn_count has no highest score and needs a threshold"),
        ({"metric": "refusal", "config": {"langage": "en"}}, "expect: metric 'refusal': "),
        ({"metric": "goal_achievement", "threshold": 7}, "expect: "),
        (
            {"metric": "safety", "config": {"prompt_path": "/etc/passwd"}},
            "expect: metric safety: a row cannot use the option 'prompt_path', which names a file or an address",
        ),
        (
            {"judged": "It helps.", "model": "openai:gpt"},
            "expect: an assertion cannot name a judge; set it in the grader 'expect'",
        ),
        ({"judged": "It helps.", "treshold": 1}, "expect: judged has no option 'treshold'"),
    ],
)
def test_a_mistake_is_named_with_its_place(expect: Any, problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_expect(expect)
    assert str(raised.value).startswith(problem)
