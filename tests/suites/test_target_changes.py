"""Another model, address or key from the command line, in the targets of a suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.load import dump_spec, load_suite
from vivavoce.suites.target_changes import TargetChanges

SUITE = """\
name: s
dataset: {rows: [{input: hi}]}
TARGET
graders: {right: {kind: function, function: contains}}
"""
ALL = TargetChanges("openai/gpt-5", "http://localhost:9999", "sk-new")


def change(folder: Path, target: str, changes: TargetChanges) -> dict[str, Any]:
    (folder / "suite.yaml").write_text(SUITE.replace("TARGET", target))
    suite = load_suite(folder / "suite.yaml", (), changes)
    assert "sk-new" not in str(dump_spec(suite))
    return next(iter(suite.spec.all_targets.values())).model_dump()


@pytest.mark.parametrize(
    "target",
    [
        "target: {kind: letta, agent_id: a, model_handles: [old/model], base_url: 'http://old', api_key: '${OLD}'}",
        "target: {kind: letta_code}",
        "targets: [{kind: letta_code, model_handles: [old/one, old/two]}]",
        "target: {kind: letta_agent, agent_id: a, model_configs: [openai-gpt-4.1]}",
    ],
)
def test_a_letta_target_takes_all_three(tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLD", "sk-old")
    found = change(tmp_path, target, ALL)
    assert (found["model_handles"], found["base_url"]) == (["openai/gpt-5"], "http://localhost:9999")
    assert found["api_key"].get_secret_value() == "sk-new"


def test_what_is_not_given_stays(tmp_path: Path) -> None:
    target = "target: {kind: openai, base_url: 'http://old/v1', model_handles: [a]}"
    found = change(tmp_path, target, TargetChanges(model_handle="b"))
    assert (found["model_handles"], found["base_url"]) == (["b"], "http://old/v1")
    assert not TargetChanges()


@pytest.mark.parametrize(
    ("target", "changes", "message"),
    [
        (
            "target: {kind: function, function: 'bot.py:reply'}",
            TargetChanges(model_handle="b"),
            "--model-handle: a target of kind 'function' has no model_handles",
        ),
        (
            "target: {kind: http, url: 'http://x'}",
            TargetChanges(base_url="http://y"),
            "--base-url: a target of kind 'http' has no base_url",
        ),
        (
            "target: {kind: openai, base_url: 'http://x', model_handles: [a]}",
            TargetChanges(api_key="k"),
            "--api-key: a target of kind 'openai' has no api_key; set the environment variable",
        ),
    ],
)
def test_a_target_without_the_field_is_an_error(
    tmp_path: Path, target: str, changes: TargetChanges, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        change(tmp_path, target, changes)
