"""The files of the pages for Jenkins, CircleCI and Azure Pipelines: their commands run in a shell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci.runner import ROOT, bash, read_yaml
from ci.test_action import BOT, SPOILT, SUITE
from forked import program

PAGES = (ROOT / "docs" / "guides" / "ci.md", ROOT / "docs" / "reference" / "ci-systems.md")
FENCE = re.compile(r"^```\w+ (\S+)$\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = dict(FENCE.findall("".join(page.read_text(encoding="utf-8") for page in PAGES)))
PIP = "#!/bin/sh\necho pip $*\n"


def jenkins(text: str) -> list[str]:
    return re.findall(r"^ *sh '(.*)'$", text, re.MULTILINE)


def circle(path: Path) -> list[str]:
    return [step["run"] for step in read_yaml(path)["jobs"]["viva"]["steps"] if "run" in step]


def azure(path: Path) -> list[str]:
    return [step["script"] for step in read_yaml(path)["steps"] if "script" in step]


def commands(name: str, folder: Path) -> list[str]:
    """Return the commands that a system runs, in order; the file is written into the folder."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(FILES[name], encoding="utf-8")
    return jenkins(FILES[name]) if name == "Jenkinsfile" else circle(path) if "circleci" in name else azure(path)


@pytest.fixture
def stand_ins(tmp_path: Path) -> Path:
    """Return a folder with a `pip` and a `python` that install nothing, and the suite beside it."""
    (tmp_path / "suite.yaml").write_text(SUITE.format(name="shop"))
    (tmp_path / "viva-ci.sh").write_text(FILES["viva-ci.sh"])
    for place in (tmp_path / "bin", tmp_path / ".ci" / "bin"):
        place.mkdir(parents=True)
        (place / "pip").write_text(PIP)
        (place / "pip").chmod(0o755)
    (tmp_path / "bin" / "python").write_text("#!/bin/sh\necho python $*\n")
    (tmp_path / "bin" / "python").chmod(0o755)
    return tmp_path / "bin"


@pytest.mark.parametrize("name", ["Jenkinsfile", ".circleci/config.yml", "azure-pipelines.yml"])
@pytest.mark.parametrize(("bot", "code"), [(BOT, 0), (SPOILT, 1)], ids=["good", "spoilt"])
def test_the_commands_of_a_system_end_with_the_code_of_the_suite(
    name: str, bot: str, code: int, tmp_path: Path, stand_ins: Path
) -> None:
    (tmp_path / "bot.py").write_text(bot)
    *installing, running = commands(name, tmp_path)
    for command in installing:
        assert bash(command, tmp_path, stand_ins).returncode == 0
    done = bash(running, tmp_path, program("viva").parent)
    assert done.returncode == code, done.stdout
    assert ("<failure" in (tmp_path / "viva-results" / "viva.xml").read_text()) is bool(code)
    assert "viva-results" in FILES[name]
    assert {path.name for path in (tmp_path / "viva-results").iterdir()} == {"viva.xml", "viva.html"}


def test_a_mistake_in_the_suite_leaves_no_report_of_an_earlier_build(tmp_path: Path, stand_ins: Path) -> None:
    (tmp_path / "bot.py").write_text(BOT)
    assert bash("sh viva-ci.sh", tmp_path, program("viva").parent).returncode == 0
    (tmp_path / "suite.yaml").write_text("name: shop\n")
    assert bash("sh viva-ci.sh", tmp_path, program("viva").parent).returncode == 2
    assert list((tmp_path / "viva-results").iterdir()) == []
