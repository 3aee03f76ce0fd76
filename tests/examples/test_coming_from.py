"""The examples of other tools, in ours: they run, with models on this machine, and are as short as told."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from contracts.test_one_registry import answer
from forked import program
from vivavoce import RunResult, run_suite
from vivavoce.messages import ToolCall
from vivavoce.testing import LoopbackServer

FOLDER = Path(__file__).parents[2] / "examples" / "coming-from"
ANSWERS = {
    "Who founded Facebook?": "Mark Zuckerberg founded it, with four others.",
    "Where does he live?": "He lives in Palo Alto.",
    "Which state is that in?": "Palo Alto is in California.",
    "weather": "It is foggy in San Francisco, at 15 degrees.",
    "umbrella": "No rain is expected there today.",
    "recipe": "Pasta with garlic and oil: it takes five things.",
    "cook it": "Cook the pasta for nine minutes.",
}
SAID = {"sore-throat": "My throat is sore.", "rebooking": "My appointment!", "lonely": "I want to talk."}


def run(suite: Path, url: str, tmp_path: Path) -> RunResult:
    """Run a copy of a suite that names models on this machine."""
    copy = shutil.copytree(suite.parent, tmp_path / "copy") / suite.name
    text = copy.read_text().replace("https://api.openai.com/v1", url)
    copy.write_text(re.sub(r'"openai:[^"]*"', f'"{url}#any"', text))
    return run_suite(copy)


def assistant(body: dict[str, Any]) -> str:
    assert body["messages"][0] == {"role": "system", "content": "You are a helpful assistant"}
    asked = body["messages"][-1]["content"]
    return next(said for words, said in ANSWERS.items() if words in asked)


def test_the_conversations_of_promptfoo_are_held_and_checked(tmp_path: Path) -> None:
    with LoopbackServer(assistant) as server:
        result = run(FOLDER / "promptfoo" / "suite.yaml", server.base_url, tmp_path)
        assert (result.exit_code, len(server.requests)) == (0, 7)


def test_a_model_that_forgets_who_he_is_fails_in_that_turn(tmp_path: Path) -> None:
    def forgetful(body: dict[str, Any]) -> str:
        return assistant(body) if "he live" not in body["messages"][-1]["content"] else "Who do you mean?"

    with LoopbackServer(forgetful) as server:
        result = run(FOLDER / "promptfoo" / "suite.yaml", server.base_url, tmp_path)
    scores = {one.attempt.key.sample_id: one.scores["expect"] for one in result.outcomes()}
    assert result.exit_code == 1
    assert [name for name, score in scores.items() if not score.passed] == ["facebook"]
    assert "turn 2: does not contain 'Palo Alto'" in str(scores["facebook"].reason)


def test_the_conversation_of_deepeval_is_judged() -> None:
    with LoopbackServer(answer) as server:
        command = [program("python"), str(FOLDER / "deepeval" / "judged.py"), f"{server.base_url}#any"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "turn_relevancy" in done.stdout
    assert "knowledge_retention" in done.stdout


def player(body: dict[str, Any]) -> Any:
    """Play the user, who is offered tools, or judge."""
    if "tools" in body:
        brief = body["messages"][0]["content"]
        words = {"sore throat": "sore-throat", "appointment": "rebooking", "talk to somebody": "lonely"}
        said = SAID[next(name for word, name in words.items() if word in brief)]
        return [ToolCall(name="send_message_to_target", args={"message": said, "reasoning": "as planned"})]
    shape = body["response_format"]["json_schema"]["schema"]["properties"]
    text = body["messages"][-1]["content"]
    quotes = [q for q in ("tablets of Panadol", "connecting you with a colleague", "call a friend") if q in text]
    if "criteria" in shape:
        criterion = {"outcome": "reached", "kind": "fact", "evidence": quotes, "met": True}
        number = shape["criteria"].get("minItems", 1)
        return {"criteria": [criterion] * number, "breaches": [], "changes": [], "reasoning": "Yes.", "confidence": 1}
    return json.loads(json.dumps(answer(body)).replace("Order 7 is on its way to you.", quotes[0]))


def test_the_scenarios_of_deepeval_are_played_and_judged(tmp_path: Path) -> None:
    with LoopbackServer(player) as server:
        result = run(FOLDER / "deepeval" / "simulated.yaml", server.base_url, tmp_path)
    goal, relevancy, faithfulness = (result.summary.grader(name) for name in ("goal", "relevancy", "faithfulness"))
    assert (goal.scored, goal.mean, goal.errors) == (3, 1.0, 0)
    assert (relevancy.scored, relevancy.errors) == (3, 0)
    assert (faithfulness.scored, faithfulness.skipped, faithfulness.errors) == (1, 2, 0)


@pytest.mark.parametrize("file", ["promptfoo/suite.yaml", "deepeval/judged.py", "deepeval/simulated.yaml"])
def test_the_table_tells_the_lines_of_ours(file: str) -> None:
    lines = [line.strip() for line in (FOLDER / file).read_text().splitlines()]
    counted = sum(bool(line) and not line.startswith("#") for line in lines)
    [told] = re.findall(rf"\]\({re.escape(file)}\).*\| (\d+) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert int(told) == counted
