from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings import CONVERSATIONS, needs_recordings
from vivavoce.files.rows import read_rows
from vivavoce.penelope.checks.voice import MAX_CHARS, VoiceCheck

from ..states import state

PLACEHOLDER = "I have the reservation ID: [provide reservation ID]. Please go ahead with the cancellation."
CHECK = VoiceCheck()


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ("Thanks. The test goal is done.", "test goal"),
        ("For this test case I need a lamp.", "this test case"),
        ("Is the System  Under\nTest there?", "system under test"),
        ("As a tester, I want to know.", "as a tester"),
        ("I will now evaluate your responses.", "evaluate your responses"),
        ("All criteria have been met, bye.", "criteria have been met"),
        ("The goal has been achieved.", "the goal has been achieved"),
        ("I’m Penelope.", "penelope"),
        ("send_message_to_target: hello", "send_message_to_target"),
        ("My persona wants a refund.", "my persona"),
        ("This is turn 3 of 10.", "turn 3 of 10"),
        ("Thank you! [END]", "[end]"),
        ("Thank you! ###STOP###", "###stop###"),
        ("User: hello", "User:"),
        ("**Customer**: hello", "**Customer**:"),
        ("Here is my next message: hello", "here is my next message"),
        ("My name is [insert name].", "[insert name]"),
        (PLACEHOLDER, "[provide reservation id]"),
        ("As an AI language model, I cannot buy lamps.", "as an ai language model"),
        ("<thinking>he is polite</thinking> Hello", "<thinking"),
    ],
)
def test_what_gives_a_tester_away_is_named(message: str, what: str) -> None:
    assert (CHECK.objection(message, state()) or "").startswith(f"'{what}' is nothing")


@pytest.mark.parametrize(
    "message",
    [
        "I need a covid test before the flight.",
        "My test results came back.",
        "Can I take it for a test drive?",
        "My goal is to save money.",
        "My savings goal was reached in May.",
        "Help me evaluate my options.",
        "The turn signal of my car is broken. In turn 2 you took my knight.",
        "I log in with user: admin",
        "I work as a QA tester. I'm an AI engineer.",
        "Which persona is on the cover?",
        "What are the evaluation criteria for the grant?",
        "The assistant in your shop was rude to other customers.",
        "Is 0 within [-1, 1]? See [my record](http://example.com).",
    ],
)
def test_ordinary_words_pass(message: str) -> None:
    assert CHECK.objection(message, state()) is None


def test_what_the_target_said_first_may_be_taken_up() -> None:
    assert CHECK.objection("What is a test scenario?", state(("Hi.", "I write any Test Scenario."))) is None
    assert CHECK.objection("What is a test plan?", state(("Hi.", "I write any Test Scenario."))) is None
    assert CHECK.objection("Is this test plan good?", state(("Hi.", "I write any Test Scenario."))) is not None


def test_what_the_scenario_or_the_facts_say_may_be_said() -> None:
    message = "Write a test scenario for me."
    assert CHECK.objection(message, state(scenario="The user needs a test scenario for a lamp.")) is None
    assert CHECK.objection(message, state(facts={"wish": "a test scenario"})) is None
    assert CHECK.objection("Write a test scenario for [insert name].", state(facts={"wish": "a test scenario"}))


GOAL = "Find out whether the shop takes back a lamp that was bought more than thirty days ago"


@pytest.mark.parametrize("context", [{"goal": GOAL}, {"instructions": GOAL}])
def test_the_goal_and_the_instructions_are_not_copied(context: dict[str, Any]) -> None:
    about = state(**context)
    assert CHECK.objection(f"Please, {GOAL.upper()}!", about) is not None
    assert CHECK.objection("I bought a lamp more than thirty days ago. Does the shop take it back?", about) is None


def test_a_short_goal_is_copied_only_as_a_whole() -> None:
    about = state(goal="the user wants to know how to return a lamp")
    assert CHECK.objection("The user wants to know how to return a lamp.", about) is not None
    assert CHECK.objection("Hello. He wants to know how to return a lamp.", about) is None
    assert CHECK.objection("How to return a lamp", state(goal="How to return a lamp")) is None


def test_what_the_instructions_quote_is_there_to_be_said() -> None:
    quoted = f'Begin with "{GOAL}" and go on as you like, be polite, and in the end thank them'
    assert CHECK.objection(GOAL, state(instructions=quoted)) is None


def test_a_message_has_words_and_not_too_many() -> None:
    assert CHECK.objection(" \n", state()) == "the message is empty; write what the user says next"
    assert CHECK.objection("a" * MAX_CHARS, state()) is None
    assert "20001 characters" in (CHECK.objection("a" * (MAX_CHARS + 1), state()) or "")


@given(st.text())
def test_any_message_is_judged_alike_twice(message: str) -> None:
    assert CHECK.objection(message, state()) == CHECK.objection(message, state())


def test_hostile_messages_of_full_length_are_judged_at_once() -> None:
    for piece in ("test ", "[insert ", "### ", "\n", "as a ", '"', "<|"):
        CHECK.objection((piece * MAX_CHARS)[:MAX_CHARS], state(goal=piece * 9))


@needs_recordings
def test_what_users_write_passes_and_what_gave_a_simulated_one_away_does_not() -> None:
    """Users of the airline are played by a language model, which ends conversations with ###STOP###."""
    texts: list[str] = []
    for path in CONVERSATIONS:
        rows = (row for _, row in read_rows(path))
        messages = (m["content"] for row in rows for m in row["messages"] if m["role"] == "user")
        texts += [text for text in messages if text.strip() and CHECK.objection(text, state())]
    stops = [text for text in texts if "###STOP###" in text]
    assert len(stops) == 147
    assert [text for text in texts if text not in stops] == [PLACEHOLDER]
