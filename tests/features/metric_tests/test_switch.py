"""Without tests of metrics the defects are still listed, and metrics measure as before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def without_metric_tests(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "VIVAVOCE_WITHOUT": "metric_tests"}
    command = [sys.executable, "-m", "vivavoce.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


def test_only_the_command_is_missing(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    rows = tmp_path / "talks.jsonl"
    rows.write_text(json.dumps({"id": "a", "messages": talk}))
    done = without_metric_tests("metrics", "test")
    assert done.returncode == 2
    assert "no command 'metrics'" in done.stderr
    assert "wrong_argument" in without_metric_tests("validate", "list", "defects").stdout
    judged = without_metric_tests(
        "judge", str(rows), "--metrics", "refusal", "--quiet", "--store", str(tmp_path / "s.db")
    )
    assert judged.returncode == 0, judged.stderr
