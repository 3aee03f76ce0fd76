"""Files found by a pattern, read, and written whole or not at all, on a disk; S3 is tested with the live tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.files.places import Folder, absolute, find_files, is_address, open_place


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.txt", ["a.txt"]),
        ("*.txt", ["a.txt", "b.txt"]),
        ("[b-z].txt", ["b.txt"]),
        ("*/?.txt", ["deep/c.txt"]),
        ("**/c.txt", ["deep/c.txt"]),
    ],
)
def test_patterns_find_files_folder_by_folder(pattern: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "deep" / "er.txt").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "deep/c.txt"):
        (tmp_path / name).write_text(name, "utf-8")
    found_files = find_files(pattern)
    assert [found_file.place for found_file in found_files] == [str(tmp_path / name) for name in expected]
    assert [found_file.size for found_file in found_files] == [len(name) for name in expected]
    assert all(found_file.changed is not None for found_file in found_files)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    for pattern in ("a.txt", "*.txt", "none/*.txt", "."):
        with pytest.raises(UsageError, match="there is no such file"):
            find_files(pattern)
    with pytest.raises(UsageError, match=r"a\.txt"), open_place(str(tmp_path / "a.txt")):
        pass
    with pytest.raises(UsageError, match="ftp://host/a"):
        find_files("ftp://host/a")


def test_addresses_are_told_from_paths() -> None:
    assert [is_address(address) for address in ("s3://b/k", "gs://b/k", "c:/x", "a/b://c", "/x")] == [True, True] + [
        False
    ] * 3
    assert absolute("s3://b/k?x=y") == "s3://b/k?x=y"
    assert absolute("x") == str(Path.cwd() / "x")


def test_a_folder_has_what_was_written(tmp_path: Path) -> None:
    folder = Folder("new/folder")
    assert folder.names() == set()
    folder.write("a.json", b"{}")
    (tmp_path / "local").write_bytes(b"x" * 3_000_000)
    folder.put("b.bin", tmp_path / "local")
    folder.write("a.json", b"[]")
    assert folder.names() == {"a.json", "b.bin"}
    assert folder.read("a.json") == b"[]"
    with folder.open("b.bin") as file:
        file.seek(2_999_999)
        assert file.read() == b"x"


def test_half_a_file_is_none(tmp_path: Path) -> None:
    folder = Folder("out")
    folder.write("a.json", b"old")
    (tmp_path / "local").write_bytes(b"new")
    (tmp_path / "out" / ".a.json.part").mkdir()
    with pytest.raises(UsageError, match=r"out/a\.json"):
        folder.put("a.json", tmp_path / "local")
    assert folder.read("a.json") == b"old"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="out"):
        Folder("out").write("a", b"")
    tmp_path.chmod(0o700)
