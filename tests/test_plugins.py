"""Loading what a user's file holds: each mistake is where its maker can mend it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vivavoce.errors import Problem, UsageError
from vivavoce.plugins import load_object


def problem_of(reference: str, base: Path) -> Problem:
    with pytest.raises(UsageError) as caught:
        load_object(reference, base)
    [problem] = caught.value.problems
    return problem


def test_a_wrong_reference_has_no_place_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("def answer(message): ...\n")
    assert problem_of("bot.py:anwser", tmp_path) == Problem("bot.py has no 'anwser'; did you mean 'answer'?")
    assert problem_of("absent.py:f", tmp_path).file is None
    assert problem_of("bot:answer", tmp_path) == Problem("'bot:answer' does not have the form file.py:name")


def test_a_file_that_raises_is_the_place(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("import os\n\nraise OSError('no model')\n")
    assert problem_of("bot.py:f", tmp_path) == Problem(
        "raises OSError on import: no model", (tmp_path / "bot.py").resolve(), 3
    )


def test_a_file_written_for_letta_evals_is_told_what_to_import(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from letta_evals.decorators import grader\n")
    assert "from vivavoce import grader" in problem_of("mine.py:f", tmp_path).message


def test_each_file_imports_its_own_neighbours(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "neighbour_of_a_bot.py").write_text(f"NAME = {name!r}\n")
        (folder / "bot.py").write_text("from neighbour_of_a_bot import NAME\n")
    assert [load_object(f"{name}/bot.py:NAME", tmp_path) for name in ("a", "b", "a")] == ["a", "b", "a"]


def test_a_neighbour_that_changed_is_imported_again(tmp_path: Path) -> None:
    (tmp_path / "neighbour_that_changes.py").write_text("NAME = 'a'\n")
    (tmp_path / "bot.py").write_text("from neighbour_that_changes import NAME\n")
    assert load_object("bot.py:NAME", tmp_path) == "a"
    (tmp_path / "neighbour_that_changes.py").write_text("NAME = 'changed'\n")
    assert load_object("bot.py:NAME", tmp_path) == "changed"


def test_the_path_of_the_program_stays_as_it_is(tmp_path: Path) -> None:
    before = list(sys.path)
    (tmp_path / "beside_a_bot.py").write_text("")
    (tmp_path / "bot.py").write_text("import beside_a_bot\n")
    load_object("bot.py:beside_a_bot", tmp_path)
    assert sys.path == before


def test_a_neighbour_does_not_hide_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "tabnanny.py").write_text("")
    (tmp_path / "bot.py").write_text("import tabnanny\n")
    assert load_object("bot.py:tabnanny", tmp_path).__file__ != str(tmp_path / "tabnanny.py")
