"""Without batches judges are called directly, and what needs a batch service is refused in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

JUDGE = ("judge", "talks.jsonl", "--metrics", "safety", "--judge", "openai:gpt-4o", "--quiet")


def without_batches(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "VIVAVOCE_WITHOUT": "batches", "OPENAI_API_KEY": "unused"}
    command = [sys.executable, "-m", "vivavoce.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.fixture(autouse=True)
def talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    talk = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    Path("talks.jsonl").write_text(json.dumps({"id": "a", "messages": talk}))
    Path("answers.jsonl").write_text("")


@pytest.mark.parametrize(
    "option", [("--batch",), ("--export-requests", "asked.jsonl"), ("--import-responses", "answers.jsonl")]
)
def test_each_option_for_a_batch_service_is_refused(option: tuple[str, ...]) -> None:
    done = without_batches(*JUDGE, *option)
    assert (done.returncode, done.stderr) == (2, f"{option[0]} needs the plugin 'batches', which is switched off\n")


def test_a_metric_that_asks_nobody_is_computed_and_there_is_no_command_to_list_batches() -> None:
    assert without_batches("judge", "talks.jsonl", "--metrics", "refusal", "--quiet").returncode == 0
    done = without_batches("judge", "batches")
    assert done.returncode == 2
    assert "List or cancel" not in without_batches("judge", "--help").stdout
