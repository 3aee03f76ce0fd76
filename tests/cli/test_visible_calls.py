"""A target declares how many of its calls its record shows, and `viva validate` says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.records.visibility import visible_calls
from vivavoce.suites.load import load_suite
from vivavoce.suites.targets import build_targets

from .conftest import Viva


def suite_in(folder: Path, **declared: Any) -> Path:
    (folder / "bot.py").write_text("def reply(message):\n    return 'Hello.'\n")
    suite = {
        "name": "cards",
        "driver": "penelope",
        "dataset": {"rows": [{"id": "a", "goal": "The card is blocked"}]},
        "target": {"kind": "function", "function": "bot.py:reply", **declared},
        "tester": {"model": "http://127.0.0.1:9/v1#m"},
        "graders": {"passed": {"kind": "function", "function": "target_passed"}},
    }
    (folder / "suite.yaml").write_text(json.dumps(suite))
    return folder / "suite.yaml"


@pytest.mark.parametrize("calls", ["all", "some", "none"])
def test_validate_says_what_a_target_declares(viva: Viva, tmp_path: Path, calls: str) -> None:
    path = suite_in(tmp_path, calls=calls)
    assert f"bot.reply: calls: {calls}\n" in viva("validate", str(path)).stdout
    (target,) = build_targets(load_suite(path), 1)
    assert visible_calls(target) == calls


def test_validate_says_the_default_and_refuses_what_is_unknown(viva: Viva, tmp_path: Path) -> None:
    done = viva("validate", str(suite_in(tmp_path)))
    assert "bot.reply: calls: all where its record has any, else none (default)\n" in done.stdout
    done = viva("validate", str(suite_in(tmp_path, calls="most")))
    assert (done.returncode, "calls" in done.stderr) == (2, True)
