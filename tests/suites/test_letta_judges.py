"""Judges of letta-evals under our keys: providers, and agents that judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vivavoce.suites.grading_spec import JudgeGraderSpec
from vivavoce.suites.load import Suite, load_suite

SUITE = """\
name: s
dataset: d.jsonl
target: {{kind: letta_agent, agent_id: a}}
graders: {{quality: {{prompt: "Is {{submission}} good?", {judge}}}}}
gate: {{kind: simple, metric_key: quality, op: gte, value: 1}}
"""


def read(folder: Path, judge: str) -> Suite:
    (folder / "suite.yaml").write_text(SUITE.format(judge=judge))
    return load_suite(folder / "suite.yaml")


def model_of(suite: Suite) -> str:
    grader = suite.spec.graders["quality"]
    assert isinstance(grader, JudgeGraderSpec)
    return grader.model


@pytest.mark.parametrize(
    ("judge", "model"),
    [
        ("kind: model_judge", "openai:gpt-4o-mini"),
        ("kind: model_judge, model: gpt-5-mini, provider: openai", "openai:gpt-5-mini"),
        ("kind: model_judge, model: claude-haiku-4-5, provider: anthropic", "anthropic:claude-haiku-4-5"),
        ("kind: model_judge, model: gemini-2.5-pro, provider: google", "google:gemini-2.5-pro"),
        ("kind: model_judge, model: gemini-2.5-pro, provider: google_ai", "google:gemini-2.5-pro"),
        ("kind: model_judge, model: 'http://localhost:1/v1#judge', provider: openai", "http://localhost:1/v1#judge"),
        ("kind: model_judge, model: 'anthropic:claude-haiku-4-5'", "anthropic:claude-haiku-4-5"),
        ("kind: letta_judge", "anthropic:claude-haiku-4-5-20251001"),
        ("kind: letta_judge, agent_file: judge.af, judge_tool_name: submit_grade", "google:gemini-2.5-pro"),
    ],
)
def test_a_judge_has_a_model_of_its_provider(tmp_path: Path, judge: str, model: str) -> None:
    agent = {"llm_config": {"model_endpoint_type": "google_ai", "model": "gemini-2.5-pro"}}
    (tmp_path / "judge.af").write_text(json.dumps({"agents": [agent]}))
    suite = read(tmp_path, judge)
    assert model_of(suite) == model
    assert not suite.problems
    assert any("without its tools and memory" in note for note in suite.notes) == ("letta_judge" in judge)


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ("kind: model_judge, model: m, provider: acme", "graders.quality.provider: no provider 'acme'"),
        ("kind: letta_judge, agent_id: agent-1", "graders.quality.agent_id: the model of a judge on a server"),
        ("kind: letta_judge, agent_file: gone.af", "graders.quality.agent_file: 'gone.af' has no agent whose model"),
        ("kind: letta_judge, agent_file: list.af", "graders.quality.agent_file: 'list.af' has no agent whose model"),
        ("kind: letta_judge, agent_file: empty.af", "graders.quality.agent_file: 'empty.af' has no agent whose model"),
        ("kind: letta_judge, agent_file: text.af", "graders.quality.agent_file: 'text.af' has no agent whose model"),
        ("kind: letta_judge, agent_file: acme.af", "the provider of the agent's model 'acme/m' is not known here"),
    ],
)
def test_a_judge_whose_model_cannot_be_known_is_refused(tmp_path: Path, judge: str, message: str) -> None:
    (tmp_path / "list.af").write_text("[]")
    (tmp_path / "empty.af").write_text('{"agents": []}')
    (tmp_path / "text.af").write_text("no JSON")
    (tmp_path / "acme.af").write_text('{"agents": [{"model": "acme/m"}]}')
    (problem,) = read(tmp_path, judge).problems
    assert message in problem.message
    assert problem.line == 4
