"""A target declares how many of its calls its record shows, and `viva validate` says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.records.trajectory import visible_calls
from vivavoce.suites.experiment import run_suite
from vivavoce.suites.load import load_suite
from vivavoce.suites.targets import build_targets

from .conftest import Viva


def suite_in(folder: Path, changes: dict[str, Any]) -> Path:
    (folder / "bot.py").write_text("def reply(message):\n    return 'Hello.'\n")
    suite = {
        "name": "cards",
        "driver": "penelope",
        "dataset": {"rows": [{"id": "a", "goal": "The card is blocked"}]},
        "target": {"kind": "function", "function": "bot.py:reply", **changes} if "kind" not in changes else changes,
        "tester": {"model": "http://127.0.0.1:9/v1#m"},
        "graders": {"passed": {"kind": "function", "function": "target_passed"}},
    }
    (folder / "suite.yaml").write_text(json.dumps(suite))
    return folder / "suite.yaml"


@pytest.mark.parametrize("calls", ["all", "some", "none"])
def test_validate_says_what_a_target_declares(viva: Viva, tmp_path: Path, calls: str) -> None:
    path = suite_in(tmp_path, {"calls": calls})
    assert f"bot.reply: calls: {calls}\n" in viva("validate", str(path)).stdout
    (target,) = build_targets(load_suite(path), 1)
    assert visible_calls(target) == calls


OPENAI = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "model_handles": ["m"], "name": "bot"}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "block", "parameters": {"type": "object", "properties": {}}}}
]
BY_RECORD = "all where its record has any, else none"
DEFAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "function": ({}, BY_RECORD),
    "http": ({"kind": "http", "url": "http://127.0.0.1:9/", "body": {"m": "{{ message }}"}, "name": "bot"}, BY_RECORD),
    "websocket": ({"kind": "websocket", "url": "ws://127.0.0.1:9/", "name": "bot"}, BY_RECORD),
    "openai": (OPENAI, "none"),
    "openai with tools": ({**OPENAI, "tools": TOOLS}, "all"),
    "a2a": ({"kind": "a2a", "url": "http://127.0.0.1:9/", "name": "bot"}, "none"),
    "mcp": ({"kind": "mcp", "url": "http://127.0.0.1:9/", "tool": "ask", "name": "bot"}, "none"),
    "terminal": ({"kind": "terminal", "name": "bot"}, "none"),
    "letta": ({"kind": "letta", "base_url": "http://127.0.0.1:9/", "agent_id": "agent-1", "name": "bot"}, "all"),
}


@pytest.mark.parametrize("kind", DEFAULTS)
@pytest.mark.parametrize("declared", [None, "some"])
def test_each_kind_of_target_has_a_default(viva: Viva, tmp_path: Path, kind: str, declared: str | None) -> None:
    target, default = DEFAULTS[kind]
    changes = target if declared is None else {**target, "calls": declared}
    path = suite_in(tmp_path, changes)
    name = "bot.reply" if kind == "function" else "bot"
    done = viva("validate", str(path))
    assert f"{name}: calls: {declared or f'{default} (default)'}\n" in done.stdout, done.stderr
    (built,) = build_targets(load_suite(path), 1)
    assert visible_calls(built) == (declared or (None if default == BY_RECORD else default))


def test_validate_says_the_default_and_refuses_what_is_unknown(viva: Viva, tmp_path: Path) -> None:
    done = viva("validate", str(suite_in(tmp_path, {})))
    assert "bot.reply: calls: all where its record has any, else none (default)\n" in done.stdout
    done = viva("validate", str(suite_in(tmp_path, {"calls": "most"})))
    assert (done.returncode, "calls" in done.stderr) == (2, True)


SEARCHING = """\
import json

def reply(message):
    call = {"id": "k", "type": "function", "function": {"name": "search", "arguments": json.dumps({"q": "card"})}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "k", "name": "search", "content": "how to block a card"},
        {"role": "assistant", "content": "I have blocked the card."},
    ]
"""
PEOPLE = """\
from vivavoce.messages import ToolCall
from vivavoce.testing import ScriptedModel

def speak(request):
    return [ToolCall(name="send_message_to_target", args={"message": "Please block my card."})]

def examine(request):
    if "faults" in request.schema.model_fields:
        return {"faults": [], "obstacle": "none", "obstacle_evidence": [], "reasoning": "r", "confidence": 1.0}
    hidden = "plainly says that it was done" in request.messages[-1].text
    quote = ["I have blocked the card."] if hidden else []
    blocked = {"outcome": "blocked", "kind": "change", "evidence": quote, "met": hidden}
    return {"criteria": [blocked], "breaches": [], "reasoning": "r", "confidence": 1.0}

customer, examiner = ScriptedModel(speak, "customer"), ScriptedModel(examine, "examiner")
"""


@pytest.mark.parametrize(("calls", "passed"), [("some", True), ("none", True), ("all", False), (None, False)])
def test_the_tester_and_a_metric_of_the_suite_believe_the_same(tmp_path: Path, calls: str | None, passed: bool) -> None:
    path = suite_in(tmp_path, {} if calls is None else {"calls": calls})
    (tmp_path / "bot.py").write_text(SEARCHING)
    (tmp_path / "people.py").write_text(PEOPLE)
    suite = json.loads(path.read_text())
    suite["tester"] = {"model": "people.py:customer", "judge": "people.py:examiner", "max_turns": 1}
    suite["graders"]["goal"] = {"kind": "metric", "metric": "goal_achievement", "model": "people.py:examiner"}
    path.write_text(json.dumps(suite))
    result = run_suite(path, store=str(tmp_path / "kept.db"))
    (outcome,) = result.outcomes()
    assert {name: score.passed for name, score in outcome.scores.items()} == {"passed": passed, "goal": passed}
