from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from vivavoce.metrics.judged.contract import ContractMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.models.model import Request
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "user", "content": "Cancel order 7, please."},
    {"role": "assistant", "content": "Shall I cancel order 7?"},
    {"role": "user", "content": "Yes."},
    {"role": "assistant", "content": "Done: order 7 is cancelled."},
]
MUST, MUST_NOT = ("ask before it cancels",), ("ask for a card number",)


def answer(*happened: str, evidence: str = "Shall I cancel order 7?") -> dict[str, Any]:
    rules = [
        {"rule": number, "evidence": [evidence] if one == "yes" else [], "happened": one}
        for number, one in enumerate(happened, 1)
    ]
    return {"rules": rules, "reasoning": "So it is.", "confidence": 0.9}


def judged(*replies: dict[str, Any], must: Sequence[str] = MUST, must_not: Sequence[str] = MUST_NOT) -> MetricResult:
    return ContractMetric(ScriptedModel(list(replies))).evaluate(CONVERSATION, must=must, must_not=must_not)


@pytest.mark.parametrize(
    ("happened", "passed", "states"),
    [
        (("yes", "no"), True, ["pass", "pass"]),
        (("yes", "no_occasion"), True, ["pass", "pass"]),
        (("no_occasion", "no"), True, ["skip", "pass"]),
        (("no", "no"), False, ["fail", "pass"]),
        (("yes", "yes"), False, ["pass", "fail"]),
    ],
)
def test_code_says_what_an_answer_means_for_each_kind_of_rule(
    happened: tuple[str, str], passed: bool, states: list[str]
) -> None:
    result = judged(answer(*happened))
    assert (result.score, result.passed) == (passed, passed)
    assert [finding.state for finding in result.findings] == states
    assert [(finding.kind, finding.what) for finding in result.findings] == [
        ("criterion", MUST[0]),
        ("prohibition", MUST_NOT[0]),
    ]


def test_answers_are_read_by_their_numbers_whatever_their_order() -> None:
    reply = answer("yes", "no")
    reply["rules"].reverse()
    assert [finding.verdict for finding in judged(reply).findings] == ["kept", "not done"]


@pytest.mark.parametrize(
    "wrong",
    [
        answer("yes"),
        answer("yes", "no", "no"),
        answer("yes", "maybe"),
        {**answer("yes", "no"), "rules": [answer("yes")["rules"][0]] * 2},
        {**answer("yes", "no"), "score": 1},
    ],
)
def test_an_answer_of_another_shape_is_an_error(wrong: dict[str, Any]) -> None:
    result = judged(wrong)
    assert (result.state, result.passed) == ("error", None)


@pytest.mark.parametrize(
    "invented", [answer("yes", "yes", evidence="Your card number?"), answer("yes", "yes", evidence="")]
)
def test_a_rule_that_is_broken_on_words_nobody_said_is_asked_about_again_and_then_an_error(
    invented: dict[str, Any],
) -> None:
    result = judged(invented, invented)
    assert result.state == "error"
    assert result.failure is not None
    assert (result.failure.blame, result.failure.kind) == ("judge", "evidence")
    assert "the verdict depends on" in result.failure.message
    assert judged(invented, answer("yes", "no")).passed is True


def test_an_invented_quote_that_changes_nothing_is_shown_and_the_score_stands() -> None:
    invented = {**answer("no", "no")}
    invented["rules"][0] = {"rule": 1, "evidence": ["May I?"], "happened": "yes"}
    invented["rules"].append(invented["rules"].pop(0))
    broken = answer("no", "yes")
    mixed = {**broken, "rules": [invented["rules"][-1], broken["rules"][1]]}
    result = judged(mixed, mixed)
    assert (result.passed, result.findings[0].evidence[0].verified) == (False, False)


def test_where_no_rule_had_an_occasion_there_is_no_verdict() -> None:
    result = judged(answer("no_occasion"), must_not=())
    assert (result.state, result.passed) == ("skipped", None)
    assert result.reason == "there was no occasion for any of the rules"
    assert [finding.state for finding in result.findings] == ["skip"]


def test_without_rules_it_is_skipped_and_silence_keeps_what_must_not_happen() -> None:
    assert judged(must=(), must_not=()).reason == "needs must or must_not, and neither is given"
    silent = [{"role": "user", "content": "Hello?"}]
    assert ContractMetric(ScriptedModel([])).evaluate(silent, must_not=MUST_NOT).passed is True
    assert ContractMetric(ScriptedModel([])).evaluate(silent, must=MUST).passed is False


def test_in_pieces_what_happened_once_happened() -> None:
    replies = [answer("yes", "no"), answer("no", "yes", evidence="Done: order 7 is cancelled.")]
    judge = ContractMetric(ScriptedModel(replies), tokens=20, overlap=0)
    result = judge.evaluate(CONVERSATION, must=MUST, must_not=MUST_NOT)
    assert len(result.extra["pieces"]) == 2
    assert [finding.state for finding in result.findings] == ["pass", "fail"]
    assert [finding.data["happened"] for finding in result.findings] == ["yes", "yes"]


@pytest.mark.parametrize(("must", "must_not"), [(MUST, ()), ((), MUST_NOT)])
def test_in_pieces_a_true_quote_for_one_answer_does_not_support_another(
    must: Sequence[str], must_not: Sequence[str]
) -> None:
    def reply(request: Request) -> dict[str, Any]:
        if "Done:" not in request.messages[-1].text:
            return answer("yes", evidence="Your card number?")
        rule = {"rule": 1, "evidence": ["Done: order 7 is cancelled."], "happened": "no"}
        return {**answer("no"), "rules": [rule]}

    judge = ContractMetric(ScriptedModel(reply), tokens=20, overlap=0)
    result = judge.evaluate(CONVERSATION, must=must, must_not=must_not)
    assert (result.state, result.failure and result.failure.kind) == ("error", "evidence")


def test_the_rules_are_numbered_and_quoted() -> None:
    model = ScriptedModel([answer("yes", "no")])
    ContractMetric(model).evaluate(CONVERSATION, must=('say "hi"\n9. pass',), must_not=MUST_NOT)
    asked = model.requests[0].messages[-1].text
    assert '1. "say \\"hi\\"\\n9. pass"\n2. "ask for a card number"\n' in asked
