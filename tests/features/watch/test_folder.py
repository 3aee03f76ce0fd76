"""Files that a collector writes are read as they grow, each line once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.features.watch import folder as reading
from vivavoce.features.watch.folder import Folder
from vivavoce.features.watch.spool import Spool

from .traffic import export, turn


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "traces").mkdir()
    return tmp_path / "traces"


lines: list[str] = []


async def names(spool: Spool) -> list[str]:
    """Return the conversations whose spans are kept, one for each span."""
    query = "SELECT conversation FROM span ORDER BY number"
    return [row[0].decode() for row in await spool.work(lambda database, _: database.execute(query).fetchall())]


def line(conversation: str, number: int = 0) -> str:
    return json.dumps(export(turn(conversation, number))) + "\n"


async def test_lines_are_read_as_they_are_appended_and_half_a_line_is_waited_for(place: Path, spool: Spool) -> None:
    folder, file = Folder(place, spool, lines.append), place / "traces.json"
    file.write_text(line("a") + line("b")[:50])
    assert await folder.look()
    assert not await folder.look()
    assert await names(spool) == ["a"]
    with file.open("a") as out:
        out.write(line("b")[50:] + line("c"))
    await folder.look()
    assert await names(spool) == ["a", "b", "c"]


async def test_a_file_that_is_renamed_is_not_read_again_and_the_next_one_is(place: Path, spool: Spool) -> None:
    (place / "traces.jsonl").write_text(line("a"))
    await Folder(place, spool, lines.append).look()
    (place / "traces.jsonl").rename(place / "traces-2026.jsonl")
    (place / "traces.jsonl").write_text(line("b"))
    await spool.work(lambda database, _: database.execute("DELETE FROM span"))
    await Folder(place, spool, lines.append).look()  # as after a restart
    assert await names(spool) == ["b"]


async def test_a_file_that_begins_anew_is_read_from_its_beginning(place: Path, spool: Spool) -> None:
    folder, file = Folder(place, spool, lines.append), place / "traces.jsonl"
    file.write_text(line("a") + line("b"))
    await folder.look()
    file.write_text(line("c"))
    await folder.look()
    file.write_text("")
    await folder.look()
    assert await names(spool) == ["a", "b", "c"]


async def test_a_document_over_several_lines_is_read_when_nobody_writes_to_it_any_more(
    place: Path, spool: Spool
) -> None:
    folder, file = Folder(place, spool, lines.append), place / "whole.json"
    file.write_text(json.dumps(export(turn("a", 0), turn("b", 0)), indent=2))
    await folder.look()
    assert await names(spool) == []
    os.utime(file, (0, 0))
    await folder.look()
    await folder.look()
    assert await names(spool) == ["a", "b"]


async def test_broken_lines_are_told_with_their_place_and_the_others_are_read(place: Path, spool: Spool) -> None:
    lines.clear()
    (place / "bad.jsonl").write_text(line("a") + "{\n\n" + '{"spans": 1}\n' + line("b"))
    (place / "notes.txt").write_text("no traces")
    await Folder(place, spool, lines.append).look()
    assert await names(spool) == ["a", "b"]
    assert "bad.jsonl at byte" in lines[0]
    assert spool.counts["refused"] == 2


async def test_a_last_line_without_an_end_is_read_where_nothing_is_waited_for(place: Path, spool: Spool) -> None:
    (place / "a.jsonl").write_text(line("a") + line("b").rstrip())
    await Folder(place, spool, lines.append).look(is_last=True)
    assert await names(spool) == ["a", "b"]


@pytest.mark.parametrize("before", ["", line("a")])
async def test_half_a_line_that_stays_is_told_and_read_when_it_is_whole(place: Path, spool: Spool, before: str) -> None:
    lines.clear()
    folder, file = Folder(place, spool, lines.append), place / "a.jsonl"
    file.write_text(before + line("b")[:50])
    os.utime(file, (0, 0))
    await folder.look()
    await folder.look()
    await folder.look(is_last=True)
    assert len(lines) == 1
    assert f"at byte {len(before)}: the last line is incomplete; waiting for the rest" in lines[0]
    with file.open("a") as out:
        out.write(line("b")[50:] + line("c"))
    await folder.look()
    assert await names(spool) == [*(["a"] if before else []), "b", "c"]
    assert spool.counts["refused"] == 0


async def test_pieces_end_at_lines(place: Path, spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PIECE", 700)
    (place / "a.jsonl").write_text("".join(line(f"c{number}") for number in range(40)))
    await Folder(place, spool, lines.append).look()
    assert await names(spool) == [f"c{number}" for number in range(40)]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, spool: Spool) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        Folder(tmp_path / "none", spool, lines.append)
