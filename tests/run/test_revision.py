from __future__ import annotations

import subprocess
from pathlib import Path

from vivavoce.run.experiment_run import revision_of

WHO = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *WHO, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def committed(folder: Path) -> str:
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return git(folder, "rev-parse", "HEAD")


def test_it_is_the_commit_of_the_folder_and_of_those_inside(tmp_path: Path) -> None:
    commit = committed(tmp_path)
    inside = tmp_path / "suites" / "deep"
    inside.mkdir(parents=True)
    assert revision_of(tmp_path) == revision_of(inside) == commit


def test_packed_detached_and_of_another_worktree(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    commit = committed(home)
    git(home, "worktree", "add", "-q", "-b", "side", "../side")
    assert revision_of(tmp_path / "side") == commit
    git(home, "pack-refs", "--all")
    assert revision_of(home) == revision_of(tmp_path / "side") == commit
    git(home, "checkout", "-q", "--detach")
    assert revision_of(home) == commit


def test_there_is_none_outside_git_before_the_first_commit_or_in_a_broken_one(tmp_path: Path) -> None:
    assert revision_of(tmp_path) is None
    git(tmp_path, "init", "-q", "-b", "main")
    assert revision_of(tmp_path) is None
    (tmp_path / ".git" / "HEAD").write_bytes(b"\xff\xfe")
    assert revision_of(tmp_path) is None
