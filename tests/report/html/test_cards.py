"""What a notebook shows of conversations, samples, scores, reports and comparisons."""

from __future__ import annotations

from typing import Any

import pytest

from report.cases import TIMEOUT, capitals, keep, outcome
from server.pages.cases import Elements
from vivavoce import ConversationHistory, Sample
from vivavoce.messages import AIMessage, HumanMessage, ToolCall
from vivavoce.metrics import MetricResult, evaluate_conversation
from vivavoce.records.score import Finding, Score, failed
from vivavoce.report.compare import compare
from vivavoce.report.html.notebook import LONGEST, MOST
from vivavoce.store.store import Store

HOSTILE = "<script>alert(1)</script>\u202e<img src=x onerror=y>"


def shown(thing: Any) -> Elements:
    """Return what a notebook shows, in which no text became an element."""
    html = thing._repr_html_()
    assert "<script" not in html
    assert "<img" not in html
    assert "\u202e" not in html
    return Elements(html)


def test_a_conversation_shows_who_said_and_called_what() -> None:
    talk = ConversationHistory(
        messages=[
            HumanMessage(content=HOSTILE),
            AIMessage(content=None, tool_calls=[ToolCall(name="book", args={"x": HOSTILE})]),
        ],
        conversation_id=HOSTILE,
    )
    text = shown(talk).text
    assert "user <script>alert(1)</script>" in text
    assert "assistant → book(" in text
    assert "2 messages" in text


def test_long_things_are_cut_and_say_so() -> None:
    said = [HumanMessage(content="x" * (LONGEST + 5))] * (MOST + 7)
    text = shown(ConversationHistory(messages=list(said))).text
    assert "… (5 more characters)" in text
    assert "… and 7 more" in text


def test_a_sample_shows_the_fields_that_it_holds() -> None:
    text = shown(Sample(id="refund", input=[HOSTILE, "b"], tags=["<b>"], goal="EUR 5")).text
    assert "goal EUR 5" in text
    assert 'tags ["<b>"]' in text
    assert "persona" not in text
    assert "assistant Hi" in shown(Sample(id="kept", messages=[AIMessage(content="Hi")])).text


def test_a_score_shows_its_reason_and_what_it_rests_on() -> None:
    finding = Finding(kind="claim", what=HOSTILE, verdict="major", state="fail", turn=1)
    text = shown(Score(name="safe", value=0.25, passed=False, reason=HOSTILE, findings=(finding,))).text
    assert "safe: 0.250 · failed" in text
    assert "major turn 2" in text
    assert "turn 1 1.000 passed turn 0" in shown(capitals()).text
    assert shown(failed(TIMEOUT)).text.count("no answer within 5 s") == 1
    assert "score: good" in shown(MetricResult(score="good", details={"is_successful": True})).text


def test_a_report_shows_each_metric() -> None:
    talk = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "I cannot help with that."}]
    assert "refusal 1.000 failed" in shown(evaluate_conversation(talk, "refusal")).text


def test_an_outcome_shows_its_scores_and_its_turns() -> None:
    text = shown(outcome("one", {"exact": 0.0}, said=["Paris", HOSTILE], failure=TIMEOUT)).text
    assert "exact 0.000 failed why" in text
    assert "turn 1 user Hi assistant Paris turn 2" in text
    assert "no answer within 5 s" in text
    assert "2 turns" in shown(outcome(said=["a", "b"]).attempt.trajectory).text


@pytest.fixture
def store(tmp_path: Any) -> Any:
    with Store.open(tmp_path / "kept.db") as store:
        yield store


async def test_a_comparison_shows_what_fails_now(store: Store) -> None:
    before = await keep(store, [outcome("a", {"exact": 1.0}), outcome("b", {"exact": 0.0})], "before")
    after = await keep(store, [outcome("a", {"exact": 0.0}), outcome("b", {"exact": 0.0})], "after")
    text = shown(compare(store, before.grading, after.grading)).text
    assert "after after before" in text
    assert "exact bot 2 0.500 0.000 -0.500" in text
    assert "exact a 1.00 → 0.00" in text
