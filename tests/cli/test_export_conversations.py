"""The conversations of a run as labelled rows: a dataset again, and a source of files for tuning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cli.conftest import Viva

SUITE = """
name: shop
dataset:
  rows:
    - {id: hours, input: "When do you open?", ground_truth: nine, goal: the hours, labels: {source: mail}}
    - {id: refund, input: "I want my money back", ground_truth: sorry}
targets:
  - {kind: function, name: old, function: "bot.py:old"}
  - {kind: function, name: new, function: "bot.py:new"}
graders:
  said: {kind: function, function: contains}
"""
BOT = """
def old(messages):
    return "No idea."

def new(messages):
    return "We open at nine." if "open" in messages[-1]["content"] else "I am sorry."
"""


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_run_becomes_rows_with_verdicts_and_those_become_pairs(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "bot.py").write_text(BOT)
    assert viva("run", "suite.yaml", "--quiet").returncode == 0
    exported = viva("export", "latest", "--format", "conversations", "--output", "rows.jsonl")
    assert exported.returncode == 0, exported.stderr
    found = {row["id"]: row for row in rows((tmp_path / "rows.jsonl").read_text())}
    assert sorted(found) == ["hours@new", "hours@old", "refund@new", "refund@old"]
    row = found["hours@new"]
    assert row["messages"][-1]["content"] == "We open at nine."
    assert (row["goal"], row["ground_truth"]) == ("the hours", "nine")
    assert row["labels"] == {"source": "mail", "passed": True, "graders": {"said": {"score": 1.0, "passed": True}}}
    assert found["hours@old"]["labels"]["passed"] is False
    assert viva("judge", "rows.jsonl", "--metrics", "refusal", "--quiet").returncode == 0
    pairs = rows(viva("convert", "rows.jsonl", "-", "--to", "openai-preference").stdout)
    assert {pair["non_preferred_output"][0]["content"] for pair in pairs} == {"No idea."}
    named = viva("convert", "rows.jsonl", "-", "--to", "openai-tuning", "--label", "graders.said.score")
    assert (named.stdout, "no label calls good" in named.stderr) == ("", True)
    named = viva(
        *("convert", "rows.jsonl", "-", "--to", "openai-tuning"),
        *("--label", "graders.said.score", "--good-from", "0.5"),
    )
    assert len(rows(named.stdout)) == 2
    assert viva("convert", "rows.jsonl", "-", "--good-from", "1").returncode == 2
