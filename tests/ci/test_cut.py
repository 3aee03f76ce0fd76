"""`tools/cut.py` makes a version of what is unreleased, and refuses what would be none."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ci.runner import ROOT

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- a thing\n"
OLDER = "\n## [0.2.0] - 2026-01-01\n\n- an older thing\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "cut.py", tmp_path / "tools")
    (tmp_path / "src" / "vivavoce").mkdir(parents=True)
    (tmp_path / "src" / "vivavoce" / "__init__.py").write_text(
        '"""A package."""\n\n__version__ = "0.1.0"\nNAME = "x"\n'
    )
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def cut(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(project / "tools" / "cut.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_is_unreleased_becomes_the_section_of_the_version(project: Path) -> None:
    (project / "CHANGELOG.md").write_text(CHANGELOG + OLDER)
    done = cut(project, "0.10.0")
    assert (done.returncode, done.stderr) == (0, "")
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    expected = CHANGELOG.replace("[Unreleased]\n", f"[Unreleased]\n\n## [0.10.0] - {today}\n")
    assert (project / "CHANGELOG.md").read_text() == expected + OLDER
    package = (project / "src" / "vivavoce" / "__init__.py").read_text()
    assert package == '"""A package."""\n\n__version__ = "0.10.0"\nNAME = "x"\n'
    again = cut(project, "0.11.0")
    assert (again.returncode, again.stderr) == (
        2,
        "nothing has changed: CHANGELOG.md has nothing under [Unreleased], and changes has no file\n",
    )


def test_the_files_of_changes_join_the_section_and_are_removed(project: Path) -> None:
    folder = project / "changes"
    folder.mkdir()
    (folder / "README.md").write_text("# How\n")
    (folder / "b-thing.md").write_text("- b thing\n")
    (folder / "another.md").write_text("- another thing\n")
    assert cut(project, "0.2.0").returncode == 0
    text = (project / "CHANGELOG.md").read_text()
    assert text.endswith("### Added\n\n- a thing\n- another thing\n- b thing\n")
    assert [path.name for path in folder.iterdir()] == ["README.md"]


@pytest.mark.parametrize(
    ("version", "words"),
    [("1.0", "is no version"), ("v1.0.0", "is no version"), ("0.2.0", "not newer than 0.2.0"), ("0.1.9", "not newer")],
)
def test_what_is_no_newer_version_is_refused_and_changes_nothing(project: Path, version: str, words: str) -> None:
    (project / "CHANGELOG.md").write_text(CHANGELOG + OLDER)
    done = cut(project, version)
    assert done.returncode == 2
    assert words in done.stderr
    assert (project / "CHANGELOG.md").read_text() == CHANGELOG + OLDER


def test_without_a_version_it_says_how_it_is_called(project: Path) -> None:
    assert "cut.py VERSION" in cut(project).stderr
