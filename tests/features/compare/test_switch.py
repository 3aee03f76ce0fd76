"""Without comparisons a run is still decided against a baseline."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Viva

HINT = "see what changed with: viva compare"


@pytest.mark.parametrize(("without", "hints"), [("", True), ("compare", False)])
def test_a_baseline_decides_and_names_only_a_command_that_exists(
    viva: Viva, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str, hints: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    assert viva("init", ".").returncode == 0
    viva("run", "suite.yaml", "--quiet")
    assert viva("export", "latest", "--format", "baseline", "--output", "before.json").returncode == 0
    command = [sys.executable, "-m", "vivavoce.cli.main", "run", "suite.yaml", "--quiet", "--baseline", "before.json"]
    environment = {**os.environ, "VIVAVOCE_WITHOUT": without}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert (done.returncode, "INCONCLUSIVE: " in done.stdout) == (1, True), "the gate of the starter suite fails"
    assert (HINT in done.stdout) == hints
