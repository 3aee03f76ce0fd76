"""Real suites of letta-evals, run: the target and the judge are servers on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recordings import RECORDINGS, needs_recordings
from vivavoce import run_suite
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

REAL = RECORDINGS / "letta_evals_suites"
CAT = "```\n /\\_/\\\n( o.o )\n```"
FACTS = {"France": "Paris", "Germany": "Berlin", "Italy": "Madrid", "2 + 2": "4", "3 * 4": "12", "10 - 7": "3"}

pytestmark = needs_recordings


def agent(body: dict[str, Any]) -> str:
    """Answer the questions of the suites, one capital of three wrong."""
    asked = body["messages"][-1]["content"]
    return next((answer for key, answer in FACTS.items() if key in asked), CAT)


def judge(body: dict[str, Any]) -> dict[str, Any]:
    """Give 0.8 to whoever shows a cat, and say what the rubric showed."""
    assert body["response_format"]["type"] == "json_schema"
    rubric = body["messages"][-1]["content"]
    assert re.search(r'"[^"]', rubric), "nothing was put into the rubric"
    score = 0.8 if "( o.o )" in rubric or "Paris" in rubric else 0.1
    shown = [json.loads(text) for text in re.findall(r'"(?:[^"\\]|\\.)+"', rubric)]
    return {"reasoning": "looked at it", "evidence": shown, "score": score, "confidence": 1}


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    with LoopbackServer(agent) as bot, LoopbackServer(judge) as judging:
        monkeypatch.setenv("OPENAI_BASE_URL", judging.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-judge")
        yield {"kind": "openai", "base_url": bot.url, "model_handles": ["bot"]}


RUNNABLE = {
    "era_a/simple-rubric-grader/suite.yaml": ("pass", 0.8),
    "era_a/simple-rubric-grader/suite.two-metrics.yaml": ("pass", 0.8),
    "era_a/simple-rubric-grader/suite.ascii-only-accuracy.yaml": ("pass", 0.8),
    "era_b/multi-grader-gate/suite.logical-and.yaml": ("pass", 0.8),
    "era_b/multi-grader-gate/suite.weighted-average.yaml": ("pass", 0.8),
    "era_d/multi-model-simple-rubric-grader/suite.yaml": (None, 0.8),
    "era_d/per-sample-rubric/suite.yaml": (None, 0.8),
}


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_suite_that_needs_an_endpoint_and_a_judge_runs(name: str, target: dict[str, Any]) -> None:
    verdict, quality = RUNNABLE[name]
    result = run_suite(REAL / name, target=target)
    found = result.summary.grader("quality")
    assert (found.errors, found.skipped) == (0, 0)
    assert found.scored == result.summary.attempts > 0
    assert found.mean == pytest.approx(quality)
    assert result.summary.verdict == verdict
    assert result.exit_code == 0


def test_the_per_turn_suite_of_era_d_gives_what_its_own_runner_does_not(target: dict[str, Any]) -> None:
    result = run_suite(REAL / "era_d/multiturn-per-turn-grading/suite.yaml", target=target)
    with Store.open(settings().store) as store:
        grades = {o.attempt.key.sample_id: o.scores["correctness"] for o in store.outcomes(result.grading.id)}
    assert grades["0"].value == pytest.approx(2 / 3)
    assert [turn.submission for turn in grades["0"].turns or ()] == ["Paris", "Berlin", "Madrid"]
    assert grades["1"].value == 1.0
    assert grades["2"].value == 0.0
    assert result.summary.grader("reward").mean == pytest.approx(5 / 9)


def test_the_per_turn_suite_of_era_b_is_judged_turn_by_turn(target: dict[str, Any]) -> None:
    result = run_suite(REAL / "era_b/multiturn-per-turn-grading/suite.yaml", target=target)
    quality = result.summary.grader("quality")
    assert (quality.scored, quality.errors) == (5, 0)
    assert result.summary.verdict == "fail"


def test_no_key_reaches_the_store(target: dict[str, Any], tmp_path: Path) -> None:
    run_suite(REAL / "era_d/per-sample-rubric/suite.yaml", target=target)
    for path in (tmp_path / ".vivavoce").iterdir():
        assert b"sk-of-the-judge" not in path.read_bytes()
    with Store.open(settings().store) as store:
        assert "sk-of-the-judge" not in json.dumps([run.model_dump(mode="json") for run in store.runs()])
