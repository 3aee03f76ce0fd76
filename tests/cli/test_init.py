from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from ci.runner import bash, read_yaml
from vivavoce.cli import init
from vivavoce.cli.init import FOLDER, NewFile, command, requirement, write_new
from vivavoce.cli.schema import schema_text
from vivavoce.errors import UsageError
from vivavoce.samples.rows import check_samples
from vivavoce.suites.check import check_suite
from vivavoce.suites.load import load_suite

WORKFLOW = ".github/workflows/viva-exam.yml"
BESIDE = [".gitignore", WORKFLOW, "suite.schema.json", "test_exam.py"]
WRITTEN = sorted([*BESIDE, "bot.py", "dataset.jsonl", "suite.md", "suite.yaml"])


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def steps(workflow: Path) -> list[dict[str, Any]]:
    return read_yaml(workflow)["jobs"]["viva"]["steps"]


def steps_of(workflow: Path) -> dict[str, str]:
    """Return the commands of a workflow by the names of their steps."""
    return {step["name"]: step["run"] for step in steps(workflow) if "run" in step}


def test_a_template_is_written_as_it_is_shipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(tmp_path / "new" / "exam")
    folder = tmp_path / "new" / "exam"
    assert files_of(folder) == WRITTEN
    shipped = {path.name: path.read_text() for path in (FOLDER / "first").iterdir() if path.is_file()}
    assert {name: (folder / name).read_text() for name in shipped} == shipped
    assert (folder / "suite.schema.json").read_text() == schema_text() + "\n"
    said = capsys.readouterr().out
    assert all(f"wrote {folder / name}" in said for name in WRITTEN)
    assert f"next: viva run {folder / 'suite.yaml'}" in said


def test_without_a_name_it_writes_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = tmp_path / "exam"
    here.mkdir()
    os.chdir(here)
    command()
    assert files_of(here) == WRITTEN
    assert "next: viva run suite.yaml" in capsys.readouterr().out


def test_the_suite_is_valid(tmp_path: Path) -> None:
    command(tmp_path)
    assert check_suite(load_suite(tmp_path / "suite.yaml")).conversations == 4
    assert check_samples(tmp_path / "dataset.jsonl").samples == 4


def test_a_name_with_a_space_can_be_copied_from_the_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(Path("my exam"))
    assert "next: viva run 'my exam/suite.yaml'" in capsys.readouterr().out
    assert "test_my_exam.py" in files_of(tmp_path / "my exam")


def test_nothing_is_overwritten_and_nothing_else_is_written(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("mine")
    with pytest.raises(UsageError, match=r"bot\.py already exists and is not overwritten; name another folder"):
        command(tmp_path)
    assert files_of(tmp_path) == ["bot.py"]
    assert (tmp_path / "bot.py").read_text() == "mine"


def test_every_file_that_is_there_is_named(tmp_path: Path) -> None:
    command(tmp_path / "exam")
    with pytest.raises(UsageError) as caught:
        command(tmp_path / "exam")
    named = sorted(os.path.relpath(str(problem).split(" ")[0], tmp_path / "exam") for problem in caught.value.problems)
    assert named == [name for name in WRITTEN if name != ".gitignore"]


def test_a_gitignore_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    command(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "*.pyc\n"
    assert f"note: add the line .vivavoce/ to {tmp_path / '.gitignore'}" in capsys.readouterr().out
    (tmp_path / ".gitignore").write_text(".vivavoce/\n")
    (tmp_path / "suite.yaml").rename(tmp_path / "other.yaml")
    for name in files_of(tmp_path):
        if name not in (".gitignore", "other.yaml"):
            (tmp_path / name).unlink()
    command(tmp_path)
    assert "add the line" not in capsys.readouterr().out


def test_in_a_repository_the_workflow_stands_where_github_looks_for_it(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "evals").mkdir()
    os.chdir(tmp_path / "evals")
    command(Path("exam"))
    root = {name for name in files_of(tmp_path) if not name.startswith("evals/")}
    assert root == {".gitignore", WORKFLOW}
    assert "viva run evals/exam/suite.yaml --quiet" in steps_of(tmp_path / WORKFLOW)["Run the suite"]


def test_two_suites_of_a_repository_have_a_workflow_and_a_test_each(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    command(Path("exam"))
    command(Path("calls"), template="voice")
    assert {WORKFLOW, ".github/workflows/viva-calls.yml", "calls/test_calls.py"} <= set(files_of(tmp_path))


def test_the_steps_of_the_workflow_find_the_mistake_and_report_it(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    command(Path("my exam"))
    steps = steps_of(tmp_path / ".github/workflows/viva-my_exam.yml")
    assert list(steps) == ["Install", "Check the suite", "Run the suite", "Report"]
    assert bash(steps["Check the suite"], tmp_path).returncode == 0
    assert bash(steps["Run the suite"], tmp_path).returncode == 1
    summary = tmp_path / "summary.md"
    report = bash(steps["Report"], tmp_path, GITHUB_STEP_SUMMARY=str(summary))
    assert (report.returncode, "::error" in report.stdout) == (0, True), report.stdout
    assert "in-a-hurry" in summary.read_text()


def test_the_test_for_pytest_says_what_is_wrong_and_passes_with_the_mistake_mended(tmp_path: Path) -> None:
    command(tmp_path / "exam")
    run = f"{sys.executable} -m pytest -q -p no:cacheprovider exam"
    failed = bash(run, tmp_path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert failed.returncode == 1
    assert "in-a-hurry: asks_first: turn 1: refund(" in failed.stdout
    bot = tmp_path / "exam" / "bot.py"
    bot.write_text(bot.read_text().replace('if not (agreed or "today" in texts[-1]):', "if not agreed:"))
    passed = bash(run, tmp_path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert passed.returncode == 0, passed.stdout


class Installed:
    """An installed package that says where it came from."""

    version = "0.1.0"

    def __init__(self, origin: object) -> None:
        self.origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        (None, "vivavoce==0.1.0"),
        (
            {"url": "https://host/a.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "vivavoce @ git+https://host/a.git@abc",
        ),
        ({"url": "https://host/a.whl", "archive_info": {}}, "vivavoce @ https://host/a.whl"),
        ({"url": "file:///home/me/vivavoce", "dir_info": {"editable": True}}, None),
        ({"url": "file:///home/me/a.whl", "archive_info": {}}, None),
        ({"url": "file:///home/me/a", "vcs_info": {"vcs": "git", "commit_id": "abc"}}, None),
        (
            {"url": "https://host/a.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}, "subdirectory": "py"},
            "vivavoce @ git+https://host/a.git@abc#subdirectory=py",
        ),
    ],
)
def test_the_workflow_installs_what_is_installed_here(
    origin: object,
    wanted: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def installed(name: str) -> Installed:
        assert name == "vivavoce"
        return Installed(origin)

    monkeypatch.setattr(init, "distribution", installed)
    assert requirement() == wanted
    command(tmp_path / "exam")
    said = "note: vivavoce was installed from files of this machine, which GitHub cannot read"
    assert (said in capsys.readouterr().out) == (wanted is None)
    [install] = [one for one in steps(tmp_path / "exam" / WORKFLOW) if one.get("name") == "Install"]
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/installed\n')
    (programs / "python").chmod(0o755)
    done = bash(install["run"], tmp_path, programs, **install["env"])
    if wanted is None:
        assert (done.returncode != 0, (tmp_path / "installed").exists()) == (True, False)
        assert "write in the workflow where vivavoce comes from, such as git+https://…" in done.stdout
    else:
        assert (tmp_path / "installed").read_text().split("\n") == ["-m", "pip", "install", wanted, ""]


def test_a_suite_that_is_there_gets_a_workflow_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".git").mkdir()
    command(Path("exam"))
    shutil.rmtree(tmp_path / ".github")
    (tmp_path / "exam" / "suite.yaml").rename(tmp_path / "exam" / "my shop.viva.yaml")
    before = {name: (tmp_path / name).read_text() for name in files_of(tmp_path)}
    command(Path("exam/my shop.viva.yaml"))
    workflow = ".github/workflows/viva-my_shop.yml"
    assert set(files_of(tmp_path)) - set(before) == {workflow}
    assert {name: (tmp_path / name).read_text() for name in before} == before
    assert bash(steps_of(tmp_path / workflow)["Run the suite"], tmp_path).returncode == 1
    assert f"wrote {workflow}: runs the suite on GitHub" in capsys.readouterr().out
    with pytest.raises(UsageError, match=r"viva-my_shop\.yml already exists and is not overwritten; delete it first"):
        command(Path("exam/my shop.viva.yaml"))
    (tmp_path / "exam" / "my shop.viva.yaml").rename(tmp_path / "exam" / "suite.yaml")
    command(Path("exam/suite.yaml"))
    assert WORKFLOW in files_of(tmp_path)


def test_what_is_no_suite_gets_no_workflow(tmp_path: Path) -> None:
    command(tmp_path / "exam")
    with pytest.raises(UsageError, match=r"suite\.yaml already exists; remove --template voice"):
        command(tmp_path / "exam" / "suite.yaml", template="voice")
    (tmp_path / "other.yaml").write_text("on: push\n")
    with pytest.raises(UsageError, match=r"other\.yaml:1:1"):
        command(tmp_path / "other.yaml")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("name", ["suite.yaml", "nowhere/suite.yml", "Suite.YAML"])
def test_a_suite_that_is_not_there_is_no_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"no suite at .*; to create a suite, give a folder"):
        command(tmp_path / name)
    assert not any(tmp_path.iterdir())


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "exam").write_text("")
    with pytest.raises(UsageError, match="exam is a file; name a folder"):
        command(tmp_path / "exam")
    with pytest.raises(UsageError, match="cannot be written: Not a directory"):
        command(tmp_path / "exam" / "inner")


def test_when_one_file_cannot_be_written_none_is_left(tmp_path: Path) -> None:
    files = [NewFile(tmp_path / "inner" / "first", "one", ""), NewFile(tmp_path / "inner/first/second", "two", "")]
    with pytest.raises(UsageError, match="cannot be written: Not a directory"):
        write_new(files, "name another folder")
    assert list(tmp_path.iterdir()) == []
