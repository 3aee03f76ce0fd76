from __future__ import annotations

import io
import json
import os
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.report.export import FORMATS, TEXT_FORMATS, export, file_names, format_of
from vivavoce.report.graded_run import GradedRun
from vivavoce.store.store import Store

from .cases import capitals, keep, outcome


async def some(store: Store) -> GradedRun:
    return await keep(store, [outcome("a"), outcome("b", {"exact": 0.25, "correctness": capitals()})])


@pytest.mark.parametrize("format_", FORMATS)
async def test_every_format_writes_a_file_into_a_folder_that_is_made(
    store: Store, tmp_path: Path, format_: str
) -> None:
    if format_ == "parquet":
        pytest.importorskip("pyarrow", reason="needs the extra [frames]")
    graded = await some(store)
    file = tmp_path / "new" / "folder" / "out"
    export(store, graded.run, graded.grading, format_, file)
    assert file.stat().st_size > 0
    assert os.listdir(file.parent) == ["out"]


@pytest.mark.parametrize("format_", TEXT_FORMATS)
async def test_a_stream_gets_the_same_text_as_a_file(store: Store, tmp_path: Path, format_: str) -> None:
    graded = await some(store)
    stream = io.StringIO(newline="")
    export(store, graded.run, graded.grading, format_, stream)
    export(store, graded.run, graded.grading, format_, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == stream.getvalue().encode()


async def test_an_unknown_format_is_told_with_the_closest(store: Store, tmp_path: Path) -> None:
    graded = await some(store)
    with pytest.raises(UsageError, match="no export format 'jsnol'; did you mean 'jsonl'"):
        export(store, graded.run, graded.grading, "jsnol", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format_", sorted(set(FORMATS) - set(TEXT_FORMATS)))
async def test_what_is_not_text_does_not_go_to_a_stream_of_text(store: Store, format_: str) -> None:
    graded = await some(store)
    with pytest.raises(UsageError, match=r"name (a file|one) with --output"):
        export(store, graded.run, graded.grading, format_, io.StringIO())


@pytest.mark.parametrize(
    ("format_name", "file", "format_"),
    [
        (None, None, "json"),
        ("csv", None, "csv"),
        ("csv", "x.json", "csv"),
        ("letta", "out", "letta"),
        (None, "x.csv", "csv"),
        (None, "x.jsonl", "jsonl"),
        (None, "x.JSON", "json"),
        (None, "x.xml", "junit"),
        (None, "a.csv/x.md", "markdown"),
        (None, "x.html", "html"),
        (None, "x.parquet", "parquet"),
    ],
)
def test_the_format_is_the_one_named_or_that_of_the_files_ending(
    format_name: str | None, file: str | None, format_: str
) -> None:
    assert format_of(format_name, None if file is None else Path(file)) == format_


@pytest.mark.parametrize("file", ["x", "x.txt", "csv"])
def test_an_ending_that_tells_no_format_is_an_error(file: str) -> None:
    with pytest.raises(UsageError, match=f"{file}: unknown file extension; name the format with --format: json, "):
        format_of(None, Path(file))


@pytest.mark.parametrize("format_", TEXT_FORMATS)
async def test_a_file_stays_as_it_was_when_writing_the_new_one_fails(
    store: Store, tmp_path: Path, format_: str
) -> None:
    graded = await some(store)
    (tmp_path / "out").write_text("before")
    lost = graded.grading.model_copy(update={"id": "not in the store"})
    with pytest.raises(UsageError, match="not in the store"):
        export(store, graded.run, lost, format_, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["out", "store"]


async def test_a_place_that_cannot_be_written_is_one_line_for_the_user(store: Store, tmp_path: Path) -> None:
    graded = await some(store)
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match=rf"^{place}: cannot be written: \w+"):
            export(store, graded.run, graded.grading, "json", place)


async def test_a_link_is_followed_and_stays_a_link(store: Store, tmp_path: Path) -> None:
    graded = await some(store)
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to("real")
    export(store, graded.run, graded.grading, "json", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "real").read_text())["run"]["id"] == "run-1"


async def test_a_pipe_is_written_to_and_not_replaced(store: Store, tmp_path: Path) -> None:
    graded = await some(store)
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    export(store, graded.run, graded.grading, "json", pipe)
    reader.join(timeout=10)
    assert pipe.is_fifo()
    assert json.loads(read[0])["run"]["id"] == "run-1"


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("gpt-4o", "gpt-4o"),
        ("openai/gpt-4o:free", "openai-gpt-4o-free"),
        ("Prüfling 2", "Prüfling-2"),
        ("../../etc/passwd", "-..-etc-passwd"),
        ("..", "target"),
        ("", "target"),
        (".hidden", "hidden"),
        ("a\x00b\ud800", "a-b-"),
    ],
)
def test_a_target_keeps_its_name_but_for_what_a_file_may_not_have(target: str, name: str) -> None:
    assert file_names([target]) == {target: name}


@pytest.mark.parametrize("pair", [("a/b", "a-b"), ("GPT", "gpt"), ("x" * 60, "x" * 61), ("..", "target")])
def test_names_that_would_be_the_same_each_get_a_mark_that_does_not_depend_on_the_order(pair: tuple[str, str]) -> None:
    names = file_names(pair)
    assert len({name.casefold() for name in names.values()}) == 2
    assert all("~" in name for name in names.values())
    assert file_names(reversed(pair)) == names


def test_a_name_that_is_taken_gets_a_mark() -> None:
    assert file_names(["suite.json"], used_names=["suite.json"])["suite.json"].startswith("suite.json~")


@given(
    st.lists(st.text(st.characters(exclude_categories=[])) | st.sampled_from(["a/b", "a-b", "A-B", "a:b"]), unique=True)
)
def test_no_two_targets_share_a_file_and_none_leaves_the_folder(targets: list[str]) -> None:
    names = file_names(targets, used_names=["suite.json"])
    assert list(names) == targets
    assert len({name.casefold() for name in [*names.values(), "suite.json"]}) == len(targets) + 1
    for name in names.values():
        assert Path("/out", f"{name}.jsonl").parent == Path("/out")
        assert not name.startswith(".")
        assert len(f"{name}.jsonl".encode()) <= 255
