from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.metrics.judged.guidelines import GuidelinesMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "user", "content": "Hi."},
    {"role": "assistant", "content": "Good day to you."},
    {"role": "user", "content": "{{ items }} What does it cost?"},
    {"role": "assistant", "content": "None of your business."},
]
RULES = ["Greet the user.", "Be\npolite."]


def reply(*answers: str, evidence: str = "None of your business") -> dict[str, Any]:
    checks = [{"item": f"rule_{i}", "evidence": [evidence], "answer": answer} for i, answer in enumerate(answers, 1)]
    return {"checks": checks, "reasoning": "Read.", "confidence": 0.8}


def verdicts(result: MetricResult) -> dict[str, str]:
    return {finding.data["item"]: finding.verdict for finding in result.findings}


@pytest.mark.parametrize(
    ("answers", "score", "passed"),
    [
        (("yes", "yes"), 1.0, True),
        (("yes", "not_applicable"), 1.0, True),
        (("yes", "partly"), 0.75, False),
        (("yes", "no"), 0.5, False),
    ],
)
def test_it_passes_when_all_rules_that_apply_are_kept(answers: tuple[str, str], score: float, passed: bool) -> None:
    result = GuidelinesMetric(ScriptedModel([reply(*answers)]), guidelines=RULES).evaluate(CONVERSATION)
    assert (result.score, result.passed) == (score, passed)
    assert verdicts(result) == dict(zip(("rule_1", "rule_2"), answers, strict=True))
    assert [finding.what for finding in result.findings] == RULES
    assert [(one.turn, one.verified) for one in result.evidence] == [(1, True)]


def test_the_judge_reads_each_rule_by_its_name() -> None:
    model = ScriptedModel([reply("yes", "yes")])
    GuidelinesMetric(model, guidelines=RULES).evaluate(CONVERSATION)
    asked = model.requests[0].messages[1].text
    assert "- rule_1: Greet the user.\n- rule_2: Be polite.\n" in asked
    assert '"{{ items }} What does it cost?"' in asked


def test_rules_may_have_names_of_your_own() -> None:
    check = {"item": "tone", "evidence": ["Good day"], "answer": "yes"}
    model = ScriptedModel([{"checks": [check], "reasoning": "Read.", "confidence": 1.0}])
    result = GuidelinesMetric(model, guidelines={"tone": "Be polite."}).evaluate(CONVERSATION)
    assert verdicts(result) == {"tone": "yes"}
    assert "- tone: Be polite." in model.requests[0].messages[1].text


@pytest.mark.parametrize("wrong", [reply("yes"), reply("yes", "no", "no"), reply("yes", "maybe")])
def test_a_verdict_that_leaves_a_rule_out_or_makes_one_up_is_an_error(wrong: dict[str, Any]) -> None:
    result = GuidelinesMetric(ScriptedModel([wrong]), guidelines=RULES).evaluate(CONVERSATION)
    assert result.state == "error"


def test_where_no_rule_applies_it_is_skipped() -> None:
    model = ScriptedModel([reply("not_applicable", "not_applicable")])
    assert GuidelinesMetric(model, guidelines=RULES).evaluate(CONVERSATION).state == "skipped"


def test_a_rule_that_is_broken_in_one_piece_is_broken() -> None:
    model = ScriptedModel([reply("yes", "yes", evidence="Good day"), reply("not_applicable", "no")])
    result = GuidelinesMetric(model, guidelines=RULES, scope="turn").evaluate(CONVERSATION)
    assert (result.score, result.passed) == (0.5, False)
    assert verdicts(result) == {"rule_1": "yes", "rule_2": "no"}


@pytest.mark.parametrize("rules", ["Be polite.", [], ["Be polite.", " "]])
def test_guidelines_are_a_list_of_rules(rules: Any) -> None:
    with pytest.raises(UsageError, match="guidelines"):
        GuidelinesMetric(guidelines=rules)
