"""`viva store cache`: what is kept is shown, and carried to another store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from provider_model import ProviderModel
from vivavoce.messages import HumanMessage
from vivavoce.models.cache import CachedModel
from vivavoce.models.model import Request
from vivavoce.store.store import Store

from .conftest import Viva


async def kept(place: Path, *models: str) -> None:
    """Keep two replies of each model."""
    with Store.open(str(place)) as store:
        async with store.replies() as replies:
            for name in models:
                model = CachedModel(ProviderModel(["one", "two"], name=name), replies)
                for trial in range(2):
                    await model.complete(Request([HumanMessage(content="What?")], trial=trial))


@pytest.fixture(autouse=True)
def _kept(tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    asyncio.run(kept(tmp_path / "a.db", "openai:m", "openai:\x1b[31mn"))


def test_what_is_kept_is_counted_by_model(viva: Viva) -> None:
    shown = viva("cache", "--store", "a.db")
    assert [line.split()[:2] for line in shown.stdout.splitlines()] == [
        ["model", "replies"],
        ["openai:n", "2"],
        ["openai:m", "2"],
    ]
    found = [json.loads(line) for line in viva("cache", "info", "--json", "--store", "a.db").stdout.splitlines()]
    assert [one["replies"] for one in found] == [2, 2]
    assert all(one["bytes"] > 100 for one in found)
    only = viva("cache", "--json", "--model", "openai:m", "--store", "a.db").stdout
    assert [json.loads(line)["model"] for line in only.splitlines()] == ["openai:m"]


def test_a_cassette_carries_the_replies_to_another_store(viva: Viva) -> None:
    done = viva("cache", "export", "x.jsonl", "--store", "a.db")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "wrote x.jsonl: 4 replies\n")
    for said in ("4 replies", "0 replies"):
        done = viva("cache", "import", "x.jsonl", "--store", "b.db")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"read x.jsonl: {said} added\n")
    assert viva("cache", "--store", "b.db").stdout == viva("cache", "--store", "a.db").stdout


def test_one_model_can_be_exported(viva: Viva, tmp_path: Path) -> None:
    done = viva("cache", "export", "x.jsonl", "--model", "openai:m", "--store", "a.db")
    assert done.stderr == "wrote x.jsonl: 2 replies\n"
    assert {json.loads(line)["model"] for line in (tmp_path / "x.jsonl").read_text().splitlines()[1:]} == {"openai:m"}


def test_a_model_of_which_nothing_is_kept_leaves_the_file_as_it_is(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("mine")
    done = viva("cache", "export", "x.jsonl", "--model", "openai:mm", "--store", "a.db")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "no replies of 'openai:mm' are cached in a.db; did you mean 'openai:m'?\n"
    assert (tmp_path / "x.jsonl").read_text() == "mine"


def test_a_store_without_replies_says_so(viva: Viva) -> None:
    asyncio.run(kept(Path("empty.db")))
    assert viva("cache", "--store", "empty.db").stdout == "no replies are cached in empty.db\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export"], "give a cassette file: viva store cache export replies.jsonl"),
        (["import"], "give a cassette file: viva store cache import replies.jsonl"),
        (["info", "x.jsonl"], "viva store cache info takes no file; to write one: viva store cache export x.jsonl"),
        (["export", "x.jsonl", "--json"], "--json is for viva store cache info"),
        (["import", "bad.jsonl", "--model", "m"], "a cassette is always imported completely"),
        (["import", "none.jsonl"], "none.jsonl: there is no such file"),
        (["import", "rows.jsonl"], "rows.jsonl:1 is not a file of replies: its first line is not"),
        (["import", "bad.jsonl"], "bad.jsonl:2 key: expected 32 hexadecimal digits, got 'x'"),
        (["export", "no/x.jsonl"], "no/x.jsonl: cannot be written"),
        (["drop"], "'drop' is not one of"),
        (["info", "--store", "none.db"], "none.db"),
    ],
)
def test_a_mistake_is_one_line(viva: Viva, tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "rows.jsonl").write_text('{"input": "x"}\n')
    (tmp_path / "bad.jsonl").write_text('{"vivavoce_replies": 1}\n{"key": "x"}\n')
    done = viva("cache", *arguments, VIVAVOCE_STORE="a.db")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
