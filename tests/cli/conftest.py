"""The real command, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Viva = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def viva(tmp_path: Path) -> Viva:
    """Return a function that runs `viva` in the test's folder."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).with_name("viva")), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "COLUMNS": "120", **environment},
        )

    return run
