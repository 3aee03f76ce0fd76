"""The command line: in this process, which a test need not wait a second for, or in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from vivavoce.cli.main import main

Viva = Callable[..., subprocess.CompletedProcess[str]]
COLUMNS = "120"


@pytest.fixture
def viva() -> Viva:
    """Return a function that runs `viva` in the test's folder, and gives what a process would have given."""
    return run_viva


def run_viva(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    out, err = _stream(), _stream()
    code: object = None
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in {"COLUMNS": COLUMNS, **environment}.items():
            patch.setenv(name, value)
        try:
            main(list(arguments))
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(["viva", *arguments], code, _text(out), _text(err))


def _stream() -> TextIOWrapper:
    return TextIOWrapper(BytesIO(), encoding="utf-8")


def _text(stream: TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


@pytest.fixture
def viva_process(tmp_path: Path) -> Viva:
    """Return a function that runs `viva` in the test's folder, in a process of its own."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).with_name("viva")), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "COLUMNS": COLUMNS, **environment},
        )

    return run
