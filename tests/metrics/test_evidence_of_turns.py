"""What is judged about one turn rests on that turn and on what came before, never on later turns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.grading.expect import ExpectMetric
from vivavoce.messages import read_messages
from vivavoce.metrics import AspectCritic, evaluate_conversation
from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.transcript import Shown, transcript
from vivavoce.metrics.types import metric_input
from vivavoce.samples.sample import Sample
from vivavoce.testing import ScriptedModel

TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Good morning."},
    {"role": "user", "content": "My refund?"},
    {"role": "assistant", "tool_calls": [{"id": "1", "name": "refund", "arguments": {}}]},
    {"role": "tool", "tool_call_id": "1", "content": "35 euros paid"},
    {"role": "assistant", "content": "I paid 35 euros back."},
]
QUOTES = {"Good morning.": 0, "My refund?": 1, "c0": 1, "35 euros paid": 1, "I paid 35 euros back.": 1}


def _judge(quote: str) -> ScriptedModel:
    return ScriptedModel(lambda _: {"reasoning": "r", "evidence": [quote], "verdict": True, "confidence": 1.0})


@pytest.mark.parametrize("quote", QUOTES)
def test_a_metric_of_turns_takes_no_evidence_from_later_turns(quote: str) -> None:
    metric = AspectCritic(_judge(quote), definition="It helps.", scope="turn")
    result = metric.evaluate(TALK)
    assert result.state == ("scored" if QUOTES[quote] == 0 else "error")


@pytest.mark.parametrize("quote", QUOTES)
@pytest.mark.parametrize("turn", [0, 1])
async def test_an_assertion_about_a_turn_takes_no_evidence_from_later_turns(quote: str, turn: int) -> None:
    expect: list[Any] = [None, None]
    expect[turn] = {"judged": "It helps."}
    sample = Sample.model_validate({"id": "a", "messages": TALK, "expect": expect})
    result = await ExpectMetric(_judge(quote)).measured(metric_input(sample, read_messages(TALK)))
    assert result.state == ("scored" if QUOTES[quote] <= turn else "error")


@given(st.sampled_from(list(QUOTES)), st.integers(0, 3), st.booleans())
def test_a_limited_checker_finds_what_the_whole_one_finds_up_to_a_turn(quote: str, last: int, read: bool) -> None:
    messages = read_messages(TALK)
    checker = Checker(messages, transcript(messages, Shown()))
    if read:
        checker.look_up(quote)
    found = checker.up_to(last).look_up(quote)
    assert found.verified is (QUOTES[quote] < last)
    assert [place.turn for place in checker.up_to(last).places(quote)] == [
        place.turn for place in checker.places(quote) if place.turn is not None and place.turn < last
    ]
    assert checker.look_up(quote).verified


def test_the_whole_conversation_takes_any_of_it() -> None:
    for quote in QUOTES:
        metric = AspectCritic(_judge(quote), definition="It helps.")
        assert evaluate_conversation(TALK, [metric])["aspect_critic"].state == "scored"
