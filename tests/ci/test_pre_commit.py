"""The hook of pre-commit: it takes suites and nothing else, and its command is called as pre-commit calls it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci.runner import ROOT, bash, read_yaml
from ci.test_action import BOT, SUITE

HOOKS = read_yaml(ROOT / ".pre-commit-hooks.yaml")


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        ("suite.yaml", True),
        ("evals/shop/suite.yml", True),
        ("shop.viva.yaml", True),
        ("evals/shop.viva.yml", True),
        ("my-suite.yaml", False),
        ("suite.yaml.bak", False),
        (".github/workflows/viva.yml", False),
        ("viva.yaml", False),
    ],
)
def test_it_takes_suites_by_their_names(path: str, taken: bool) -> None:
    [hook] = HOOKS
    assert (re.search(hook["files"], path) is not None) == taken


def test_its_command_names_mistakes_with_their_lines(tmp_path: Path) -> None:
    [hook] = HOOKS
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "good.viva.yaml").write_text(SUITE.format(name="good"))
    (tmp_path / "suite.yaml").write_text(SUITE.format(name="bad").replace("contains: nine", "contians: nine"))
    good = bash(f"{hook['entry']} good.viva.yaml", tmp_path)
    assert good.returncode == 0, good.stdout
    bad = bash(f"{hook['entry']} good.viva.yaml suite.yaml", tmp_path)
    assert bad.returncode == 2
    assert "suite.yaml:4:" in bad.stdout
    assert "no assertion 'contians'; did you mean 'contains'?" in bad.stdout
