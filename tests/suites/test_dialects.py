"""Suites of letta-evals, of every era: each key is carried over, refused by name, or dropped with a note."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recordings import RECORDINGS, needs_recordings
from vivavoce.errors import UsageError
from vivavoce.suites.check import check_suite
from vivavoce.suites.grading_spec import GraderSpec
from vivavoce.suites.load import Suite, load_suite

REAL = RECORDINGS / "letta_evals_suites"
ERA_A = """\
name: a
dataset: d.jsonl
target:
  kind: agent
  agent_file: bot.af
  base_url: http://localhost:8283
  agent_id: null
graders:
  quality:
    kind: rubric
    prompt: Is {input} answered?
    model: gpt-4.1
    provider: openai
gate:
  metric: accuracy
  op: gte
  value: 80
  pass_op: gt
  pass_value: 0.5
"""
ERA_D = {
    "name": "d",
    "dataset": "d.jsonl",
    "num_runs": "3",
    "cleanup": "true",
    "target": "{kind: letta_code, model_handles: [openai/gpt-5-mini], max_retries: 0}",
    "graders": "{right: {kind: tool, function: contains, extractor: last_assistant}}",
    "reward": "{kind: metric, metric_key: right}",
}


def era_d(**changed: str) -> str:
    return "\n".join(f"{key}: {value}" for key, value in {**ERA_D, **changed}.items())


def read(folder: Path, text: str) -> Suite:
    (folder / "suite.yaml").write_text(text)
    return load_suite(folder / "suite.yaml")


def test_era_a_becomes_ours(tmp_path: Path) -> None:
    suite = read(tmp_path, ERA_A)
    data: dict[str, Any] = suite.spec.model_dump(exclude_none=True)
    assert suite.era == "A"
    assert (data["target"]["kind"], data["target"]["cleanup"]) == ("letta", False)
    assert data["graders"]["quality"]["kind"] == "model_judge"
    assert data["graders"]["quality"]["model"] == "openai:gpt-4.1"
    gate = data["gate"]
    assert (gate["metric_key"], gate["aggregation"]) == ("quality", "accuracy")
    assert (gate["pass_threshold"], gate["pass_op"]) == (0.5, "gt")
    assert any("'rubric' is called 'model_judge' here" in note for note in suite.notes)


def test_era_d_becomes_ours(tmp_path: Path) -> None:
    suite = read(tmp_path, era_d())
    assert suite.era == "D"
    assert suite.spec.trials == 3
    assert [note.split(" ", 1)[1] for note in suite.notes] == [
        "num_runs: is called trials here",
        "cleanup: is ignored: only agents on a Letta server are created per conversation",
    ]


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("sandbox", "{kind: modal}", "sandbox: asks for a Modal sandbox"),
        (
            "target",
            "{kind: letta_agent, agent_id: a, model_configs: [x]}",
            "model_configs.0: names no known file",
        ),
        ("dataset", "https://huggingface.co/datasets/a/b", "dataset: is a URL"),
        (
            "graders",
            "{right: {kind: letta_judge, prompt: p, agent_id: a}}",
            "the model of a judge on a server is not known here",
        ),
        ("graders", "{right: {kind: model_judge, prompt: p, provider: acme}}", "no provider 'acme'"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(tmp_path: Path, key: str, value: str, text: str) -> None:
    suite = read(tmp_path, era_d(**{key: value}))
    assert [problem.line is not None and text in problem.message for problem in suite.problems] == [True]


@pytest.mark.parametrize(
    ("config", "group", "notes"),
    [
        ("pattern: a, search_all: true, group: 1", 0, 1),
        ("pattern: (a), search_all: true", 1, 1),
        ("pattern: (a), search_all: true, group: 1", 1, 0),
        ("pattern: (a)(b), search_all: true, group: 1", 2, 1),
        ("pattern: (a)(b), group: 1", 1, 0),
    ],
)
def test_groups_of_all_matches_are_counted_as_there(tmp_path: Path, config: str, group: int, notes: int) -> None:
    grader = f"{{kind: tool, function: contains, extractor: pattern, extractor_config: {{{config}}}}}"
    suite = read(tmp_path, era_d(graders=f"{{right: {grader}}}"))
    found = suite.spec.graders["right"]
    assert isinstance(found, GraderSpec)
    assert found.extractor_config["group"] == group
    assert sum("letta-evals counts groups from 0" in note for note in suite.notes) == notes


def test_the_one_grader_of_the_first_suites_is_a_grader(tmp_path: Path) -> None:
    text = "grader:\n  kind: tool\n  function: contains\ngate:\n  op: gte\n  value: 0.75\n"
    suite = read(tmp_path, ERA_A[: ERA_A.index("graders:")] + text)
    assert list(suite.spec.graders) == ["grader"]
    assert suite.spec.gate is not None
    assert suite.spec.gate.model_dump()["metric_key"] == "grader"
    assert any("grader: becomes graders.grader" in note for note in suite.notes)


def test_an_unknown_key_of_an_older_suite_is_no_less_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="grader: unknown key; did you mean 'graders'"):
        read(tmp_path, era_d().replace("graders:", "grader:"))


LACKS = {
    "era_a/simple-rubric-grader/suite.yaml": ["no agent file"],
    "era_a/simple-rubric-grader/suite.two-metrics.yaml": ["no agent file"],
    "era_a/simple-rubric-grader/suite.ascii-only-accuracy.yaml": ["no agent file"],
    "era_a/simple-tool-grader/suite.yaml": ["no agent file"],
    "era_b/letta-agent-rubric-grader/custom_judge_suite.yaml": ["no agent file", "has no agent whose model"],
    "era_b/letta-agent-rubric-grader/default_judge_suite.yaml": ["no agent file"],
    "era_b/multi-grader-gate/suite.logical-and.yaml": ["no agent file"],
    "era_b/multi-grader-gate/suite.weighted-average.yaml": ["no agent file"],
    "era_b/multiturn-memory-block-extractor/suite.yaml": ["no agent file"],
    "era_b/multiturn-per-turn-grading/suite.yaml": ["no agent file"],
    "era_d/multi-model-simple-rubric-grader/suite.yaml": [],
    "era_d/multiturn-per-turn-grading/suite.yaml": [],
    "era_d/per-sample-rubric/suite.yaml": [],
    "era_d/reward-composition/suite.logical-and.yaml": ["no file 'rewards.py'"],
    "era_d/reward-composition/suite.weighted-average.yaml": ["no file 'rewards.py'"],
}


@needs_recordings
@pytest.mark.parametrize("name", LACKS)
def test_a_real_suite_validates_and_what_it_lacks_is_named(name: str) -> None:
    suite = load_suite(REAL / name)
    assert suite.era == name[4].upper()
    texts: list[str] = []
    try:
        check_suite(suite)
    except UsageError as error:
        texts = [problem.message for problem in error.problems]
    assert len(texts) == len(LACKS[name])
    for lack, message in zip(LACKS[name], texts, strict=True):
        assert lack in message
