"""A suite that pins the content of its dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce import RunOptions, UsageError, run_suite
from vivavoce.samples.dataset_file import keep_version
from vivavoce.suites.check import check_suite
from vivavoce.suites.load import load_suite

ROW = '{"id": "a", "input": "Hi", "ground_truth": "Hi"}\n'


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text("def reply(message: str) -> str:\n    return message\n")
    (tmp_path / "d.jsonl").write_text(ROW)
    return pin(tmp_path, keep_version(tmp_path / "d.jsonl")[0].version)


def pin(folder: Path, version: str) -> Path:
    path = folder / "suite.yaml"
    path.write_text(
        f"name: echo\ndataset:\n  path: d.jsonl\n  version: {version}\n"
        "target: {kind: function, function: 'bot.py:reply'}\ngraders: {same: {kind: function, function: contains}}\n"
    )
    return path


def complaint(suite: Path) -> str:
    with pytest.raises(UsageError) as caught:
        check_suite(load_suite(suite))
    return str(caught.value)


def test_the_pinned_content_runs_in_any_layout(suite: Path) -> None:
    place = suite.with_name("d.jsonl")
    place.write_text(ROW.replace(": ", ":   ") + "\n")
    result = run_suite(suite)
    assert result.exit_code == 0
    assert result.run.spec["dataset"]["version"].startswith("v")


def test_another_content_is_refused_with_what_changed_and_how_to_accept_it(suite: Path) -> None:
    place = suite.with_name("d.jsonl")
    place.write_text(ROW.replace('"ground_truth": "Hi"', '"ground_truth": "Ho"') + '{"id": "b", "input": "x"}\n')
    text = complaint(suite)
    assert "suite.yaml:4:3 dataset.version: 'd.jsonl' is not the pinned v" in text
    assert "1 row added (b), 1 row changed (a: ground_truth)" in text
    assert f"To accept it: viva dataset keep {place}, and write version: v" in text
    with pytest.raises(UsageError, match="is not the pinned"):
        run_suite(suite, RunOptions())
    version, _ = keep_version(place)
    assert f"write version: {version.version}" in text
    check_suite(load_suite(pin(suite.parent, version.version)))


def test_a_version_that_is_not_kept_here_can_be_refused_all_the_same(suite: Path) -> None:
    text = complaint(pin(suite.parent, "v0123456789abcdef"))
    assert "the version v0123456789abcdef is not kept; kept: v" in text
    assert "so what changed cannot be said" in text


def test_a_version_of_another_dataset_is_named(suite: Path) -> None:
    other = suite.with_name("other.jsonl")
    other.write_text('{"id": "z", "input": "Hi"}\n')
    version = keep_version(other)[0].version
    assert f"{version} is a version of another dataset, other.jsonl" in complaint(pin(suite.parent, version))


@pytest.mark.parametrize("version", ["1", "latest", "v123", "v0123456789ABCDEF"])
def test_what_is_no_version_says_what_one_is(suite: Path, version: str) -> None:
    assert "version" in complaint_of_reading(pin(suite.parent, version))


def complaint_of_reading(suite: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_suite(suite)
    return str(caught.value)


def test_rows_in_the_suite_have_no_version(suite: Path) -> None:
    suite.write_text(suite.read_text().replace("path: d.jsonl", "rows: [{input: Hi}]"))
    assert "give its path instead of rows" in complaint_of_reading(suite)
