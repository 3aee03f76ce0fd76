"""`first_failure`: two steps, each found in the conversation down to its message."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.metrics.judged.first_failure import FailedStep, FirstFailureMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.testing import ScriptedModel

ERROR = "Error: the order is locked"
CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "Ask for a yes before you cancel."},
    {"role": "user", "content": "Please cancel order 7."},
    {"role": "assistant", "content": "Shall I cancel order 7?"},
    {"role": "user", "content": "Yes."},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "look_up", "arguments": {"id": 7}}]},
    {"role": "tool", "tool_call_id": "a", "content": "order 7 is open"},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "b", "name": "cancel", "arguments": {"id": 8}}]},
    {"role": "tool", "tool_call_id": "b", "content": ERROR},
    {"role": "assistant", "content": "Order 7 is cancelled."},
    {"role": "user", "content": "Order 7 is cancelled. Great, thanks!"},
]


def step(evidence: str, whose: str = "assistant", kind: str = "other") -> dict[str, Any]:
    return {"evidence": evidence, "what": "It goes wrong.", "whose": whose, "kind": kind}


def reply(
    root: dict[str, Any] | None = None, no_return: dict[str, Any] | None = None, **more: object
) -> dict[str, Any]:
    return {"reasoning": "So it went.", "root": root, "no_return": no_return, "confidence": 0.9, **more}


def judged(*answers: dict[str, Any], **options: Any) -> MetricResult:
    return FirstFailureMetric(ScriptedModel(list(answers)), **options).evaluate(CONVERSATION, goal="cancel order 7")


def places(result: MetricResult) -> list[tuple[str, int | None, int]]:
    return [(finding.verdict, finding.turn, finding.data["message"]) for finding in result.findings]


def test_both_steps_are_found_with_whose_mistake_and_of_what_kind() -> None:
    answer = reply(step("c1", "assistant", "wrong_argument"), step("is cancelled", "assistant", "false_statement"))
    result = judged(answer)
    assert (result.name, result.score, result.passed, result.value) == ("first_failure", False, False, 0.0)
    assert (result.reason, result.confidence) == ("So it went.", 0.9)
    assert places(result) == [("root", 1, 6), ("point_of_no_return", 1, 8)]
    root, last = result.findings
    assert (root.kind, root.state, root.blame) == ("failed_step", "fail", "target")
    assert root.what == "assistant, wrong argument: It goes wrong."
    assert root.data == {"message": 6, "whose": "assistant", "kind": "wrong_argument"}
    assert last.data["kind"] == "false_statement"
    assert [one.verified for one in result.evidence] == [True, True]


def test_nothing_failed_is_an_answer_and_passes() -> None:
    result = judged(reply())
    assert (result.score, result.passed, result.findings) == (True, True, ())


@pytest.mark.parametrize(
    ("evidence", "whose", "turn", "message"),
    [
        ("c1", "assistant", 1, 6),
        ("c1", "tool", 1, 7),
        (ERROR, "assistant", 1, 7),
        ("Order 7 is cancelled.", "assistant", 1, 8),
        ("Order 7 is cancelled.", "user", 2, 9),
        ("order 7 is CANCELLED", "user", 2, 9),
        ("Order 7 is cancelled.", "environment", 1, 8),
        ('call c1 cancel {"id": 8}', "assistant", 1, 6),
        ("Ask for a yes", "environment", None, 0),
    ],
)
def test_of_the_places_of_a_quote_that_of_the_one_who_made_the_mistake_counts(
    evidence: str, whose: str, turn: int | None, message: int
) -> None:
    result = judged(reply(step(evidence, whose), step(evidence, whose)))
    assert places(result) == [("root", turn, message), ("point_of_no_return", turn, message)]


def test_the_point_of_no_return_is_not_looked_for_before_the_root_if_it_stands_after_it() -> None:
    result = judged(reply(step("c0"), step("order 7", "assistant")))
    assert places(result) == [("root", 1, 4), ("point_of_no_return", 1, 8)]


def test_a_step_that_is_not_in_the_conversation_is_asked_for_once_more() -> None:
    model = ScriptedModel([reply(step("c1"), step("never said")), reply(step("c1"), step(ERROR, "tool"))])
    result = FirstFailureMetric(model).evaluate(CONVERSATION)
    assert places(result) == [("root", 1, 6), ("point_of_no_return", 1, 7)]
    assert len(model.requests) == 2


def test_a_root_that_is_nowhere_is_an_error_of_the_judge_and_no_finding() -> None:
    result = judged(reply(step("never said"), step("c1")), reply(step("never said"), step("c1")))
    assert (result.state, result.findings) == ("error", ())
    assert result.failure is not None
    assert (result.failure.blame, result.failure.kind) == ("judge", "evidence")
    assert "'never said'" in result.failure.message


def test_a_point_of_no_return_that_is_nowhere_is_no_finding_and_is_shown_as_not_found() -> None:
    result = judged(reply(step("c1"), step("never said")), reply(step("c1"), step("never said")))
    assert places(result) == [("root", 1, 6)]
    assert [(one.text, one.verified) for one in result.other_evidence] == [("never said", False)]


def test_in_pieces_the_earliest_root_decides() -> None:
    answers = [reply(), reply(step(ERROR, "tool"), step(ERROR, "tool")), reply(step("thanks", "user"), step("thanks"))]
    result = judged(*answers, tokens=1, overlap=0)
    assert places(result) == [("root", 1, 7), ("point_of_no_return", 1, 7)]
    assert [piece["score"] for piece in result.details["pieces"]] == [True, False, False]
    assert judged(reply(), reply(), reply(), tokens=1, overlap=0).passed is True


def test_a_piece_with_a_root_that_is_nowhere_makes_the_whole_an_error() -> None:
    lost = reply(step("never said"), step("c1"))
    assert judged(lost, reply(), reply(step("c1"), step("c1")), lost, tokens=1, overlap=0).state == "error"


def test_silence_fails_and_no_judge_is_asked() -> None:
    model = ScriptedModel([])
    result = FirstFailureMetric(model).evaluate([{"role": "user", "content": "Hello?"}])
    assert (result.score, result.passed, model.requests) == (False, False, [])
    assert "says and does nothing" in str(result.reason)


def test_what_is_known_stands_in_the_task_after_the_conversation() -> None:
    model = ScriptedModel([reply(), reply()])
    metric = FirstFailureMetric(model)
    metric.evaluate(CONVERSATION)
    metric.evaluate(CONVERSATION, goal="cancel {{ it }}", reference="one order less")
    bare, full = (request.messages[-1].text for request in model.requests)
    task = bare.partition("\nTask:")[2]
    assert len(task) / 4 < 260
    assert "What the user wants" not in task
    assert 'What the user wants: "cancel {{ it }}"\nReference outcome: "one order less"\n' in full.partition("Task:")[2]
    assert bare.partition("\nTask:")[0] == full.partition("\nTask:")[0]


def test_each_kind_but_other_is_explained_in_the_task() -> None:
    kinds = FailedStep.model_json_schema()["properties"]["kind"]["enum"]
    task = FirstFailureMetric(ScriptedModel([])).prompt.text
    assert [kind for kind in kinds if f"\n{kind}: " not in task] == ["other"]


@pytest.mark.parametrize(
    "wrong",
    [
        reply(step("c1"), None),
        reply(None, step("c1")),
        reply(step("c1", "the bot"), step("c1")),
        reply(step("c1", kind="oops"), step("c1")),
        reply(confidence=90),
        {"root": None},
    ],
    ids=["no point of no return", "no root", "whose", "kind", "confidence", "incomplete"],
)
def test_a_verdict_out_of_shape_is_an_error(wrong: dict[str, Any]) -> None:
    assert judged(wrong, wrong).state == "error"
