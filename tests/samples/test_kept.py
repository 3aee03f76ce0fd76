"""Versions of a dataset by their content, where they are kept, and how two contents differ."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.samples.dataset_file import (
    MISSING,
    VERSION,
    difference,
    keep_version,
    kept_versions,
    read_content,
    read_version,
)

Row = dict[str, Any]
ROWS: list[Row] = [{"id": "a", "input": ["x", "y"], "ground_truth": [None, "1"]}, {"id": "b", "input": "hi"}]


def write_rows(path: Path, *rows: Row, **layout: Any) -> Path:
    path.write_text("".join(json.dumps(row, **layout) + "\n" for row in rows))
    return path


def changes(tmp_path: Path, before: list[Row], after: list[Row]) -> Any:
    a, b = write_rows(tmp_path / "a.jsonl", *before), write_rows(tmp_path / "b.jsonl", *after)
    return difference(read_content(a), read_content(b))


def test_a_version_names_the_content_whatever_its_layout(tmp_path: Path) -> None:
    plain = read_content(write_rows(tmp_path / "a.jsonl", *ROWS)).version
    assert VERSION.fullmatch(plain)
    turned = [dict(reversed(row.items())) for row in ROWS]
    laid_out = write_rows(tmp_path / "b.jsonl", *turned, separators=(" , ", ":  "))
    laid_out.write_text("\ufeff" + laid_out.read_text().replace("\n", "\r\n\n"))
    assert read_content(laid_out).version == plain
    (tmp_path / "c.json").write_text(json.dumps(ROWS, indent=4))
    assert read_content(tmp_path / "c.json").version == plain


@pytest.mark.parametrize(
    "other",
    [ROWS[:1], ROWS[::-1], [*ROWS, {"id": "c", "input": "x"}], [ROWS[0], {**ROWS[1], "input": "hi "}],
     [ROWS[0], {**ROWS[1], "trial": 1}], [ROWS[0], {**ROWS[1], "goal": None}]],
    ids=["fewer", "another order", "more", "another text", "another trial", "another field"],
)  # fmt: skip
def test_another_content_has_another_version(tmp_path: Path, other: list[Row]) -> None:
    versions = {read_content(write_rows(tmp_path / "a.jsonl", *rows)).version for rows in (ROWS, other)}
    assert len(versions) == 2


def test_a_version_is_kept_once_with_the_bytes_of_the_file(tmp_path: Path) -> None:
    place = tmp_path / "people.csv"
    with place.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "input"], ["007", '["a", "b"]']])
    first, is_new = keep_version(place)
    assert is_new
    assert first.path.read_bytes() == place.read_bytes()
    assert first.path.parent == tmp_path / "people.csv.versions"
    assert keep_version(place) == (first, False)
    place.write_text("id,input\n007,c\n")
    second, _ = keep_version(place)
    assert [(kept_version.number, kept_version.version) for kept_version in kept_versions(place)] == [
        (1, first.version),
        (2, second.version),
    ]
    assert list(read_version(place, first.version).rows.values()) == [{"id": "007", "input": '["a", "b"]'}]
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"id": "a", "input": "x"}\n{"id": "b", "inp', "d.jsonl:2"),
        ('{"id": "a", "input": "x"}\n{"id": "a", "input": "y"}\n', "id 'a' with trial 0 is already in line 1"),
        ('{"sample_id": 3, "input": "x"}\n{"id": "3", "input": "y"}\n', "id '3' with trial 0 is already in line 1"),
        ("[1]\n", "a row is an object"),
    ],
    ids=["half-written", "one id twice", "one id in two spellings", "not a row"],
)
def test_of_a_broken_file_nothing_is_kept(tmp_path: Path, text: str, complaint: str) -> None:
    place = tmp_path / "d.jsonl"
    place.write_text(text)
    with pytest.raises(UsageError) as caught:
        keep_version(place)
    assert complaint in str(caught.value)
    assert not (tmp_path / "d.jsonl.versions").exists()


def test_a_version_that_is_not_there_says_what_is(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "one.jsonl", *ROWS)
    with pytest.raises(UsageError, match="the version v0000000000000000 is not kept; kept: none"):
        read_version(path, "v" + "0" * 16)
    version, _ = keep_version(path)
    two = write_rows(tmp_path / "two.jsonl", *ROWS)
    with pytest.raises(UsageError, match=f"{version.version} is a version of another dataset, one.jsonl"):
        read_version(two, version.version)


def test_a_copy_that_was_changed_is_not_taken_for_its_version(tmp_path: Path) -> None:
    place = write_rows(tmp_path / "d.jsonl", *ROWS)
    version, _ = keep_version(place)
    write_rows(version.path, *ROWS[:1])
    with pytest.raises(UsageError, match="was changed after it was kept"):
        read_version(place, version.version)


def test_a_difference_goes_field_by_field(tmp_path: Path) -> None:
    after: list[Row] = [
        {"id": "a", "input": ["x", "z"], "ground_truth": [None, "1", 2], "context": {"role": "clerk"}},
        {"id": "c", "input": "hi"},
    ]
    difference = changes(tmp_path, ROWS, after)
    assert [str(key) for key in (*difference.added, *difference.removed)] == ["c", "b"]
    [change] = difference.changed
    assert [(field.path, field.before, field.after) for field in change.fields] == [
        ("input.1", "y", "z"),
        ("ground_truth.2", MISSING, 2),
        ("context", MISSING, {"role": "clerk"}),
    ]
    assert (
        difference.describe() == "1 row added (c), 1 row removed (b), 1 row changed (a: input, ground_truth, context)"
    )


def test_a_yes_is_not_a_1_and_a_whole_number_not_a_text(tmp_path: Path) -> None:
    difference = changes(tmp_path, [{"id": "a", "x": True, "y": 1}], [{"id": "a", "x": 1, "y": "1"}])
    assert [field.path for field in difference.changed[0].fields] == ["x", "y"]


def test_the_order_alone_is_a_difference_too(tmp_path: Path) -> None:
    difference = changes(tmp_path, ROWS, ROWS[::-1])
    assert (difference.describe(), difference.unrelated) == ("the order of rows", False)
    assert changes(tmp_path, ROWS, ROWS).describe() == "no difference"


def test_many_rows_are_counted_and_trials_are_told_apart(tmp_path: Path) -> None:
    difference = changes(tmp_path, [], [{"id": "a", "trial": n, "input": "x"} for n in range(8)])
    assert difference.describe() == "8 rows added (a, a#2, a#3, a#4, a#5, and 3 more)"


def test_two_datasets_without_a_common_row_are_unrelated(tmp_path: Path) -> None:
    assert changes(tmp_path, ROWS[:1], ROWS[1:]).unrelated
