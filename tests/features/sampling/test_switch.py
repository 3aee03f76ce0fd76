"""Without sampling nothing is drawn, and a run whose conversations were drawn keeps its estimates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import Viva

JUDGE = ("judge", "talks.jsonl", "--metrics", "refusal", "-q", "--sample", "6")
ESTIMATE = "of all conversations pass, estimated: 6 of 20 judged"
SAMPLE_LINE = "drawn: 6 of 20 conversations"


def without_sampling(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "VIVAVOCE_WITHOUT": "sampling"}
    command = [sys.executable, "-m", "vivavoce.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.fixture(autouse=True)
def talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    talk = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    rows = [json.dumps({"id": f"r{number}", "messages": talk}) for number in range(20)]
    Path("talks.jsonl").write_text("\n".join(rows))


def test_what_was_drawn_is_shown_with_its_estimates_but_not_how(viva: Viva) -> None:
    assert viva(*JUDGE).returncode == 0
    assert SAMPLE_LINE in viva("show", "latest").stdout
    done = without_sampling("show", "latest")
    assert done.returncode == 0, done.stderr
    assert ESTIMATE in " ".join(done.stdout.split())
    assert SAMPLE_LINE not in done.stdout


def test_drawing_is_refused_in_one_line() -> None:
    done = without_sampling(*JUDGE)
    assert (done.returncode, done.stderr) == (2, "sample needs the plugin 'sampling', which is switched off\n")
