from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.cli.init import STARTER, command, write_new
from vivavoce.cli.schema import schema_text
from vivavoce.errors import UsageError
from vivavoce.samples.rows import check_samples
from vivavoce.suites.check import check_suite
from vivavoce.suites.load import load_suite

WRITTEN = ["bot.py", "dataset.jsonl", "suite.schema.json", "suite.yaml"]


def test_the_starter_is_written_as_it_is_shipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(tmp_path / "new" / "exam")
    folder = tmp_path / "new" / "exam"
    assert sorted(path.name for path in folder.iterdir()) == WRITTEN
    shipped = {path.name: path.read_text() for path in STARTER.iterdir() if path.is_file()}
    assert {name: (folder / name).read_text() for name in shipped} == shipped
    assert (folder / "suite.schema.json").read_text() == schema_text() + "\n"
    said = capsys.readouterr().out
    assert all(f"wrote {folder / name}" in said for name in WRITTEN)
    assert f"next: viva run {folder / 'suite.yaml'}" in said


def test_without_a_name_it_writes_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command()
    assert sorted(path.name for path in tmp_path.iterdir()) == WRITTEN
    assert "next: viva run suite.yaml" in capsys.readouterr().out


def test_the_suite_is_valid_and_has_samples_of_both_ways(tmp_path: Path) -> None:
    command(tmp_path)
    assert check_suite(load_suite(tmp_path / "suite.yaml")).conversations == 3
    found = check_samples(tmp_path / "dataset.jsonl")
    assert (found.samples, found.per_turn) == (3, 1)


def test_a_name_with_a_space_can_be_copied_from_the_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(Path("my exam"))
    assert "next: viva run 'my exam/suite.yaml'" in capsys.readouterr().out


def test_nothing_is_overwritten_and_nothing_else_is_written(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("mine")
    with pytest.raises(UsageError, match=r"bot\.py already exists and is not overwritten; name another folder"):
        command(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["bot.py"]
    assert (tmp_path / "bot.py").read_text() == "mine"


def test_every_file_that_is_there_is_named(tmp_path: Path) -> None:
    command(tmp_path)
    with pytest.raises(UsageError) as caught:
        command(tmp_path)
    assert sorted(Path(str(problem).split(" ")[0]).name for problem in caught.value.problems) == WRITTEN


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "exam").write_text("")
    with pytest.raises(UsageError, match="exam is a file; name a folder"):
        command(tmp_path / "exam")
    with pytest.raises(UsageError, match="cannot be written: Not a directory"):
        command(tmp_path / "exam" / "inner")


def test_when_one_file_cannot_be_written_none_is_left(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        write_new(tmp_path, {"first.txt": "one", "missing/second.txt": "two"})
    assert list(tmp_path.iterdir()) == []
