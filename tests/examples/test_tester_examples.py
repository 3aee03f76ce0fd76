"""The examples of the tester are run as their reader would run them, with a model on this machine for a paid one."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forked import program
from vivavoce.messages import ToolCall
from vivavoce.testing import LoopbackServer

EXAMPLES = Path(__file__).parents[2] / "examples"
TESTER = EXAMPLES / "tester"

SCRIPTS = {
    "two kinds": ["What does car insurance cost?", "And for my home?"],
    "still knows": ["Hi, I am Ada.", "Tell me about car insurance.", "Do you know my name?"],
    "cancel": ["Hello", "How do I get rid of my contract?", "Why is that?"],
    "Two pizzas": ["One margherita and one diavola.", "To Mill Lane 3."],
    "at the end": ["What is my name?"],
    "are discounts": ["Is there a discount?", "I do not believe that there is no discount."],
}
"""What the user says, by words of the goal."""

RULE = re.compile(r'^(\d+)\. "(.*)"$', re.MULTILINE)
REACHED = ("EUR 12 a month", "Your name is Ada", "will be at Mill Lane 3", "There are no discounts")
"""What the assistant says when a goal is reached."""


def model(body: dict[str, Any]) -> dict[str, Any] | list[ToolCall]:
    """Answer as the user, who is offered tools, or as a judge, who is asked for a shape."""
    return speak(body) if "tools" in body else judge(body)


def speak(body: dict[str, Any]) -> list[ToolCall]:
    """Say the next line, after a look at the menu where there is one."""
    brief = body["messages"][0]["content"]
    lines = next(script for words, script in SCRIPTS.items() if words in brief)
    called = [message["name"] for message in body["messages"] if message["role"] == "tool"]
    offered = [tool["function"]["name"] for tool in body["tools"]]
    if "price_on_the_menu" in offered and "price_on_the_menu" not in called:
        return [ToolCall(name="price_on_the_menu", args={"pizza": "diavola", "reasoning": "to know what is right"})]
    said = called.count("send_message_to_target") - ("Hello, I am Ada." in json.dumps(body["messages"][1:]))
    return [ToolCall(name="send_message_to_target", args={"message": lines[said], "reasoning": "as planned"})]


def judge(body: dict[str, Any]) -> dict[str, Any]:
    """Judge by what the assistant said."""
    asked = body["messages"][-1]["content"]
    shape = body["response_format"]["json_schema"]["schema"]["properties"]
    answer: dict[str, Any] = {"reasoning": "As it was said.", "confidence": 0.9}
    if "criteria" in shape:
        return answer | found(asked, shape["criteria"].get("minItems", 1))
    if "rules" in shape:
        return answer | {"rules": [followed(int(number), rule) for number, rule in RULE.findall(asked)]}
    if "checks" in shape:
        items = re.findall(r'^- "(\w+)":', asked, re.MULTILINE)
        return answer | {"checks": [{"item": item, "evidence": [], "answer": "yes"} for item in items]}
    if "faults" in shape:
        return answer | {"faults": [], "obstacle": "none", "obstacle_evidence": []}
    if "asked" in shape:
        return answer | {"asked": "no", "evidence": []}
    rude = {"what": "an insult", "evidence": ["Go away, you fool."], "severity": "critical"}
    return answer | {"violations": [rude] if "you fool" in asked else []}


def followed(number: int, rule: str) -> dict[str, Any]:
    """Say that all was done that the rules of the examples want, and nothing that they forbid."""
    wanted = {"name the total price before the order is placed": "that is EUR", "tell the customer's name when": "Ada"}
    evidence = [words for start, words in wanted.items() if rule.startswith(start)]
    return {"rule": number, "evidence": evidence, "happened": "yes" if evidence else "no"}


def found(asked: str, criteria: int) -> dict[str, Any]:
    """Find the goal reached, or not, and say so of each criterion."""
    evidence = [words for words in REACHED if words in asked]
    criterion = {"outcome": "it was told", "kind": "fact", "evidence": evidence[:1], "met": bool(evidence)}
    return {"criteria": [criterion] * criteria, "breaches": []}


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(model) as running:
        yield running


@pytest.fixture
def name(server: LoopbackServer) -> str:
    return f"{server.base_url}#model"


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )


def python(script: str, *arguments: object) -> list[str]:
    done = run(program("python"), TESTER / script, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_the_goal_alone_stops_a_test_and_is_told_criterion_by_criterion(name: str) -> None:
    assert python("goal_only.py", name) == [
        "Goal achieved: True, after 2 turns",
        "Stopped: the goal is achieved: As it was said.",
        "- it was told: met",
    ]


def test_quality_is_measured_once_at_the_end_beside_the_goal(server: LoopbackServer, name: str) -> None:
    assert python("goal_and_quality.py", name) == [
        "Goal achieved: True",
        "  context_retention: 1.0 (passed: True)",
        "  coherence: 1.0 (passed: True)",
        "  safety: 1.0 (passed: True)",
        "Quality: 1.00",
        "All metrics passed: True",
    ]
    judged = [request for request in server.requests if "tools" not in request.body]
    assert len(judged) == 3 + 3, "the goal after each of three turns, and every quality metric once"


def test_metrics_are_watched_turn_by_turn_and_a_guard_ends_the_test(name: str) -> None:
    assert python("monitoring.py", name) == [
        "turn 1: goal_achievement not_achieved, toxicity 0.0, context_retention 1.0",
        "turn 2: goal_achievement not_achieved, toxicity 0.0, context_retention 1.0",
        "turn 3: goal_achievement not_achieved, toxicity 1.0, context_retention 1.0",
        "aborted: the guard toxicity gave 1.0: As it was said.",
    ]


def test_a_chatbot_of_ones_own_is_tested_with_a_persona_a_tool_and_rules(name: str) -> None:
    said = python("chatbot.py", name)
    assert said[0] == "success · target passed in 2 turns"
    assert '  · price_on_the_menu: {"success": true, "output": "EUR 11"}' in said
    assert "2. user: To Mill Lane 3." in said
    assert "must not: ask for the same thing twice: not done" in said


def test_a_tester_leads_the_conversations_of_a_suite(name: str) -> None:
    suite = TESTER / "suite.yaml"
    assert suite.read_text().startswith("# yaml-language-server: $schema=../suite.schema.json\n")
    done = run(program("viva"), "run", suite, VIVAVOCE_TESTER=name)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    scored = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines() if "100.0%" in line}
    assert scored == {"goal": "3", "target": "3"}
    assert "must not: promise a discount: not done" in run(program("viva"), "show", "latest", "no-discount").stdout


def test_a_suite_with_a_tester_that_is_not_named_says_how_to_name_it() -> None:
    done = run(program("viva"), "run", TESTER / "suite.yaml")
    assert (done.returncode, "VIVAVOCE_TESTER" in done.stderr) == (2, True)
