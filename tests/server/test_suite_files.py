from __future__ import annotations

import os
from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.server import suite_files as module
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.suite_files import look_at, suite_files

SUITE = "name: s\ndataset: d.jsonl\ndriver: replay\ngraders: {g: {kind: model_judge, prompt: p, model: m:x}}\n"


def test_only_suites_are_found_and_none_in_hidden_folders_or_behind_links(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    for place in ("a", "b/c", ".hidden", "node_modules/x", ".venv/lib"):
        (folder / place).mkdir(parents=True)
        (folder / place / "suite.yaml").write_text(SUITE)
    (folder / "as-json.yml").write_text('{"name": "s", "dataset": "d.jsonl", "graders": {}}')
    (folder / "other.yaml").write_text("name: s\n# dataset and graders\n")
    (folder / "suite.txt").write_text(SUITE)
    (tmp_path / "outside.yaml").write_text(SUITE)
    os.symlink(tmp_path / "outside.yaml", folder / "link.yaml")
    os.symlink(tmp_path, folder / "away")
    os.mkfifo(folder / "pipe.yaml")
    assert suite_files(folder) == ["a/suite.yaml", "as-json.yml", "b/c/suite.yaml"]


def test_so_many_are_listed_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    for number in range(4):
        (tmp_path / f"{number}.yaml").write_text(SUITE)
    assert len(suite_files(tmp_path)) == 2


def test_a_large_folder_is_not_walked_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOKED_AT", 3)
    for number in range(9):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "suite.yaml").write_text(SUITE)
    assert suite_files(tmp_path) == []


def test_the_verdicts_of_judges_are_counted(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SUITE)
    talk = '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n'
    (tmp_path / "d.jsonl").write_text(talk * 3)
    found = look_at(ServerPolicy(tmp_path), "s.yaml")
    assert found.forecast is not None
    assert (found.forecast.conversations, found.forecast.messages, found.forecast.verdicts) == (3, 0, 3)
    assert found.asking == ("g",)
    rule = "{g: {kind: rule, never: {call: x}}, "
    (tmp_path / "s.yaml").write_text(SUITE.replace("{g: ", rule + "h: "))
    with_rule = look_at(ServerPolicy(tmp_path), "s.yaml")
    assert with_rule.asking == ("h",)
    assert with_rule.forecast == found.forecast


def test_rows_that_are_wrong_are_told_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SUITE)
    (tmp_path / "d.jsonl").write_text('{"input": "hello"}\n{"input": \n')
    assert look_at(ServerPolicy(tmp_path), "s.yaml").problems[0].startswith("d.jsonl, line 2: ")


def test_a_large_dataset_and_one_that_is_no_file_are_left_for_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.yaml").write_text(SUITE)
    os.mkfifo(tmp_path / "d.jsonl")
    assert look_at(ServerPolicy(tmp_path), "s.yaml").forecast is None
    (tmp_path / "d.jsonl").unlink()
    (tmp_path / "d.jsonl").write_text('{"input": "hello"}\n')
    monkeypatch.setattr(module, "COUNTED", 5)
    found = look_at(ServerPolicy(tmp_path), "s.yaml")
    assert (found.forecast, found.problems) == (None, [])


def test_what_is_no_suite_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {db: {environment: {PASSWORD: opensesame}}}\n")
    with pytest.raises(UsageError, match=r"no suite 'compose\.yaml'") as told:
        look_at(ServerPolicy(tmp_path), "compose.yaml")
    assert "opensesame" not in str(told.value)


def test_a_suite_elsewhere_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    (tmp_path / "s.yaml").write_text(SUITE)
    with pytest.raises(UsageError, match="in the served folder"):
        look_at(ServerPolicy(tmp_path / "served"), "../s.yaml")
