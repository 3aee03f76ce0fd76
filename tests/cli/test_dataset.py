from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from .conftest import Viva

BEFORE = [{"id": "a", "input": ["x", "y"], "ground_truth": [None, "1"]}, {"id": "b", "input": "hi"}]
AFTER = [{"id": "a", "input": ["x", "z | `"], "ground_truth": [None, "1"]}, {"id": "c", "input": "hi"}]


def write(rows: Sequence[Mapping[str, object]]) -> None:
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def version(viva: Viva, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kept version of a dataset that was changed since."""
    monkeypatch.chdir(tmp_path)
    write(BEFORE)
    kept = viva("dataset", "keep", "d.jsonl")
    assert kept.returncode == 0
    assert "pin it in a suite: dataset: {path: d.jsonl, version: v" in kept.stderr
    write(AFTER)
    return kept.stdout.split()[0]


def test_what_changed_since_the_newest_version(viva: Viva, version: str) -> None:
    lines = viva("dataset", "diff", "d.jsonl").stdout.splitlines()
    assert lines[0].endswith("1 row added (c), 1 row removed (b), 1 row changed (a: input)")
    assert lines[1:] == ['+ c  {"input":"hi"}', '- b  {"input":"hi"}', "~ a", '    input.1: "y" → "z | `"']
    assert viva("dataset", "diff", "d.jsonl", version).stdout.splitlines() == lines


def test_for_a_review_in_markdown(viva: Viva, version: str) -> None:
    text = viva("dataset", "diff", "d.jsonl", "--markdown").stdout
    assert "1 row added, 1 row removed, 1 row changed" in text
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [5, 5, 5]


def test_two_files_and_two_versions(viva: Viva, version: str) -> None:
    Path("other.jsonl").write_text('{"id": "z", "input": "x"}\n')
    text = viva("dataset", "diff", "d.jsonl", "other.jsonl").stdout
    assert "The two have no common rows: are these different datasets?" in text
    newer = viva("dataset", "keep", "d.jsonl").stdout.split()[0]
    assert f"{newer} (2 rows) → 1-{version}" in viva("dataset", "diff", "d.jsonl", newer, version).stdout.replace(
        "2-", ""
    )
    assert "no difference" in viva("dataset", "diff", "d.jsonl", version, version).stdout


def test_the_list_says_which_one_the_file_is(viva: Viva, version: str) -> None:
    first = viva("dataset", "list", "d.jsonl").stdout.splitlines()
    assert first[0] == f"1  {version}  2 rows"
    assert "the file now, not kept: viva dataset keep d.jsonl" in first[1]
    viva("dataset", "keep", "d.jsonl")
    assert viva("dataset", "list", "d.jsonl").stdout.splitlines()[1].endswith("2 rows  the file now")
    assert "is kept already" in viva("dataset", "keep", "d.jsonl").stdout


def test_a_version_is_shown_as_its_rows(viva: Viva, version: str) -> None:
    assert [json.loads(line) for line in viva("dataset", "show", "d.jsonl", version).stdout.splitlines()] == BEFORE
    assert [json.loads(line) for line in viva("dataset", "show", "d.jsonl").stdout.splitlines()] == AFTER


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["diff", "none.jsonl"], "there is no such file"),
        (["diff", "d.txt"], "the file extension must be one of"),
        (["diff", "d.jsonl", "v0000000000000000"], "the version v0000000000000000 is not kept"),
        (["diff", "d.jsonl", "old.jsonl"], "there is no such file"),
        (["diff", "d.jsonl", "a", "b", "c"], "takes 2 versions at most"),
        (["keep", "d.jsonl", "a"], "takes a dataset alone"),
        (["list", "d.jsonl", "--markdown"], "--markdown is for: viva dataset diff"),
        (["show", "half.jsonl"], "half.jsonl:1"),
    ],
)
def test_mistakes_are_one_line(viva: Viva, version: str, arguments: list[str], complaint: str) -> None:
    Path("d.txt").write_text("x")
    Path("half.jsonl").write_text('{"id": ')
    done = viva("dataset", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_kept_version_there_is_nothing_to_compare_with(viva: Viva, version: str) -> None:
    Path("new.jsonl").write_text('{"id": "z", "input": "x"}\n')
    assert (
        "no saved version yet; save one with: viva dataset keep new.jsonl"
        in viva("dataset", "diff", "new.jsonl").stderr
    )
