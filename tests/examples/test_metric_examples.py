"""The examples of metrics are run as their reader would run them, with a judge on this machine for a paid one."""

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
from vivavoce.testing import LoopbackServer

EXAMPLES = Path(__file__).parents[2] / "examples"


def judge(body: dict[str, Any]) -> dict[str, Any]:
    """Answer as a judge who believes in calls and in what is told, and not in promises."""
    asked = body["messages"][-1]["content"]
    shape = body["response_format"]["json_schema"]["schema"]["properties"]
    words = re.findall(r'^assistant: "(.*)"$', asked, re.MULTILINE)
    if "criteria" not in shape:
        answer: dict[str, Any] = {"reasoning": "Friendly.", "evidence": words, "confidence": 0.8}
        return answer | {next(name for name in shape if name not in answer): "courteous"}
    met = "call c0 refund" in asked or "life insurance" in asked
    changed = re.findall(r"^- (c\d+) .* returned .*$", asked, re.MULTILINE)
    evidence = ["c0"] if "call c0" in asked else ["We offer auto, home, and life insurance."]
    return {
        "criteria": [{"outcome": "what was wanted", "kind": "change", "evidence": evidence if met else [], "met": met}],
        "changes": [{"call": one, "asked": "it", "rule": "", "verdict": "wanted"} for one in changed],
        "breaches": [],
        "reasoning": "It was done." if met else "It was only promised.",
        "confidence": 0.9,
    }


@pytest.fixture
def model() -> Iterator[str]:
    with LoopbackServer(judge) as server:
        yield f"{server.base_url}#judge"


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )


def python(script: str, *arguments: object) -> str:
    done = run(program("python"), EXAMPLES / script, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_one_conversation_is_judged_with_its_evidence(model: str) -> None:
    assert python("standalone/judge_one.py", model).splitlines() == [
        "fully_achieved (passed: True)",
        "It was done.",
        "- 'We offer auto, home, and life insurance.', turn 1",
    ]


def test_a_file_is_judged_and_the_success_rate_has_its_interval(model: str) -> None:
    lines = python("batch/judge_many.py", EXAMPLES / "batch" / "conversations.jsonl", model).splitlines()
    assert lines == [
        "insurance: fully_achieved  It was done.",
        "refund: fully_achieved  It was done.",
        "promise: not_achieved  It was only promised.",
        "success rate: 66.7% [20.8%, 93.9%] of 3, 0 errors",
    ]


def test_metrics_of_ones_own_are_named_on_the_command_line(model: str) -> None:
    folder = EXAMPLES / "custom_metric"
    metrics = f"{folder / 'metrics.py'}:greets,{folder / 'metrics.py'}:PromiseMetric,{folder / 'courtesy.yaml'}"
    done = run(program("viva"), "judge", folder / "conversations.jsonl", "--metrics", metrics, "--judge", model)
    assert done.returncode == 0, done.stderr
    exported = json.loads(run(program("viva"), "export", "latest", "--format", "json").stdout)
    found = {one["name"]: (one["scored"], one["mean"]) for one in exported["summary"]["graders"]}
    assert found == {"greets": (3, 0.0), "PromiseMetric": (3, pytest.approx(2 / 3)), "courtesy": (3, 1.0)}


def test_a_suite_with_metrics_passes_its_gate(model: str) -> None:
    done = run(program("viva"), "run", EXAMPLES / "metric_suite" / "suite.yaml", VIVAVOCE_JUDGE=model)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "goal" in done.stdout
    without = run(program("viva"), "run", EXAMPLES / "metric_suite" / "suite.yaml")
    assert (without.returncode, "needs a judge" in without.stderr) == (2, True)
