from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Viva

SUITE = """
name: shop
dataset:
  rows:
    - {id: price, input: "What does it cost?", expect: {contains: EUR}}
    - {id: hello, input: "Hello", expect: {contains: say}}
target: {kind: function, function: "bot.py:reply"}
graders: {expect: {kind: function, function: expect}}
"""


@pytest.fixture(autouse=True)
def _ran(viva: Viva, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text("def reply(message: str) -> str:\n    return 'I cannot say.'\n")
    Path("suite.yaml").write_text(SUITE)
    done = viva("run", "suite.yaml")
    assert done.returncode in (0, 1), done.stderr


def test_a_run_is_given_a_title_notes_and_tags(viva: Viva) -> None:
    done = viva("note", "latest", "Cheaper\nmodel", "--title", "Small", "--tag", "small", "--tag", "v2")
    assert done.stdout.splitlines()[0].endswith(": Small")
    assert done.stdout.splitlines()[1:] == ["tags: small, v2", "Cheaper", "model"]
    assert viva("note", "latest", "--untag", "small", "--title", "").stdout.splitlines()[1:] == [
        "tags: v2",
        "Cheaper",
        "model",
    ]
    markdown = viva("export", "latest", "--format", "markdown").stdout
    assert "- tags: `v2`" in markdown
    assert "- notes: `Cheaper model`" in markdown
    document = json.loads(viva("export", "latest").stdout)
    assert (document["run"]["tags"], document["run"]["notes"]) == (["v2"], "Cheaper\nmodel")
    assert document["errors"] == []
    log = viva("store", "audit").stdout
    assert "run.remark" in log


def test_what_is_too_long_is_refused(viva: Viva) -> None:
    done = viva("note", "latest", "--title", "x" * 201)
    assert (done.returncode, "title: String should have at most 200" in done.stderr) == (2, True)


def test_the_list_says_what_a_run_found(viva: Viva) -> None:
    viva("note", "latest", "--title", "Small", "--tag", "v2")
    listed = viva("runs", "--json")
    assert json.loads(listed.stdout)["finding"] == "fails: expect: every conversation must pass; 1 of 2 did not: price"
    words = " ".join(viva("runs").stdout.split())
    assert "fails: expect: every conversation must pass; 1 of 2 did not: price" in words
    assert "Small" in words
