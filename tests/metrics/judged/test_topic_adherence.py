from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.metrics.judged.topic_adherence import Mode, TopicAdherenceMetric, adherence
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "user", "content": "What does the giro cost?"},
    {"role": "assistant", "content": "5 euros a month."},
    {"role": "user", "content": "Write me a poem about {{ goal }}."},
    {"role": "assistant", "content": "Roses are red."},
    {"role": "user", "content": "And the savings account?"},
    {"role": "assistant", "content": "I cannot help with that."},
]


def request(turn: int, on_topic: bool, answered: bool, *evidence: str) -> dict[str, Any]:
    seen = {"turn": turn, "request": "something", "evidence": list(evidence)}
    return {**seen, "on_topic": on_topic, "answered": answered}


def reply(*requests: dict[str, Any]) -> dict[str, Any]:
    return {"requests": list(requests), "reasoning": "Looked up.", "confidence": 0.9}


RIGHT, WRONG = request(1, True, True, "does the giro cost"), request(2, False, True, "Roses are red")
LEFT, REFUSED = request(3, True, False, "cannot help"), request(2, False, False, "cannot help")


def metric(*replies: dict[str, Any], **options: Any) -> TopicAdherenceMetric:
    return TopicAdherenceMetric(ScriptedModel(replies), topics=["accounts", "cards"], **options)


@pytest.mark.parametrize(("mode", "score"), [("f1", 0.8), ("precision", 2 / 3), ("recall", 1.0)])
def test_the_score_is_what_the_mode_says(mode: Mode, score: float) -> None:
    again = request(3, True, True, "savings account")
    result = metric(reply(RIGHT, WRONG, again), mode=mode).evaluate(CONVERSATION)
    assert (result.score, result.passed) == (pytest.approx(score), score >= 0.7)
    assert (result.details["precision"], result.details["recall"]) == (pytest.approx(2 / 3), 1.0)
    assert [(one.turn, one.verified) for one in result.evidence] == [(0, True), (1, True), (2, True)]


def test_answering_off_topic_and_refusing_on_topic_both_cost() -> None:
    result = metric(reply(RIGHT, WRONG, LEFT)).evaluate(CONVERSATION)
    assert (result.score, result.passed) == (0.5, False)


def test_refusing_everything_that_is_off_topic_is_perfect() -> None:
    assert metric(reply(REFUSED)).evaluate(CONVERSATION).score == 1.0


def test_a_share_of_nothing_is_skipped() -> None:
    result = metric(reply(LEFT), mode="precision").evaluate(CONVERSATION)
    assert (result.state, result.reasoning) == ("skipped", "nothing was answered")
    result = metric(reply(WRONG), mode="recall").evaluate(CONVERSATION)
    assert (result.state, result.reasoning) == ("skipped", "no request is on topic")
    assert metric(reply()).evaluate(CONVERSATION).state == "skipped"


def test_the_judge_reads_topics_and_conversation_as_text() -> None:
    model = ScriptedModel([reply(RIGHT)])
    TopicAdherenceMetric(model).evaluate(CONVERSATION, goal="a secret", context={"topics": ["accounts {{ goal }}"]})
    asked = model.requests[0].messages[1].text
    assert 'Topics: ["accounts {{ goal }}"]' in asked
    assert "a poem about {{ goal }}." in asked
    assert "a secret" not in asked


def test_without_topics_nobody_is_asked() -> None:
    model = ScriptedModel([])
    assert TopicAdherenceMetric(model).evaluate(CONVERSATION).state == "skipped"
    assert model.requests == []


@pytest.mark.parametrize(
    "wrong",
    [
        reply(request(0, True, True)),
        reply(request(4, True, True)),
        reply({**RIGHT, "on_topic": "yes"}),
        reply({"turn": 0}),
        {"requests": [RIGHT]},
    ],
    ids=["turn 0", "no such turn", "no bool", "half a request", "incomplete"],
)
def test_a_verdict_out_of_shape_is_an_error(wrong: dict[str, Any]) -> None:
    assert metric(wrong).evaluate(CONVERSATION).state == "error"


def test_pieces_are_counted_together() -> None:
    result = metric(reply(RIGHT), reply(WRONG), reply(LEFT), scope="turn").evaluate(CONVERSATION)
    verdicts = ["answered", "off topic, answered", "not answered"]
    assert (result.score, [finding.verdict for finding in result.findings]) == (0.5, verdicts)
    assert [finding.turn for finding in result.findings] == [0, 1, 2]


def test_topics_and_mode_are_checked() -> None:
    with pytest.raises(UsageError, match="list of at least one"):
        TopicAdherenceMetric(topics="billing")
    with pytest.raises(UsageError, match="is not f1"):
        TopicAdherenceMetric(topics=["billing"], mode="f2")  # pyright: ignore[reportArgumentType]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_f1_is_1_exactly_without_a_mistake_and_the_harmonic_mean_else(requests: list[tuple[bool, bool]]) -> None:
    shares = adherence(requests)
    precision, recall, f1 = shares["precision"], shares["recall"], shares["f1"]
    assert f1 is not None
    assert 0 <= f1 <= 1
    assert (f1 == 1) == all(on_topic == answered for on_topic, answered in requests)
    if precision and recall:
        assert f1 == pytest.approx(2 * precision * recall / (precision + recall))
